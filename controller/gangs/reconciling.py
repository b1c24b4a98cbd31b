"""Takes each gang through its steps: looks, decides purely, acts thinly, says how it stands."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

from api.jsons import JsonObject
from api.objects import timestamp
from api.reservation import State
from api.streams import Pod
from controller import pace
from controller.exposing import Metrics
from controller.gangs import booking, patience, pinning, watching
from controller.gangs.announcing import Announcer, Telling
from controller.gangs.caches import Caches
from controller.gangs.deciding import (
    Abandon,
    Begin,
    Close,
    Evict,
    Expire,
    Extend,
    Lift,
    Place,
    Repair,
    Step,
    Trim,
    Wait,
    abandoned,
    next_deadline,
    next_step,
)
from controller.gangs.evicting import Evictor
from controller.gangs.forecasting import Forecaster
from controller.gangs.holding import Holder, is_rival
from controller.gangs.metering import Known, Meters
from controller.gangs.noticing import Noticeboard
from controller.gangs.placing import Answers, Failed, Placer
from controller.gangs.readiness import Herald
from controller.gangs.releasing import Window
from controller.gangs.terms import Term
from controller.gangs.tracing import Tracing
from controller.gangs.views import GangView, Member, Reservation, SlotKey, pinned_node
from controller.gangs.world import World
from controller.resting import Rests
from kube import logs
from kube.cache import Change, Deleted
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import ApiError, Conflict, Invalid, NotFound
from kube.objects import Key
from kube.resources import PODS, RESERVATIONS
from kube.tracing import Record
from kube.workqueue import Workqueue
from scheduler.answers import NoFit

_log = logging.getLogger(__name__)

# Of one gang, which may have all there are while no other lifts; yet those of the next come in
# between, as no more than these stand in line before them.
LIFTS_AT_ONCE: Final = 32
# And of all: each more is a connection more, and to open one costs as much as to lift several pods.
ALL_LIFTS_AT_ONCE: Final = 32
EACH_OTHER: Final = 0.002  # seconds that a gang in a crowd rests for each other one
# Beside the time that a pod needs to be bound, so that it is not written anew for each few of them.
SPARE_SECONDS: Final = 15.0

_Move: TypeAlias = Begin | Extend | Close | Abandon
"""Steps that are written into a reservation's status."""


class Reconciler:
    """Does for one gang the one thing it needs next, each time its key comes up in the queue."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: Caches,
        fenced: Callable[[], int | None],
        instance: str = "",
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._rivals: set[str] = set()  # who else may be given what they see free, by UID
        self._client = client
        self._clock = clock
        self._pods, self._gangs = caches.pods, caches.gangs
        self._reservations = caches.reservations
        self._fenced = fenced
        self._rests = Rests(self.queue, clock, EACH_OTHER)
        self.world = World(caches, self._rests.wake, self._try_refused_again)
        self.window = Window(clock, self.queue.add)
        self._pods.subscribe(self._on_pod)
        answers = Answers(self.queue.add, self.queue.add_after)
        self.placer = Placer(client, clock, self.world, self._reservations, fenced, answers)
        self.forecaster = Forecaster(clock, self.world, self.placer.engine, answers)
        self._board = Noticeboard(client, clock, caches.pods, self.queue.add_after, fenced)
        self._holder = Holder(client, clock, caches.pods, self.queue.add_after, fenced)
        self._herald = Herald(client, clock, caches.pods, fenced)
        told = Telling(self.world, caches.gangs, self.queue.add_after)
        self.announcer = Announcer(client, clock, told, instance)
        self._room = asyncio.Semaphore(ALL_LIFTS_AT_ONCE)
        self._evictor = Evictor(client, clock, caches.pods, fenced)

    def count(self, metrics: Metrics, record: Record | None = None) -> None:
        """Have what happens counted and timed from now on, and told in spans to who listens."""
        gangs, reservations = self.world.known()
        known = Known(self.world.stages, gangs.get, reservations.get, self._depths)
        meters = Meters(metrics, self._clock, lambda: self._fenced() is not None, known)
        self._reservations.subscribe(meters.on_reservation)
        self.placer.meters = meters
        if record is not None:
            leads = self._fenced
            tracing = Tracing(self._clock, lambda: leads() is not None, known, record, meters)
            self._reservations.subscribe(tracing.on_reservation)
            self._pods.subscribe(tracing.on_pod)
            self.placer.meters = tracing
        metrics.queues.show({"podgang": self.queue})

    def give_time(self, timeout: timedelta) -> None:
        """Have gangs that say nothing of it wait for so long at the most, from now on."""
        if timeout == self.announcer.timeout:
            return
        self.announcer.timeout = timeout
        # One that is at rest would else hear of it only when something happens to it.
        gangs, _ = self.world.known()
        for key in list(gangs):
            self.queue.add(key)

    def _depths(self) -> tuple[int, int]:
        return len(self.queue), self.placer.depth()

    async def take_over(self) -> None:
        """Count what there is, and what was lifted before us and kube-scheduler has not bound."""
        await self.placer.count()
        generation = self._fenced()
        if generation is not None:
            there = (each.metadata for each in self._reservations.objects.values())
            self.world.term = Term(generation, {each.uid: each.generation for each in there})
        self.window.inherit(
            pod.metadata.uid
            for pod in self._pods
            # The pods of DaemonSets are pinned too.
            if self.world.is_member(pod) and not pod.gates and not pod.spec.node_name
            if pinned_node(pod) and not watching.refused(pod) and not pod.finished
        )

    async def run(self, gangs_at_once: int) -> None:
        """Take all gangs through their steps until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.placer.run())
            group.create_task(self.forecaster.run())
            group.create_task(self.announcer.voice.run())
            await self.queue.run(logs.of("PodGang", self.reconcile), gangs_at_once)

    async def reconcile(self, key: Key) -> None:
        """Take one step for the gang; what changes by it brings the key up again."""
        if self._fenced() is None:
            return
        orphan = self.world.orphan(key)
        if orphan is not None and orphan.ours:
            await self._clear(orphan)
        begun = self._clock.monotonic()
        view = self.world.view(key)
        if view is None:
            self._forget(key)
            return
        logs.part_of(view.gang.origin)
        if view.gang.metadata.deletion_timestamp is not None:
            self.window.leave(key)
            return
        now = self._clock.now()
        timeout = patience.timeout_of(view.gang, self.announcer.timeout)
        step = patience.given_up(view, now, timeout) or next_step(view, now)
        if isinstance(step, Wait):
            self._rests.looked(key, begun)  # in vain
        self._forget_wishes(key, step)
        self._look_again_in_time(view, now, patience.due(view, now, timeout))
        try:
            with self.window.turn(key):
                refusal = self.forecaster.ask(view, step) or await self._take(view, step)
            no_room = isinstance(refusal, NoFit)  # and not only no answer from the API server
            given_up = abandoned(view, step, self.placer.refused_for(key) if no_room else 0.0)
            if given_up is not None:
                await self._take(view, given_up)
            elif isinstance(step, Wait | Place):
                await self._say(view, step, refusal)
        except (Conflict, Invalid, NotFound) as error:
            # What we decided on has changed meanwhile; the cache will show it.
            _log.info("%s/%s: %s overtaken: %s", *key, type(step).__name__, error)
            self.queue.retry(key)
        except ApiError as error:
            self.queue.blame(key)
            wait = self.queue.retry(key)
            _log.warning(
                "%s/%s: %s failed, trying again in %.2f s: %s",
                *key, type(step).__name__, wait, error,
            )  # fmt: skip

    async def _say(
        self, view: GangView, step: Wait | Place, refusal: NoFit | Failed | None
    ) -> None:
        """Tell people and pods how the gang stands."""
        why = refusal.message if isinstance(refusal, Failed) else refusal
        if not self.forecaster.is_asked(view.gang.key):
            await self.announcer.report(view, step, why)
        await self._board.post(view)
        await self._herald.tell(view)
        await self._holder.hold(view)

    async def _hold_for_their_turn(self, key: Key) -> None:
        """Keep the room of those whose turn to be let go has not come from others who want it."""
        view = self.world.view(key) if self._rivals else None  # without who was let go just now
        if view is not None:
            await self._holder.hold(view, rivals=True)

    def _forget(self, key: Key) -> None:
        """Let go of all that is remembered of a gang that is gone."""
        self._rests.forget(key)
        self.announcer.forget(key)
        self.forecaster.forget(key)
        self.placer.forget(key)
        self._board.forget(key)
        self._holder.forget(key)
        self.window.leave(key)

    def _forget_wishes(self, key: Key, step: Step) -> None:
        """Let go of a rest, a turn and a refusal that the gang has no use for now."""
        if not isinstance(step, Wait):
            self._rests.forget(key)
        if not isinstance(step, Lift | Extend):
            self.window.leave(key)
        if not isinstance(step, Place):
            self.placer.lacks_nothing(key)

    def _look_again_in_time(self, view: GangView, now: datetime, late: datetime | None) -> None:
        """Have the gang looked at when its next deadline has passed, and when it is late."""
        for due in (next_deadline(view, now), late):
            if due is not None:
                # Deadlines are whole seconds.
                self.queue.add_after(view.gang.key, (due - now).total_seconds() + 1.0)
        reservation = view.reservation
        if reservation is None:
            return
        if reservation.state is State.LIFTING and self.placer.refused_for(view.gang.key):
            self.queue.add_after(view.gang.key, watching.GRACE_SECONDS)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        rival = not isinstance(change, Deleted) and is_rival(pod) and not self.world.is_member(pod)
        (self._rivals.add if rival else self._rivals.discard)(pod.metadata.uid)
        bound = bool(pod.spec.node_name)
        # One that was refused may wait for long, and need not keep others from being tried.
        if bound or pod.finished or isinstance(change, Deleted) or watching.refused(pod):
            self.window.settled(pod.metadata.uid, bound=bound)

    def _try_refused_again(self) -> None:
        for key in (*self.placer.refused(), *self.forecaster.refused()):
            self.queue.add(key)

    async def _take(self, view: GangView, step: Step) -> NoFit | Failed | None:
        match step:
            case Wait():
                return None
            case Place():
                return self.placer.ask(view, step)
            case Lift(lifts):
                await self._lift(view, lifts)
                await self._hold_for_their_turn(view.gang.key)
            case Evict(members):
                await self._evictor.evict(view, members)
            case Expire(reservation):
                await self._give_back(view, reservation)
            case Trim(reservation, slots):
                await self._take_out(view, reservation, slots, None)
            case Repair(reservation, slots, refusals):
                await self._take_out(view, reservation, slots, refusals)
            case Begin() | Extend() | Close() | Abandon():
                await self._set_state(step)
        return None

    async def _lift(self, view: GangView, lifts: tuple[tuple[Member, str], ...]) -> None:
        moving = self.placer.moving(view.gang.key)
        still = [(m, node) for m, node in lifts if m.slot not in moving]
        now = still[: self.window.grant(view.gang.key, len(still))]
        for member, _ in now:
            self.window.lifted(member.pod.metadata.uid)  # before anybody else asks for a turn
        still_gated: list[str] = []
        requests = [partial(self._lift_one, m, node, still_gated) for m, node in now]
        with self.placer.lifting(view.gang.key):
            failures = await pace.all_of(requests, LIFTS_AT_ONCE)
        for uid in still_gated:
            self.window.settled(uid, bound=False)
        for error in failures:
            _log.info("%s/%s: a pod was not lifted: %s", *view.gang.key, error)
        if failures:
            raise failures[0]

    async def _lift_one(self, member: Member, node: str, still_gated: list[str]) -> None:
        meta = member.pod.metadata
        async with self._room:
            if self._fenced() is None:
                still_gated.append(meta.uid)
                return
            patch = pinning.lift(member.pod, node)
            try:
                answer = await self._client.json_patch(PODS, meta.name, patch, meta.namespace)
            except ApiError:
                still_gated.append(meta.uid)
                raise
        self._pods.observe(answer)

    async def _set_state(self, step: _Move) -> None:
        reservation = step.reservation
        meta = reservation.metadata
        body: JsonObject = {
            # Guards against a successor that has moved it on while we thought we still led.
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {**self._said(step), "attempt": reservation.spec.attempt},
        }
        answer = await self._client.merge_patch(
            RESERVATIONS, meta.name, body, meta.namespace, subresource="status"
        )
        self._reservations.observe(answer)

    def _said(self, step: _Move) -> JsonObject:
        """Write down what becomes of a reservation by a step."""
        now, size = self._clock.now(), step.reservation.size
        seconds = SPARE_SECONDS + 2.0 * self.window.seconds(size)
        bind_by = timestamp(now + watching.PATIENCE + timedelta(seconds=seconds))
        match step:
            case Begin():
                return {"state": State.LIFTING.value, "bindBy": bind_by}
            case Extend(reservation):
                return {"state": reservation.state.value, "bindBy": bind_by}
            case Close():
                return {"state": State.BOUND.value}
            case Abandon(reservation, message):
                meta, wait = reservation.metadata, watching.pause(reservation.spec.attempt)
                _log.warning("%s/%s: rolled back: %s", meta.namespace, meta.name, message)
                return {
                    "state": State.ROLLED_BACK.value,
                    "retryAt": timestamp(now + wait),
                    "message": message,
                }

    async def _take_out(
        self,
        view: GangView,
        reservation: Reservation,
        slots: frozenset[SlotKey],
        refusals: booking.Refusals | None,
    ) -> None:
        meta = reservation.metadata
        homes = booking.homes(reservation, without=slots)
        standing = self.world.standing(view.gang, homes)
        body = (
            booking.trimmed(reservation, slots, standing)
            if refusals is None
            else booking.repaired(reservation, slots, standing, refusals)
        )
        answer = await self._client.merge_patch(RESERVATIONS, meta.name, body, meta.namespace)
        self._reservations.observe(answer)

    async def _give_back(self, view: GangView, reservation: Reservation) -> None:
        meta = reservation.metadata
        unfit = sorted(f"{clique}/{index}" for clique, index in view.unfit)
        why = f"{', '.join(unfit)} serves no more" if unfit else "its deadline has passed"
        if view.overtaken:
            why = f"a leader of generation {reservation.spec.generation} wrote it after its time"
        _log.info("%s/%s: reservation given back: %s", meta.namespace, meta.name, why)
        if reservation.spec.attempt:
            # How often it was tried must not be forgotten, or it is never tried less often.
            slots = frozenset(view.nodes_by_slot())
            await self._take_out(view, reservation, slots, None)
            return
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
