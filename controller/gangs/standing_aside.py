"""Lets gated pods go while gang scheduling, or that of sets, is switched off.

In this order, each step decided from the objects as they are, so that a successor goes on from any
prefix of the writes:

1. It waits until new pods are neither given our gate nor refused for want of it: the guards and the
   webhook configuration say with which feature gates the chart was installed.
2. It deletes the reservations of gangs. One that is left would say later that its gang was rolled
   back, and have its pods deleted, which run by then.
3. It sets pods free, one patch each, and tells those that wait for their gang to be ready that they
   need not. Pods that come after are treated alike, and each gang is said to be nobody's.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from api import names
from api.features import FLAG, Features, read
from api.streams import Custom, Meta, Pod
from controller import pace
from controller.gangs import companion, freeing, plain_slots, readiness, reporting
from controller.gangs.announcing import write
from controller.gangs.caches import Caches
from controller.gangs.entries import read_reservation
from controller.gangs.views import Reservation
from controller.podgang import read_gang
from kube.cache import Change, Deleted
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from kube.objects import Key, ObjectMeta
from kube.resources import GUARD_BINDINGS, MUTATING_WEBHOOKS, PODS, RESERVATIONS, Resource
from kube.workqueue import Workqueue

_log = logging.getLogger(__name__)

LOOK_EVERY: Final = 1.0  # seconds, while something must be over first
AT_ONCE: Final = 16
# What gates new pods, or refuses those without our gate.
GATING: Final[tuple[tuple[Resource, str], ...]] = (
    (MUTATING_WEBHOOKS, names.WEBHOOK_CONFIGURATION),
    (GUARD_BINDINGS, names.GANG_PODS_GUARD),
)


class _Meta(ObjectMeta, frozen=True, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Installed(msgspec.Struct, frozen=True):
    metadata: _Meta


@dataclass(frozen=True)
class Aside:
    """What is switched off. Pure questions about single objects."""

    features: Features

    def concerns(self, pod: Pod) -> bool:
        """Whether the pod is none of our business any more."""
        return not self.features.gang_scheduling or (
            not self.features.grove_integration and names.PODGANG_LABEL in pod.metadata.labels
        )

    def has_work(self, pod: Pod) -> bool:
        """Whether the pod is still held back by us."""
        over = pod.finished or pod.metadata.deletion_timestamp is not None
        if over or not self.concerns(pod):
            return False
        return names.GATE in pod.gates or readiness.waits(pod)

    def gives_back(self, reservation: Reservation) -> bool:
        """Whether a reservation is to go. Those of sets go by themselves, as nobody's any more."""
        return reservation.ours and not self.features.gang_scheduling

    def leaves(self, gang: Meta) -> bool:
        """Whether a PodGang is nobody's business, as its pods are."""
        return not self.features.gang_scheduling or not (
            self.features.grove_integration or plain_slots.is_plain(gang)
        )

    def allows(self, said: Features) -> bool:
        """Whether what the chart was installed with switches off as much as we were told to."""
        wanted = self.features
        gangs = wanted.gang_scheduling or not said.gang_scheduling
        return gangs and (wanted.grove_integration or not said.sets)


@dataclass
class StandingAside:
    """Does so while it leads."""

    client: Client
    clock: Clock
    caches: Caches
    aside: Aside
    fenced: Callable[[], int | None]
    _told: str = field(default="", init=False)

    async def run(self) -> None:
        """Let go of all there is, and of all that comes, until cancelled."""
        while why := await self.waits_for():
            if why != self._told:
                _log.warning("pods stay gated: %s", why)
            self._told = why
            await self.clock.sleep(LOOK_EVERY)
        while await self.give_back():
            await self.clock.sleep(LOOK_EVERY)
        queue: Workqueue[Key] = Workqueue(self.clock)
        self.caches.pods.subscribe(partial(self._on_pod, queue))
        held = [pod for pod in self.caches.pods if self.aside.has_work(pod)]
        _log.warning("standing aside by %s: letting %d pods go", FLAG, len(held))
        for pod in held:
            queue.add((pod.metadata.namespace, pod.metadata.name))
        gangs: Workqueue[Key] = Workqueue(self.clock)
        self.caches.gangs.subscribe(partial(self._on_gang, gangs))
        for each in self.caches.gangs:
            gangs.add((each.metadata.namespace, each.metadata.name))
        async with asyncio.TaskGroup() as group:
            group.create_task(queue.run(partial(self.let_go, queue), AT_ONCE))
            group.create_task(gangs.run(partial(self.tell, gangs), 1))

    async def waits_for(self) -> str:
        """Say what would gate new pods all the same, or ""."""
        for kind, name in GATING:
            try:
                found = await self.client.get(kind, _Installed, name)
            except NotFound:
                continue
            except Forbidden as error:
                _log.warning("whether new pods are gated cannot be told: %s", error)
                continue
            except ApiError as error:
                return f"{kind.kind} {name} cannot be read: {error}"
            if not self.aside.allows(_said(found)):
                wanted = self.aside.features.text
                return (
                    f"{kind.kind} {name} gates new ones; have the chart's featureGates say {wanted}"
                )
        return ""

    async def give_back(self) -> int:
        """Delete reservations; returns how many are left."""
        read_ = (read_reservation(found) for found in self.caches.reservations)
        gone = [each for each in read_ if each is not None and self.aside.gives_back(each)]
        failures = await pace.all_of([partial(self._delete, each) for each in gone], AT_ONCE)
        left = [error for error in failures if not isinstance(error, NotFound | Conflict)]
        for error in left:
            _log.warning("a reservation stays for now: %s", error)
        return len(left)

    async def let_go(self, queue: Workqueue[Key], key: Key) -> None:
        """Set a pod free and have it become Ready; one write at a time."""
        pod = self.caches.pods.get(*key)
        if pod is None or not self.aside.has_work(pod) or self.fenced() is None:
            return
        now = self.clock.now()
        try:
            if names.GATE in pod.gates:
                patch = freeing.patch(pod, now)
                answer = await self.client.json_patch(PODS, key[1], patch, key[0])
            else:
                why = "gang scheduling is switched off"
                condition = readiness.announcement(now, names.REASON_GANGS_OFF, why)
                answer = await readiness.announce(self.client, pod, condition)
        except (Conflict, Invalid, NotFound) as error:
            _log.info("%s/%s: overtaken: %s", *key, error)
            queue.retry(key)
        except ApiError as error:
            queue.blame(key)
            wait = queue.retry(key)
            _log.warning("%s/%s: still held, again in %.2f s: %s", *key, wait, error)
        else:
            self.caches.pods.observe(answer)
            queue.add(key)  # for what is left to write

    async def tell(self, queue: Workqueue[Key], key: Key) -> None:
        """Say of a gang that nobody gangs it."""
        found = self.caches.gangs.get(*key)
        gang = read_gang(found) if found is not None and self.aside.leaves(found.metadata) else None
        if gang is None or self.fenced() is None:
            return
        mode, status = self.caches.mode, reporting.switched_off(gang, self.clock.now())
        wanted = companion.ours(gang, status) if mode.companion else status
        if reporting.same(gang.status, wanted):
            return
        try:
            answer = await write(self.client, gang, wanted, companion=mode.companion)
        except ApiError as error:
            queue.blame(key)
            wait = queue.retry(key)
            _log.info("%s/%s: not told yet, again in %.2f s: %s", *key, wait, error)
        else:
            self.caches.gangs.observe(answer)

    async def _delete(self, reservation: Reservation) -> None:
        if self.fenced() is None:
            return
        meta = reservation.metadata
        how = Deletion(uid=meta.uid)
        await self.client.delete(RESERVATIONS, meta.name, meta.namespace, how)

    def _on_gang(self, queue: Workqueue[Key], change: Change[Custom]) -> None:
        if not isinstance(change, Deleted):
            queue.add((change.new.metadata.namespace, change.new.metadata.name))

    def _on_pod(self, queue: Workqueue[Key], change: Change[Pod]) -> None:
        if not isinstance(change, Deleted) and self.aside.has_work(change.new):
            queue.add((change.new.metadata.namespace, change.new.metadata.name))


def _said(found: _Installed) -> Features:
    """Read with which gates an object was installed; one that does not say was so with all on."""
    try:
        return read(found.metadata.annotations.get(names.FEATURES_ANNOTATION, ""))
    except ValueError:
        return Features()
