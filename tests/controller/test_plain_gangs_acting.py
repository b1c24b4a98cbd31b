"""PodGangs of plain gangs as they are written: seldom, and from any point at which one died."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Custom, Node, Pod, PodClique
from controller.gangs.caches import Caches
from controller.gangs.plain_acting import PlainMaker
from controller.podgang import Gang, read_gang
from kube.cache import Cache
from kube.clock import SystemClock
from kube.errors import ApiError, Unreachable
from kube.resources import (
    EVENTS,
    NODES,
    PODCLIQUES,
    PODGANGS,
    PODS,
    RESERVATIONS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
)
from kube.transport import Call
from tests.model.memory import Memory, MemoryClient, Wire
from tests.support.chance import dice
from tests.support.plaingangs import KEY, plain
from tests.support.polling import eventually

CLOCK = SystemClock()


@dataclass(frozen=True)
class Scene:
    """An API server in memory, and a person who makes pods there."""

    memory: Memory
    person: MemoryClient

    async def make(self, *pods: str) -> None:
        for name in pods:
            body: JsonObject = msgspec.to_builtins(plain(name))
            assert isinstance(body["metadata"], dict)
            del body["metadata"]["deletionTimestamp"]  # even none means that it is going
            await self.person.create(PODS, body, KEY[0])

    def stored(self) -> Gang | None:
        raw = [msgspec.json.encode(thing) for thing in self.memory.of_kind("podgangs")]
        return read_gang(msgspec.json.decode(raw[0], type=Custom)) if raw else None

    def refers_to(self, *pods: str) -> bool:
        gang = self.stored()
        return gang is not None and {name for _, (_, name) in gang.references()} == set(pods)

    def is_whole(self) -> bool:
        gang = self.stored()
        return gang is not None and gang.initialized


@pytest.fixture
def scene() -> Scene:
    memory = Memory(CLOCK)
    return Scene(memory, MemoryClient(Wire(memory), CLOCK))


@asynccontextmanager
async def gangs(wire: Wire) -> AsyncIterator[None]:
    """Have plain gangs looked after by a process that leads."""
    client, rng = MemoryClient(wire, CLOCK), dice()
    caches = Caches(
        Cache(client, NODES, Node, rng),
        Cache(client, PODS, Pod, rng),
        Cache(client, PODGANGS, Custom, rng),
        Cache(client, RESERVATIONS, Custom, rng),
        Cache(client, PODCLIQUES, PodClique, rng),
        Cache(client, SCALING_GROUPS, Custom, rng),
    )
    bindings = Cache(client, TOPOLOGY_BINDINGS, Custom, rng)
    schedulers = (names.DEFAULT_SCHEDULER,)
    maker = PlainMaker(client, CLOCK, caches, bindings, lambda: 1, schedulers)
    followed = (caches.nodes, caches.pods, caches.gangs, caches.reservations, bindings)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run()) for cache in followed]
        for cache in followed:
            await cache.synced()
        tasks.append(group.create_task(maker.run()))
        yield
        for task in tasks:
            task.cancel()


def written(wire: Wire) -> list[str]:
    return [f"{call.method} {call.path.partition('podgangs')[2]}" for call in wire.calls]


async def test_pods_that_come_together_cost_one_podgang_and_one_status(scene: Scene) -> None:
    wire = Wire(scene.memory)
    async with gangs(wire):
        await scene.make(*"abc")
        await eventually(scene.is_whole, "a whole gang")
    assert written(wire) == ["POST ", "PATCH /train/status"]
    assert scene.refers_to(*"abc")


async def test_pods_that_come_one_by_one_are_told_together(scene: Scene) -> None:
    wire = Wire(scene.memory)
    async with gangs(wire):
        for name in "abcdefgh":
            await scene.make(name)
            await asyncio.sleep(0.05)
        await eventually(lambda: scene.refers_to(*"abcdefgh"), "all pods referred to")
    assert scene.is_whole()
    # Made; whole with the third; and the rest at most every half second.
    assert len(written(wire)) <= 5


async def test_the_podgang_goes_with_the_last_of_its_pods(scene: Scene) -> None:
    wire = Wire(scene.memory)
    async with gangs(wire):
        await scene.make(*"abc")
        await eventually(scene.is_whole, "a whole gang")
        for name in "abc":
            await scene.person.delete(PODS, name, KEY[0])
        await eventually(lambda: scene.stored() is None, "no PodGang")
    assert written(wire)[-1] == "DELETE /train"


@pytest.mark.parametrize("count", range(4))
async def test_killed_after_any_write_its_successor_goes_on_from_there(
    scene: Scene, count: int
) -> None:
    """The writes: made with two pods, amended by the third, said to be whole."""
    wire = Wire(scene.memory)

    def dead(call: Call) -> ApiError | None:
        over = call.method != "GET" and len(wire.calls) >= count
        return Unreachable("it is dead") if over else None

    wire.harm = dead
    async with gangs(wire):
        await scene.make(*"ab")
        if count:
            await eventually(lambda: scene.refers_to(*"ab"), "a PodGang")
        await scene.make("c")
        await eventually(lambda: len(wire.calls) == count, f"{count} writes")
    async with gangs(Wire(scene.memory)):
        await eventually(scene.is_whole, "a whole gang")
    assert scene.refers_to(*"abc")


async def test_a_taken_name_is_told_once_and_the_podgang_is_left_as_it_is(scene: Scene) -> None:
    spec: JsonObject = {"podgroups": []}
    theirs: JsonObject = {"metadata": {"name": KEY[1]}, "spec": spec}
    await scene.person.create(PODGANGS, theirs, KEY[0])
    wire = Wire(scene.memory)
    async with gangs(wire):
        await scene.make("a")
        await eventually(lambda: bool(scene.memory.of_kind("events")), "an Event")
        await scene.person.merge_patch(PODGANGS, KEY[1], {"spec": {"podgroups": []}}, KEY[0])
        await asyncio.sleep(0.1)
    (event,) = scene.memory.of_kind("events")
    assert event["reason"] == names.REASON_NAME_TAKEN
    assert [call.path for call in wire.calls] == [EVENTS.path(KEY[0])]


async def test_what_was_left_while_nobody_led_is_taken_away(scene: Scene) -> None:
    async with gangs(Wire(scene.memory)):
        await scene.make(*"abc")
        await eventually(scene.is_whole, "a whole gang")
    for name in "abc":
        await scene.person.delete(PODS, name, KEY[0])
    async with gangs(Wire(scene.memory)):
        await eventually(lambda: scene.stored() is None, "no PodGang")


async def test_a_wish_that_a_pod_takes_up_is_passed_on(scene: Scene) -> None:
    def asked() -> bool:
        gang = scene.stored()
        return gang is not None and names.SPREAD_ANNOTATION in gang.metadata.annotations

    async with gangs(Wire(scene.memory)):
        await scene.make(*"abc")
        await eventually(scene.is_whole, "a whole gang")
        body: JsonObject = {"metadata": {"annotations": {names.SPREAD_ANNOTATION: "rack"}}}
        await scene.person.merge_patch(PODS, "a", body, KEY[0])
        await eventually(asked, "the wish to keep apart")
