"""Keeps are placed, told of, used and ended; whoever dies in between is gone on from."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec
import pytest
from aiohttp import web

from api.jsons import Json, JsonObject
from controller.gangs.keeps.keeper import Keeper
from controller.gangs.keeps.views import Keep
from controller.gangs.placing import Answers, Placer
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.resources import RESERVATIONS
from tests.support.clusters import node
from tests.support.gangscene import Scene, encoded
from tests.support.keeping import GPU, keep, raw
from tests.support.patchapi import PatchApi, patching
from tests.support.polling import eventually

PATH = RESERVATIONS.path("default", "room", "status")
SOON = "2026-01-01T00:10:00Z"  # a clock that leaps begins at midnight
FAR = "2999-01-01T00:00:00Z"


@dataclass
class Stage:
    """A keeper and the placer it takes turns with, in front of a pretend API server."""

    api: PatchApi
    scene: Scene
    keeper: Keeper

    def put(self, kept: Keep) -> None:
        """Somebody has made the reservation."""
        self.api.put(PATH, msgspec.json.decode(raw(kept, 1)))
        self.tell()

    def tell(self) -> None:
        """The watch tells of the reservation as it is stored."""
        self.scene.reservations.observe(msgspec.json.encode(self.api.objects[PATH]))

    @property
    def status(self) -> JsonObject:
        found = self.api.objects[PATH]["status"]
        assert isinstance(found, dict)
        return found

    async def comes_to(self, state: str) -> None:
        await eventually(
            lambda: self.status.get("state") == state and self._heard(), f"state {state}"
        )

    def _heard(self) -> bool:
        """Whether the answer to the last write has arrived."""
        seen = self.scene.reservations.get("default", "room")
        stored = self.api.objects[PATH]["metadata"]
        assert isinstance(stored, dict)
        return seen is not None and seen.metadata.resource_version == stored["resourceVersion"]

    @property
    def done(self) -> bool:
        return self.status.get("state") == "Available"

    def slots(self) -> list[str]:
        """Name the node of each slot."""
        slots = self.status.get("slots", [])
        assert isinstance(slots, list)
        return [str(slot["node"]) for slot in slots if isinstance(slot, dict)]

    def free(self, name: str) -> int:
        world = self.scene.world
        found = world.stockroom.snapshot([n.levels for n in world.topologies.networks])
        return found.free.item(found.row_of[name], found.resources.index(GPU))


@asynccontextmanager
async def acting(api: PatchApi, client: Client, clock: Clock) -> AsyncIterator[Stage]:
    """Run one leader, which sees what is stored already."""
    scene = Scene(client, lambda _: None)
    answers = Answers(lambda _: None, lambda *_: None)
    placer = Placer(client, clock, scene.world, scene.reservations, lambda: 1, answers)
    keeper = Keeper(client, clock, scene.caches, scene.world, placer, lambda: 1)
    stage = Stage(api, scene, keeper)
    if PATH in api.objects:
        stage.tell()
    tasks = [asyncio.create_task(run()) for run in (placer.run, keeper.run)]
    try:
        yield stage
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with patching() as (api, client, _), acting(api, client, SystemClock()) as made:
        yield made


async def test_it_is_placed_whole_and_counts_from_the_write_on(stage: Stage) -> None:
    stage.put(keep(replicas=3, expires=FAR))
    await stage.comes_to("Available")
    assert stage.slots() == ["n1"] * 3
    assert stage.free("n1") == 5
    assert len(stage.api.writes) == 1


async def test_it_waits_whole_until_there_is_room_for_all_of_it(stage: Stage) -> None:
    stage.put(keep(replicas=9, expires=FAR))
    await stage.comes_to("Pending")
    assert stage.slots() == []
    assert stage.free("n1") == 8
    stage.scene.nodes.observe(encoded(node("n2"), 50))
    await stage.comes_to("Available")
    assert set(stage.slots()) == {"n1", "n2"}
    assert stage.status["message"] == ""


async def test_its_time_ends_it_though_nothing_happens() -> None:
    # This clock leaps to whatever is waited for.
    async with patching() as (api, client, clock), acting(api, client, clock) as stage:
        stage.put(keep(expires=SOON))
        await stage.comes_to("Expired")
        assert stage.free("n1") == 8


async def test_what_cannot_be_read_fails_for_good(stage: Stage) -> None:
    container: Json = {"name": "main", "resources": {"requests": {GPU: "many"}}}
    template: Json = {"spec": {"containers": [container]}}
    stage.put(keep(template=template, requests={}, expires=FAR))
    await stage.comes_to("Failed")
    assert "its template cannot be read" in str(stage.status["message"])


async def test_amounts_in_a_template_may_be_numbers(stage: Stage) -> None:
    container: Json = {"name": "main", "resources": {"limits": {GPU: 2}}}
    template: Json = {"spec": {"containers": [container]}}
    stage.put(keep(template=template, requests={}, replicas=2, expires=FAR))
    await stage.comes_to("Available")
    assert stage.free("n1") == 4


async def test_owners_that_are_gone_end_it(stage: Stage) -> None:
    rule: Json = [{"object": {"kind": "PodGang", "name": "demo-0", "uid": "gone"}}]
    stage.put(keep(owners=rule, expires=FAR))
    await stage.comes_to("Failed")
    assert stage.status["message"] == "all that its owners name is gone"


async def test_a_write_that_was_overtaken_is_decided_on_anew(stage: Stage) -> None:
    touched: list[str] = []

    def meddle(_write: str) -> None:
        if not touched:
            touched.append("once")
            stage.api.touch(PATH)

    stage.api.before = meddle
    stage.put(keep(expires=FAR))
    await eventually(lambda: bool(touched), "the first write")
    stage.tell()
    await stage.comes_to("Available")


@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_a_successor_goes_on_after_any_write(writes: int) -> None:
    async with patching() as (api, client, _):
        tried: list[str] = []

        def fail(write: str) -> None:
            tried.append(write)
            if len(tried) > writes:
                raise web.HTTPServiceUnavailable

        api.before = fail
        async with acting(api, client, SystemClock()) as first:
            # The second write says that it had to wait.
            first.put(keep(replicas=9, expires=FAR))
            await eventually(lambda: bool(tried), "a write")
            first.scene.nodes.observe(encoded(node("n2"), 50))
            await eventually(lambda: len(tried) > writes or first.done, "all that it may write")
        api.before = lambda _: None
        async with acting(api, client, SystemClock()) as second:
            second.scene.nodes.observe(encoded(node("n2"), 50))
            await second.comes_to("Available")
            assert second.free("n1") + second.free("n2") == 7
            assert len(second.slots()) == 9
