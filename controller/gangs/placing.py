"""Runs the engine over everything that waits for room, and writes the plan down as reservations.

One cycle at a time: the next snapshot is taken only when every reservation of the last plan has
been answered for, so no room is ever given twice.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from api import names
from api.streams import Custom
from controller import pace
from controller.gangs import booking, stocktaking
from controller.gangs.deciding import Place, next_step
from controller.gangs.views import GangView, Key
from controller.gangs.world import World
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.resources import RESERVATIONS
from scheduler import cycle, snapshot
from scheduler.placing import GangRequest, NoFit, Placement

_log = logging.getLogger(__name__)

LEVELS: Final = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
PATIENCE: Final = timedelta(seconds=60)  # how long a reservation waits for its first lift
GATHER_SECONDS: Final = 0.01  # gangs that arrive together are placed in one batch
AT_ONCE: Final = 16


@dataclass(frozen=True)
class Refused:
    """What the engine last said to a gang, to which request, and at which count of room."""

    refusal: NoFit
    room: int


class Placer:
    """Places gangs in batches. `fenced` gives the leader's term, or None once the lead is lost."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        world: World,
        reservations: Cache[Custom],
        fenced: Callable[[], int | None],
        decided: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._world = world
        self._reservations = reservations
        self._fenced = fenced
        self._decided = decided
        self._waiting: set[Key] = set()
        self._woken = asyncio.Event()
        self._refused: dict[Key, Refused] = {}

    def ask(self, view: GangView, place: Place) -> NoFit | None:
        """Ask for room; returns what was said to the same question while nothing has changed since.

        None means that the answer comes later, by `decided`.
        """
        key = view.gang.key
        last = self._refused.get(key)
        current = last is not None and last.room == self._world.room
        if last and current and last.refusal.gang == stocktaking.request(view, place):
            return last.refusal
        self._waiting.add(key)
        self._woken.set()
        return last.refusal if last is not None else None

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang."""
        self._refused.pop(key, None)
        self._waiting.discard(key)

    def refused(self) -> list[Key]:
        """List the gangs that were refused and might fit now."""
        return list(self._refused)

    async def run(self) -> None:
        """Place batch after batch until cancelled."""
        while True:
            await self._woken.wait()
            await self._clock.sleep(GATHER_SECONDS)
            self._woken.clear()
            waiting, self._waiting = self._waiting, set()
            await self._cycle(waiting)

    async def _cycle(self, keys: set[Key]) -> None:
        room = self._world.room
        asked = self._requests(keys)
        if not asked:
            return
        taken = self._snapshot()
        requests = [request for _, request in asked]
        plan = await asyncio.to_thread(cycle.plan, taken, requests)
        views = {view.gang.key: view for view, _ in asked}
        for refusal in plan.refusals:
            self._refused[_key(refusal.gang)] = Refused(refusal, room)
        writes = [self._write(views[_key(p.gang)], p) for p in plan.placements]
        for error in await pace.all_of(writes, AT_ONCE):
            _log.warning("a reservation could not be written, its gang is tried again: %s", error)
        for key in views:
            self._decided(key)

    def _requests(self, keys: set[Key]) -> list[tuple[GangView, GangRequest]]:
        """Put the questions in order: higher priority first, then older first."""
        asked = []
        for key in keys:
            view = self._world.view(key)
            step = next_step(view, self._clock.now()) if view else None
            if view is not None and isinstance(step, Place):
                asked.append((view, stocktaking.request(view, step)))
        return sorted(asked, key=lambda pair: _rank(pair[0]))

    def _snapshot(self) -> snapshot.Snapshot:
        views = list(self._world.views())
        held = [
            *stocktaking.holds(views, self._world.orphans()),
            *stocktaking.stray_holds(self._world.pod_map, views),
        ]
        return snapshot.build(self._world.nodes, self._world.pods, held, LEVELS)

    async def _write(self, view: GangView, placement: Placement) -> None:
        generation = self._fenced()
        if generation is None:
            return
        key = view.gang.key
        self._refused.pop(key, None)
        namespace, name = key
        if view.reservation is None:
            terms = booking.Terms(self._clock.now(), PATIENCE, generation)
            body = booking.body(view.gang.metadata, placement, terms)
            answer = await self._client.create(RESERVATIONS, body, namespace)
        else:
            body = booking.grown(view.reservation, placement)
            answer = await self._client.merge_patch(RESERVATIONS, name, body, namespace)
        self._reservations.observe(answer)


def _key(request: GangRequest) -> Key:
    return request.namespace, request.name


def _rank(view: GangView) -> tuple[int, str, Key]:
    priority = max((member.pod.spec.priority for member in view.members), default=0)
    born = view.gang.metadata.creation_timestamp
    return -priority, born.isoformat() if born else "", view.gang.key
