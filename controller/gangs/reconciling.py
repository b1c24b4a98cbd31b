"""Takes each gang through its steps: looks, decides purely, acts thinly, says how it stands."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from api import names
from api.jsons import JsonObject
from api.podgang import PodGangStatus
from api.reservation import State
from controller import pace
from controller.gangs import booking, pinning, reporting
from controller.gangs.deciding import (
    Begin,
    Close,
    Expire,
    Lift,
    Place,
    Step,
    Trim,
    Wait,
    deadline_of,
    next_step,
    settled,
)
from controller.gangs.noticing import Noticeboard
from controller.gangs.placing import Answers, Failed, Placer
from controller.gangs.views import GangView, Member, Reservation, SlotKey
from controller.gangs.world import Caches, World
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import ApiError, Conflict, Invalid, NotFound
from kube.objects import Key
from kube.resources import PODGANGS, PODS, RESERVATIONS
from kube.workqueue import Workqueue
from scheduler.answers import NoFit

_log = logging.getLogger(__name__)

LIFTS_AT_ONCE: Final = 16
# What passes by within moments is not worth a write; what lasts is.
PASSING: Final = frozenset(
    {names.REASON_WAITING_FOR_PODS, names.REASON_LIFTING, names.REASON_WAITING_FOR_PARENTS}
)
LASTS_SECONDS: Final = 1.0
REWORDED_SECONDS: Final = 0.5  # and other words for the same are written together


class Reconciler:
    """Does for one gang the one thing it needs next, each time its key comes up in the queue."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: Caches,
        fenced: Callable[[], int | None],
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._client = client
        self._clock = clock
        self._pods, self._gangs = caches.pods, caches.gangs
        self._reservations = caches.reservations
        self._fenced = fenced
        self.world = World(caches, self.queue.add, self._try_refused_again)
        answers = Answers(self.queue.add, self.queue.add_after)
        self.placer = Placer(client, clock, self.world, self._reservations, fenced, answers)
        self._board = Noticeboard(client, clock, caches.pods, self.queue.add_after, fenced)
        self._since: dict[Key, tuple[str, float]] = {}
        self._reworded: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> None:
        """Take one step for the gang; what changes by it brings the key up again."""
        if self._fenced() is None:
            return
        orphan = self.world.orphan(key)
        if orphan is not None and orphan.ours:
            await self._clear(orphan)
        view = self.world.view(key)
        if view is None:
            self._since.pop(key, None)
            self._reworded.pop(key, None)
            self.placer.forget(key)
            self._board.forget(key)
            return
        if view.gang.metadata.deletion_timestamp is not None:
            return
        now = self._clock.now()
        step = next_step(view, now)
        if view.reservation is not None and view.reservation.state is State.HELD:
            left = (deadline_of(view.reservation) - now).total_seconds()
            self.queue.add_after(key, max(left, 0.0) + 1.0)  # deadlines are whole seconds
        try:
            refusal = await self._take(view, step)
            if isinstance(step, Wait | Place):
                why = refusal.message if isinstance(refusal, Failed) else refusal
                await self._report(view, step, why)
                await self._board.post(view)
        except (Conflict, Invalid, NotFound) as error:
            # What we decided on has changed meanwhile; the cache will show it.
            _log.info("%s/%s: %s overtaken: %s", *key, type(step).__name__, error)
            self.queue.retry(key)
        except ApiError as error:
            wait = self.queue.retry(key)
            _log.warning(
                "%s/%s: %s failed, trying again in %.2f s: %s",
                *key, type(step).__name__, wait, error,
            )  # fmt: skip

    def _try_refused_again(self) -> None:
        for key in self.placer.refused():
            self.queue.add(key)

    async def _take(self, view: GangView, step: Step) -> NoFit | Failed | None:
        match step:
            case Wait():
                return None
            case Place():
                return self.placer.ask(view, step)
            case Begin(reservation):
                await self._set_state(reservation, State.LIFTING)
            case Lift(lifts):
                await self._lift(view, lifts)
            case Close(reservation):
                await self._set_state(reservation, State.BOUND)
            case Expire(reservation):
                await self._give_back(view, reservation)
            case Trim(reservation, stale):
                await self._trim(view, reservation, stale)
        return None

    async def _lift(self, view: GangView, lifts: tuple[tuple[Member, str], ...]) -> None:
        moving = self.placer.moving(view.gang.key)
        requests = [partial(self._lift_one, m, node) for m, node in lifts if m.slot not in moving]
        with self.placer.lifting(view.gang.key):
            failures = await pace.all_of(requests, LIFTS_AT_ONCE)
        for error in failures:
            _log.info("%s/%s: a pod was not lifted: %s", *view.gang.key, error)
        if failures:
            raise failures[0]

    async def _lift_one(self, member: Member, node: str) -> None:
        meta = member.pod.metadata
        if self._fenced() is None:
            return
        patch = pinning.lift(member.pod, node)
        answer = await self._client.json_patch(PODS, meta.name, patch, meta.namespace)
        self._pods.observe(answer)

    async def _set_state(self, reservation: Reservation, state: State) -> None:
        meta = reservation.metadata
        body: JsonObject = {
            # Guards against a successor that has moved it on while we thought we still led.
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {"state": state.value},
        }
        answer = await self._client.merge_patch(
            RESERVATIONS, meta.name, body, meta.namespace, subresource="status"
        )
        self._reservations.observe(answer)

    async def _trim(
        self, view: GangView, reservation: Reservation, stale: frozenset[SlotKey]
    ) -> None:
        meta = reservation.metadata
        homes = booking.homes(reservation, without=stale)
        body = booking.trimmed(reservation, stale, self.world.standing(view.gang, homes))
        answer = await self._client.merge_patch(RESERVATIONS, meta.name, body, meta.namespace)
        self._reservations.observe(answer)

    async def _give_back(self, view: GangView, reservation: Reservation) -> None:
        meta = reservation.metadata
        unfit = sorted(f"{clique}/{index}" for clique, index in view.unfit)
        why = f"{', '.join(unfit)} serves no more" if unfit else "its deadline has passed"
        _log.info("%s/%s: reservation given back: %s", meta.namespace, meta.name, why)
        how = Deletion(uid=meta.uid, resource_version=meta.resource_version)
        await self._client.delete(RESERVATIONS, meta.name, meta.namespace, how)

    async def _clear(self, orphan: Reservation) -> None:
        """Delete what a gang that is gone has left. Garbage collection would, in its own time."""
        meta = orphan.metadata
        how = Deletion(uid=meta.uid, resource_version=meta.resource_version)
        try:
            await self._client.delete(RESERVATIONS, meta.name, meta.namespace, how)
        except ApiError as error:
            _log.info("%s/%s: left to garbage collection: %s", meta.namespace, meta.name, error)

    async def _report(
        self, view: GangView, step: Wait | Place, refusal: NoFit | str | None
    ) -> None:
        """Write the gang's status if it says something new that lasts.

        Other steps say nothing: the next look, in a moment, knows better.
        """
        state = view.reservation.state if view.reservation is not None else None
        if isinstance(step, Place) and not step.minimum and state is State.LIFTING:
            step, refusal = settled(view), None  # extras keep nobody from starting
        if isinstance(step, Place) and refusal is None and state is not State.BOUND:
            return  # the engine answers in a moment
        unheeded = self.world.unheeded(view.gang)
        status = reporting.status(view, step, refusal, self._clock.now(), unheeded)
        key, there = view.gang.key, view.gang.status
        if reporting.same(there, status):
            self._reworded.pop(key, None)
            return
        if not self._lasts(key, status) or (_reworded(there, status) and not self._retold(key)):
            return
        await self._write_status(view, status)

    def _lasts(self, key: Key, status: PodGangStatus) -> bool:
        """Whether the reason has stood long enough to be told; looks again later if not."""
        reason = status.conditions[0].reason
        now = self._clock.monotonic()
        before = self._since.get(key)
        if before is None or before[0] != reason:
            self._since[key] = before = (reason, now)
        left = before[1] + LASTS_SECONDS - now
        if reason not in PASSING or left <= 0:
            return True
        self.queue.add_after(key, left)
        return False

    def _retold(self, key: Key) -> bool:
        """Whether the same is to be said in other words now: not anew for each pod of many."""
        now = self._clock.monotonic()
        left = self._reworded.setdefault(key, now) + REWORDED_SECONDS - now
        if left <= 0:
            del self._reworded[key]
            return True
        self.queue.add_after(key, left)
        return False

    async def _write_status(self, view: GangView, status: PodGangStatus) -> None:
        meta = view.gang.metadata
        body: JsonObject = {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            # With the UID, what is said of a gang that is gone cannot land on its namesake.
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        answer = await self._client.apply(
            PODGANGS, meta.name, body, meta.namespace, subresource="status",
            manager=names.GANGS_MANAGER,
        )  # fmt: skip
        self._gangs.observe(answer)


def _reworded(there: PodGangStatus, wanted: PodGangStatus) -> bool:
    """Whether only messages would change."""
    said = {c.type: (c.status, c.reason) for c in there.conditions}
    return all(said.get(c.type) == (c.status, c.reason) for c in wanted.conditions) and (
        (there.phase, there.placement_score) == (wanted.phase, wanted.placement_score)
    )
