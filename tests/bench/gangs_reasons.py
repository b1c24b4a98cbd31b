"""How soon gangs say why they wait, where many come at once and there is room for none."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from api import names
from api.objects import condition_of
from api.streams import Custom
from controller.podgang import read_gang
from kube.cache import Added, Cache, Change, Deleted
from kube.client import Client, Scope
from kube.objects import BareObject
from kube.resources import EVENTS, PODCLIQUESETS, PODGANGS
from penstock.dashboard.happenings import Happening
from tests.bench.gangs_loads import Load, make_plain, make_sets
from tests.bench.gangs_runs import PATIENCE, Site
from tests.bench.harness import Budget, Row
from tests.support.chance import dice

SOON: Final = Budget(1.0)
SAID_BY: Final = {"condition": "the condition", "event": "an Event"}


@dataclass
class Told:
    """When each set was first seen, and when its gang first said what it lacks, by its name."""

    asked: dict[str, float] = field(default_factory=dict)
    condition: dict[str, float] = field(default_factory=dict)
    event: dict[str, float] = field(default_factory=dict)

    def on_set(self, change: Change[BareObject]) -> None:
        if isinstance(change, Added):
            self.asked.setdefault(change.new.metadata.name, time.perf_counter())

    def on_gang(self, change: Change[Custom]) -> None:
        gang = None if isinstance(change, Deleted) else read_gang(change.new)
        said = gang and condition_of(gang.status.conditions, names.SCHEDULED)
        if gang and said and said.reason == names.REASON_INSUFFICIENT and "gpu" in said.message:
            self._note(self.condition, gang.metadata.name)

    def on_event(self, change: Change[Happening]) -> None:
        if isinstance(change, Added) and change.new.reason == names.REASON_INSUFFICIENT:
            self._note(self.event, change.new.regarding.name)

    def _note(self, seen: dict[str, float], gang: str) -> None:
        seen.setdefault(gang.rpartition("-")[0], time.perf_counter())

    def waits(self, seen: Mapping[str, float]) -> list[float]:
        """Give how long each set took, in order."""
        return sorted(at - self.asked[name] for name, at in seen.items())

    def rows(self, what: str) -> Iterator[Row]:
        for part, by in SAID_BY.items():
            waits = self.waits(getattr(self, part))
            every = Budget(len(self.asked), least=True)
            yield Row(f"{what}, explained by {by}", len(waits), "gangs", None, every)
            yield Row(f"{what}, until {by}, p50", waits[len(waits) // 2], "s", None, SOON)
            yield Row(f"{what}, until {by}, at most", waits[-1], "s", None, SOON)


async def reasons(site: Site, full: Load, load: Load) -> Told:
    """Ask for a load at once in a cluster that another fills, until no gang has more to say."""
    async with site.space() as space:
        async with site.watching(space) as seen, asyncio.timeout(PATIENCE):
            await make_plain(site.client, full, space)
            while len(seen.bound) < full.pods:
                await asyncio.sleep(0.1)
        await site.settled()
        async with listening(site.client, space) as told:
            await make_sets(site.client, load, space)
            await site.settled()
        return told


@asynccontextmanager
async def listening(client: Client, space: str) -> AsyncIterator[Told]:
    """Note meanwhile what gangs say there."""
    told, scope = Told(), Scope(namespace=space)
    sets = Cache(client, PODCLIQUESETS, BareObject, dice(), scope)
    gangs = Cache(client, PODGANGS, Custom, dice(), scope)
    events = Cache(client, EVENTS, Happening, dice(), scope)
    sets.subscribe(told.on_set)
    gangs.subscribe(told.on_gang)
    events.subscribe(told.on_event)
    async with AsyncExitStack() as stack:
        for cache in (sets, gangs, events):
            stack.callback(asyncio.create_task(cache.run()).cancel)
        for synced in (sets.synced, gangs.synced, events.synced):
            await synced()
        yield told
