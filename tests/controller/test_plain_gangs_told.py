"""Pods whose gang's name is taken are told so, once, whatever becomes of a single write."""

import asyncio

import pytest

from api import names
from api.jsons import JsonObject
from kube.errors import ApiError, Unreachable
from kube.resources import EVENTS, PODGANGS
from kube.transport import Call
from tests.controller.test_plain_gangs_acting import CLOCK, Scene, gangs
from tests.model.memory import Memory, MemoryClient, Wire
from tests.support.plaingangs import KEY
from tests.support.polling import eventually


@pytest.fixture
async def taken() -> Scene:
    """Somebody else's PodGang has the name of the gang."""
    memory = Memory(CLOCK)
    found = Scene(memory, MemoryClient(Wire(memory), CLOCK))
    theirs: JsonObject = {"metadata": {"name": KEY[1]}, "spec": {"podgroups": []}}
    await found.person.create(PODGANGS, theirs, KEY[0])
    return found


async def test_an_event_that_could_not_be_written_is_written_later(taken: Scene) -> None:
    wire, tried = Wire(taken.memory), [0]

    def unreachable_at_first(call: Call) -> ApiError | None:
        if call.path != EVENTS.path(KEY[0]):
            return None
        tried[0] += 1
        return Unreachable("for a moment") if tried[0] <= 2 else None

    wire.harm = unreachable_at_first
    async with gangs(wire):
        await taken.make("a")
        await eventually(lambda: bool(taken.memory.of_kind("events")), "an Event")
    assert taken.memory.of_kind("events")[0]["reason"] == names.REASON_NAME_TAKEN


async def test_an_event_that_an_earlier_leader_wrote_is_not_tried_for_ever(taken: Scene) -> None:
    await taken.make("a")
    async with gangs(Wire(taken.memory)):
        await eventually(lambda: bool(taken.memory.of_kind("events")), "an Event")
    tries = [0]
    wire = Wire(taken.memory)

    def counted(call: Call) -> ApiError | None:
        tries[0] += call.path == EVENTS.path(KEY[0])
        return None

    wire.harm = counted
    async with gangs(wire):
        await eventually(lambda: tries[0] > 0, "an Event tried for")
        await asyncio.sleep(0.3)
    assert tries[0] == 1
