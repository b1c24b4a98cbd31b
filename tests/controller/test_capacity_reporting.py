"""What the webhook is told of the cluster's capacity, and how seldom."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
import pytest

from api import names
from api.capacity import Capacity
from api.streams import Custom, Node
from controller.gangs.capacity import WRITE_EVERY, CapacityReporter
from kube.cache import Added, Change, Deleted, Modified
from kube.objects import KubeObject
from kube.resources import CONFIGMAPS
from tests.support.clusters import node
from tests.support.manualclock import ManualClock
from tests.support.patchapi import PatchApi, patching
from tests.support.polling import eventually

T = TypeVar("T", bound=KubeObject)

PATH = CONFIGMAPS.path("ours", names.CAPACITY_CONFIG)
GPU = "nvidia.com/gpu"


@dataclass
class Feed(Generic[T]):
    """A cache whose changes the test makes up."""

    tell: Callable[[Change[T]], None] = field(default=lambda _: None)

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        self.tell = handler


@dataclass
class Stand:
    api: PatchApi
    clock: ManualClock
    nodes: Feed[Node]
    bindings: Feed[Custom]
    term: list[int | None]

    def told(self) -> Capacity:
        data = self.api.objects[PATH].get("data", {})
        assert isinstance(data, dict)
        return msgspec.json.decode(str(data.get(names.CAPACITY_KEY, "{}")), type=Capacity)

    async def writes(self, count: int) -> None:
        """Let the time of one write pass and see that so many were made by then."""
        await self.clock.advance(WRITE_EVERY)
        await eventually(lambda: len(self.api.writes) >= count, f"{count} writes", 5)
        await self.clock.advance(0.1)
        assert len(self.api.writes) == count


@asynccontextmanager
async def reporting(term: int | None = 1) -> AsyncIterator[Stand]:
    async with patching() as (api, client, _):
        api.put(PATH, {"metadata": {"name": names.CAPACITY_CONFIG}})
        clock, terms = ManualClock(), [term]
        stand = Stand(api, clock, Feed(), Feed(), terms)
        reporter = CapacityReporter(client, clock, "ours", lambda: terms[0])
        reporter.follow(stand.nodes, stand.bindings)
        running = asyncio.ensure_future(reporter.run())
        try:
            yield stand
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def rack(name: str, gpus: int = 8) -> Node:
    return node(name, {GPU: str(gpus)}, labels={names.RACK_KEY: "1"})


async def test_nodes_that_come_together_are_told_in_one_write() -> None:
    async with reporting() as stand:
        for i in range(50):
            stand.nodes.tell(Added(rack(f"n{i}")))
        await stand.writes(1)
        assert stand.told() == Capacity({GPU: 8}, {names.RACK_KEY: {GPU: 400}})


async def test_heartbeats_and_what_does_not_decide_are_not_told() -> None:
    async with reporting() as stand:
        stand.nodes.tell(Added(rack("a")))
        stand.nodes.tell(Added(rack("b", 4)))
        await stand.writes(1)
        unready = node("a", {GPU: "8"}, labels={names.RACK_KEY: "1", "team": "x"}, ready=False)
        stand.nodes.tell(Modified(rack("a"), unready))
        stand.nodes.tell(Modified(rack("b", 4), rack("b", 3)))
        stand.nodes.tell(Modified(rack("b", 3), rack("b", 4)))
        await stand.writes(1)
        stand.nodes.tell(Deleted(rack("b", 4)))
        await stand.writes(2)
        assert stand.told().domains == {names.RACK_KEY: {GPU: 8}}


async def test_what_the_leader_before_told_is_not_written_again() -> None:
    async with reporting() as stand:
        text = '{"node":{"nvidia.com/gpu":8},"domains":{}}'
        stand.api.objects[PATH]["data"] = {names.CAPACITY_KEY: text}
        stand.nodes.tell(Added(node("a", {GPU: "8"})))
        await stand.writes(0)
        stand.nodes.tell(Added(node("b", {GPU: "9"})))
        await stand.writes(1)


async def test_who_does_not_lead_counts_but_writes_nothing_until_it_does() -> None:
    async with reporting(term=None) as stand:
        stand.nodes.tell(Added(rack("a")))
        await stand.writes(0)
        stand.term[0] = 1
        await stand.writes(1)
        assert stand.told().node == {GPU: 8}


async def test_what_could_not_be_written_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with reporting() as stand:
        kept = stand.api.objects.pop(PATH)
        stand.nodes.tell(Added(rack("a")))
        await stand.clock.advance(WRITE_EVERY)
        await eventually(lambda: "cannot be told now" in caplog.text, "a warning", 5)
        stand.api.objects[PATH] = kept
        await stand.writes(1)


def binding(*keys: str) -> Custom:
    levels = [{"domain": f"level{i}", "key": key} for i, key in enumerate(keys)]
    raw = {"metadata": {"name": "net"}, "spec": {"levels": levels}}
    return msgspec.json.decode(msgspec.json.encode(raw), type=Custom)


async def test_levels_of_bindings_count_for_nodes_that_were_there_before() -> None:
    async with reporting() as stand:
        stand.nodes.tell(Added(node("a", {GPU: "8"}, labels={"room": "1"})))
        await stand.writes(1)
        stand.bindings.tell(Added(binding("room")))
        await stand.writes(2)
        assert stand.told().domains == {"room": {GPU: 8}}
        stand.bindings.tell(Modified(binding("room"), binding("row")))
        await stand.writes(3)
        assert stand.told().domains == {}


async def test_a_binding_that_cannot_be_read_counts_for_nothing() -> None:
    async with reporting() as stand:
        stand.nodes.tell(Added(node("a", {GPU: "8"}, labels={"room": "1"})))
        stand.bindings.tell(Added(binding()))
        await stand.writes(1)
        assert stand.told().domains == {}
