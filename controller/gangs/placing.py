"""Runs the engine over everything that waits for room, and writes the plan down as reservations.

One cycle at a time: the next snapshot is taken only when it is known of every reservation of the
last plan whether it was stored, so no room is given twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from api.reservation import State
from api.streams import Custom
from controller import pace
from controller.gangs import booking, requesting
from controller.gangs.deciding import Place, next_step
from controller.gangs.metering import Unmetered
from controller.gangs.patience import HELD_FOR
from controller.gangs.recording import Recorder
from controller.gangs.views import GangView, SlotKey
from controller.gangs.world import World
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError, Conflict, NotFound, ServerFault, Unreachable
from kube.objects import Key
from kube.resources import RESERVATIONS
from scheduler import ordering
from scheduler.answers import NoFit, Placement
from scheduler.requests import GangRequest

_log = logging.getLogger(__name__)

GATHER_SECONDS: Final = 0.01  # gangs that arrive together are placed in one batch
AT_ONCE: Final = 16
COUNTED_AT_ONCE: Final = 200  # gangs, and pods
ASK_AGAIN_SECONDS: Final = 0.5
FIRST_RETRY: Final = 0.5
LONGEST_RETRY: Final = 60.0
NAME_TAKEN: Final = (
    "a reservation by a person is called {} like this gang, whose own could have no other name: the"
    " gang waits until it is deleted"
)


@dataclass(frozen=True)
class Refused:
    """What the engine last said to a gang, to which request, and at which count of room."""

    refusal: NoFit
    asked: GangRequest
    room: int
    since: float  # on the monotonic clock: it has not been given room from then on


@dataclass(frozen=True)
class Failed:
    """The engine found room, or might have, but that could not be written down."""

    message: str
    times: int
    until: float  # on the monotonic clock; not tried again before


@dataclass(frozen=True)
class Answers:
    """Whom to tell about a gang: that it was decided, or that it is to be looked at later."""

    decided: Callable[[Key], None]
    later: Callable[[Key, float], None]


class Placer:
    """Places gangs in batches. `fenced` gives the leader's term, or None once the lead is lost."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        world: World,
        reservations: Cache[Custom],
        fenced: Callable[[], int | None],
        answers: Answers,
    ) -> None:
        self.recorder: Recorder | None = None
        self.engine = asyncio.Lock()  # held while the engine works
        self.beside: list[Callable[[], Awaitable[None]]] = []  # others who plan, each in its turn
        self.meters = Unmetered()
        self._client = client
        self._clock = clock
        self._world = world
        self._reservations = reservations
        self._fenced = fenced
        self._answers = answers
        self._waiting: set[Key] = set()
        self._woken = asyncio.Event()
        self._refused: dict[Key, Refused] = {}
        self._failed: dict[Key, Failed] = {}
        self._lifting: set[Key] = set()
        self._moving: dict[Key, frozenset[SlotKey]] = {}

    def ask(self, view: GangView, place: Place) -> NoFit | Failed | None:
        """Ask for room; returns what was said to the same question while nothing has changed since.

        Otherwise the answer comes later; until then what was said last stands, if anything was.
        """
        key = view.gang.key
        if view.reservation is None and self._world.keeps.get(key) is not None:
            self._failed.pop(key, None)  # so that it is tried at once when its name is free
            return Failed(NAME_TAKEN.format(key[1]), 0, 0.0)
        failed = self._failed.get(key)
        left = failed.until - self._clock.monotonic() if failed is not None else 0.0
        if left > 0:
            # Said again each time: of several wishes for one key the queue keeps only the earliest.
            self._answers.later(key, left)
            return failed
        last = self._refused.get(key)
        current = last is not None and last.room == self._world.room
        if last and current and last.asked == self._request(view, place):
            return last.refusal
        self._waiting.add(key)
        self.meters.asked(key)
        self._woken.set()
        return last.refusal if last is not None else None

    def wake(self) -> None:
        """Give those beside us a turn."""
        self._woken.set()

    @contextmanager
    def lifting(self, key: Key) -> Iterator[None]:
        """Place nothing of the gang meanwhile: no slot may move while a pod is lifted onto it."""
        self._lifting.add(key)
        try:
            yield
        finally:
            self._lifting.discard(key)

    def moving(self, key: Key) -> frozenset[SlotKey]:
        """Name the slots that are being given other nodes: nothing may be lifted onto these."""
        return self._moving.get(key, frozenset())

    def refused_for(self, key: Key) -> float:
        """Say for how many seconds what the gang cannot do without was refused again and again."""
        last = self._refused.get(key)
        return self._clock.monotonic() - last.since if last and last.asked.minimum else 0.0

    def lacks_nothing(self, key: Key) -> None:
        """Drop what was refused: if the gang lacks something later, that is another matter."""
        self._refused.pop(key, None)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang."""
        self._refused.pop(key, None)
        self._failed.pop(key, None)
        self._waiting.discard(key)
        self.meters.forget(key)

    def depth(self) -> int:
        """How many gangs wait for the engine."""
        return len(self._waiting)

    def refused(self) -> list[Key]:
        """List the gangs that were refused and might fit now."""
        return list(self._refused)

    async def run(self) -> None:
        """Place batch after batch until cancelled."""
        while True:
            await self._woken.wait()
            await self._clock.sleep(GATHER_SECONDS)
            self._woken.clear()
            await self.count()
            waiting, self._waiting = self._waiting, set()
            if not await self._tried(waiting):
                # One of them is the cause, and the others must not suffer for it.
                for key in waiting:
                    if not await self._tried({key}):
                        self._fail(key, "the engine failed on it; see the log of gangs")
            for place in self.beside:
                await place()

    async def count(self) -> None:
        """Count what has changed, a part at a time: all of it may take longer than a lease."""
        more = True
        while more:
            more = self._world.stockroom.catch_up(COUNTED_AT_ONCE)
            await asyncio.sleep(0)

    async def _tried(self, keys: set[Key]) -> bool:
        """Run a cycle; returns whether it came to its end."""
        try:
            await self._cycle(keys)
        except Exception:  # noqa: BLE001 - the edge of a worker: a bad gang must not end the process
            _log.exception("placing %s failed", ", ".join("/".join(key) for key in sorted(keys)))
            return False
        return True

    async def _cycle(self, keys: set[Key]) -> None:
        room = self._world.room
        asked = self._requests(keys)
        if not asked:
            return
        moves = {view.gang.key: requesting.moved(view, request) for view, request in asked}
        self._moving = {key: slots for key, slots in moves.items() if slots}
        try:
            await self._decide([each for each in asked if not moves[each[0].gang.key]], room)
            # Each alone: into the room that its own slots leave, nobody else may be planned.
            for request in ordering.ordered([r for _, r in asked], ordering.by_priority_then_age):
                key = _key(request)
                if moves[key]:
                    # Asked anew, for by now there may be others that it must keep apart from.
                    again = [
                        each
                        for each in self._requests({key})
                        if requesting.moved(*each) == moves[key]
                    ]
                    await self._decide(again, room)
        finally:
            moved, self._moving = self._moving, {}
        for key in moved:
            self._answers.decided(key)  # whoever held back with a lift may go on

    async def _decide(self, asked: list[tuple[GangView, GangRequest]], room: int) -> None:
        if not asked:
            return
        moving = {(view.gang.key, slot) for view, _ in asked for slot in self.moving(view.gang.key)}
        levels = [network.levels for network in self._world.topologies.networks]
        snapshot = self._world.stockroom.snapshot(levels, moving)
        requests = {view.gang.key: request for view, request in asked}
        recorder = self.recorder if self.recorder and self.recorder.due() else None
        copy = partial(self._world.stockroom.saved, requests.values(), moving)
        saved = copy() if recorder and recorder.ahead() else None
        # Off the event loop, since leases must be renewed meanwhile.
        emptied = self._world.stockroom.emptied()
        async with self.engine:
            begun = self._clock.monotonic()
            plan = await asyncio.to_thread(
                requesting.answered, snapshot, emptied, list(requests.values())
            )
            self.meters.planned(self._clock.monotonic() - begun)
        if recorder and plan.refusals:
            # A copy costs as much as the cluster is large, and most cycles refuse nobody.
            if saved is None and self._world.stockroom.snapshot(levels, moving) is snapshot:
                saved = copy()
            await recorder.take(saved)
        by_key = {view.gang.key: view for view, _ in asked}
        for placement in plan.placements:
            self.meters.decided(_key(placement.gang), "placed")
        for refusal in plan.refusals:
            key = _key(refusal.gang)
            self._failed.pop(key, None)
            before = self._refused.get(key)
            again = before is not None and bool(before.asked.minimum)
            since = before.since if before and again else self._clock.monotonic()
            self._refused[key] = Refused(refusal, requests[key], room, since)
            self.meters.decided(key, "refused")
            self._answers.decided(key)
        writes = [partial(self._write, by_key[_key(p.gang)], p) for p in plan.placements]
        await pace.all_of(writes, AT_ONCE)

    def _requests(self, keys: set[Key]) -> list[tuple[GangView, GangRequest]]:
        asked = []
        for key in keys - self._lifting:
            view = self._world.view(key)
            step = next_step(view, self._clock.now()) if view else None
            if view is not None and isinstance(step, Place):
                asked.append((view, self._request(view, step)))
        return asked

    def _request(self, view: GangView, place: Place) -> GangRequest:
        return requesting.of_place(self._world, view, place)

    async def _write(self, view: GangView, placement: Placement) -> None:
        """Write one reservation down, and tell what became of it."""
        key = view.gang.key
        try:
            await self._reserve(view, placement)
        except (Unreachable, ServerFault) as error:
            # It may have been stored. Whether it was must be known before the next snapshot.
            _log.warning("%s/%s: no answer to its reservation: %s", *key, error)
            await self._find_out(key)
            self._fail(key, str(error))
        except Conflict as error:
            # The time that pods have to be bound may have been put off meanwhile, for one.
            if self._moved_on(view):
                self._answers.decided(key)
            else:
                self._fail(key, str(error))
        except ApiError as error:
            self._fail(key, str(error))
        else:
            self._refused.pop(key, None)
            self._failed.pop(key, None)
            self._answers.decided(key)

    def _fail(self, key: Key, why: str) -> None:
        """Try again later, and ever later: what the API server refuses it may refuse for long."""
        before = self._failed.get(key)
        times = before.times + 1 if before else 1
        wait = min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** min(times - 1, 16))
        self._failed[key] = Failed(why, times, self._clock.monotonic() + wait)
        _log.warning("%s/%s: not reserved, trying again in %.1f s: %s", *key, wait, why)
        self._answers.decided(key)
        self._answers.later(key, wait)

    async def _reserve(self, view: GangView, placement: Placement) -> None:
        generation = self._fenced()
        if generation is None:
            return
        namespace, name = view.gang.key
        homes = booking.homes(view.reservation, placement)
        standing = self._world.standing(view.gang, homes)
        terms = booking.Terms(self._clock.now(), HELD_FOR, generation)
        if view.reservation is None:
            body = booking.body(view.gang.metadata, placement, standing, terms)
            answer = await self._client.create(RESERVATIONS, body, namespace)
        else:
            if view.reservation.state in (State.HELD, State.ROLLED_BACK):
                body = booking.renewed(view.reservation, placement, standing, terms)
            else:
                body = booking.grown(view.reservation, placement, standing)
            answer = await self._client.merge_patch(RESERVATIONS, name, body, namespace)
        self._reservations.observe(answer)

    def _moved_on(self, view: GangView) -> bool:
        """Whether the reservation is known to be another by now than it was planned for."""
        there = self._reservations.get(*view.gang.key)
        before = view.reservation.metadata if view.reservation is not None else None
        return there is not None and (
            before is None or there.metadata.resource_version != before.resource_version
        )

    async def _find_out(self, key: Key) -> None:
        """Ask until it is known whether the reservation is there; nothing is placed meanwhile.

        It is asked twice, since a write may arrive after the question that was meant to find it.
        """
        absent = 0
        while absent < 2 and self._fenced() is not None:
            try:
                answer = await self._client.raw_get(RESERVATIONS.path(*key))
            except NotFound:
                absent += 1
                await self._clock.sleep(ASK_AGAIN_SECONDS)
            except ApiError:
                await self._clock.sleep(ASK_AGAIN_SECONDS)
            else:
                self._reservations.observe(answer)
                return


def _key(request: GangRequest) -> Key:
    return request.namespace, request.name
