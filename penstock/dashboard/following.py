"""The cluster as it goes on: the plugin's caches and views, kept up by watches."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from api.streams import Meta, Node
from controller.gangs.modes import Mode
from controller.gangs.stocktaking import same_offer
from kube.cache import Cache, Change, Deleted, Modified, Source
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key, KubeObject
from kube.resources import EVENTS, NODES, PODGANGS, Resource
from penstock.dashboard import happenings, timeline
from penstock.dashboard.drawing import Around, Board
from penstock.dashboard.happenings import Happening
from penstock.dashboard.timeline import Detail
from penstock.dashboard.view import View
from penstock.ending import AskedWronglyError
from penstock.plugin import scenes, topology
from penstock.plugin.scenes import Followed, Reading
from policies.policy import BUILT_IN, Policy

_log = logging.getLogger(__name__)

LOOK_AGAIN: Final = 15.0  # seconds, for whether the cluster is still heard of
SILENCE: Final = 150.0  # seconds; an API server says something about every minute
ASK_AGAIN: Final = 20.0  # seconds, for kinds that are not served to us, and for the policy

Ask = Callable[[], Awaitable[Policy]]


class Following:
    """One set of watches for everybody who looks. `news` is set whenever there may be any."""

    def __init__(self, source: Source, board: Board, mode: Mode, ask_policy: Ask) -> None:
        self.news: Final = asyncio.Event()
        self.policy: Policy = BUILT_IN
        self._clock = source.clock
        self._board = board
        self._ask_policy = ask_policy
        rng = random.Random()  # noqa: S311 - when to ask again
        self._reading = Reading.of(source, rng, mode, self._touched)
        self._every = self._reading.every()
        self._happenings = {
            kind: Cache(source, EVENTS, Happening, rng, happenings.scope(kind.kind))
            for kind in happenings.FOLLOWED
        }
        self._absent: dict[Resource, ApiError] = {}
        self._is_cut_off = False
        for kind, cache in self._every.items():
            self._hear(kind, cache)
        for each in self._happenings.values():
            each.subscribe(self._on_happening)

    async def run(self, ready: Callable[[], None]) -> None:
        """Follow until cancelled; `ready` is called once all has been read that there is."""
        self.policy = await self._ask_policy()
        try:
            async with asyncio.TaskGroup() as group:
                for kind, cache in self._every.items():
                    group.create_task(self._follow(kind, cache))
                for cache in self._happenings.values():
                    group.create_task(self._follow(EVENTS, cache))
                group.create_task(self._follow_policy())
                group.create_task(self._listen())
                await self._read()
                ready()
        except* (ApiError, AskedWronglyError) as several:
            raise several.exceptions[0] from None

    async def _read(self) -> None:
        refused = await asyncio.gather(*(_refused(cache) for cache in self._every.values()))
        await asyncio.gather(*(_refused(cache) for cache in self._happenings.values()))
        there = zip(self._every, refused, strict=True)
        errors = {kind: error for kind, error in there if error is not None}
        scenes.see_that_enough_was_read({k: e for k, e in errors.items() if k in scenes.NEEDED})

    def check(self, name: str, resource: str) -> None:
        """Raise what says so if there is no topology or no resource of that name."""
        world = self._reading.world
        taken = world.stockroom.snapshot([network.levels for network in world.topologies.networks])
        topology.chosen(taken, name)
        topology.column_of(taken, resource)

    def view(self, around: Around) -> View:
        """Draw the cluster as it is known now."""
        return self._board.draw(self._reading.world, around)

    def notes(self) -> tuple[str, ...]:
        """Say what cannot be shown, and why."""
        forbidden = [kind.full_name for kind, e in self._absent.items() if isinstance(e, Forbidden)]
        said = []
        if self._is_cut_off:
            said.append("the cluster has not been heard of for minutes; what is shown is old")
        if forbidden:
            kinds = ", ".join(sorted(forbidden))
            said.append(f"not shown, since you may not list them: {kinds}")
        return tuple(said)

    def detail(self, key: Key) -> Detail | None:
        """Tell all of one gang as it is now, or None if there is none."""
        found = self._reading.world.view(key)
        if found is None:
            return None
        owner = self._set_of(found.gang.metadata)
        uids = {found.gang.metadata.uid, owner.uid if owner is not None else ""} - {""}
        every = [each for cache in self._happenings.values() for each in cache]
        return timeline.detail(
            found, self._board.row(found), owner, happenings.about(every, frozenset(uids))
        )

    def _set_of(self, gang: Meta) -> Meta | None:
        uid = gang.controller_uid
        every = self._reading.sets
        return next((s.metadata for s in every if uid and s.metadata.uid == uid), None)

    def _hear(self, kind: Resource, cache: Followed) -> None:
        if isinstance(cache, Cache):
            handler = self._on_node if kind is NODES else self._on_change
            cache.subscribe(handler)

    def _touched(self, gang: Key) -> None:
        self._board.touch(gang)
        self.news.set()

    def _on_change(self, change: Change[KubeObject]) -> None:
        del change
        self.news.set()

    def _on_happening(self, change: Change[Happening]) -> None:
        """Have the details of the gang asked for again."""
        about = (change.old if isinstance(change, Deleted) else change.new).regarding
        if about.kind == PODGANGS.kind:
            self._touched((about.namespace, about.name))

    def _on_node(self, change: Change[Node]) -> None:
        if not isinstance(change, Modified) or not same_offer(change.old, change.new):
            self.news.set()

    async def _follow(self, kind: Resource, cache: Followed) -> None:
        """Follow a kind from when it is served to us; it may be once it was not."""
        while True:
            try:
                await cache.run()
            except (NotFound, Forbidden) as error:
                self._absent[kind] = error
                self._reading.sources.missing.add(kind)
            while await _tried(cache) is not None:
                await self._clock.sleep(ASK_AGAIN)
            self._absent.pop(kind, None)
            self._reading.sources.missing.discard(kind)
            self.news.set()

    async def _listen(self) -> None:
        """Notice when the cluster is heard of no more, and when it is again."""
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            caches = self._reading.caches
            followed = (caches.nodes, caches.pods, caches.gangs, caches.reservations)
            heard = [cache.counters.last_heard for cache in followed]
            now = is_cut_off(heard, self._clock.monotonic())
            if now != self._is_cut_off:
                self._is_cut_off = now
                self.news.set()

    async def _follow_policy(self) -> None:
        while True:
            await self._clock.sleep(ASK_AGAIN)
            try:
                found = await self._ask_policy()
            except ApiError as error:
                _log.info("the policy cannot be read now: %s", error)
                continue
            if found != self.policy:
                self.policy = found
                self.news.set()


def is_cut_off(heard: Iterable[float | None], now: float) -> bool:
    """Tell whether nothing has been heard of any kind for too long."""
    return now - max((each for each in heard if each is not None), default=now) > SILENCE


async def _refused(cache: Followed) -> ApiError | None:
    """Wait for the first list of a cache that runs; give why there is none."""
    try:
        await cache.synced()
    except (NotFound, Forbidden) as error:
        return error
    return None


async def _tried(cache: Followed) -> ApiError | None:
    try:
        await cache.relist("asked")
    except (NotFound, Forbidden) as error:
        return error
    return None
