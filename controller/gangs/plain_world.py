"""What `gangs` knows of plain gangs: pods by the gang they claim, and views built from caches."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from api import quantities
from api.reservation import State
from api.streams import Custom, Meta, Pod
from controller.gangs import plain_pods, plain_slots, topologies
from controller.gangs.caches import Caches
from controller.gangs.entries import read_reservation
from controller.gangs.plain_deciding import Levels, PlainView
from controller.gangs.plain_slots import Ledger, Room
from controller.podgang import Gang, read_gang
from kube.cache import Added, Cache, Change, Deleted, Modified
from kube.objects import Key


@dataclass(frozen=True)
class Listeners:
    """Whom to tell of a gang: that something was written about it, or that its pods change."""

    written: Callable[[Key], None]
    moved: Callable[[Key], None]


class PlainWorld:
    """The caches, indexed by plain gang. `schedulers` are those whose pods are ours."""

    def __init__(
        self,
        caches: Caches,
        bindings: Cache[Custom],
        schedulers: Collection[str],
        listeners: Listeners,
    ) -> None:
        self._caches = caches
        self._schedulers = frozenset(schedulers)
        self._listeners = listeners
        self._pods: dict[Key, set[Key]] = {}
        self._topologies: dict[str, Levels] = {}
        caches.pods.subscribe(self._on_pod)
        caches.gangs.subscribe(self._on_gang)
        caches.reservations.subscribe(self._on_reservation)
        bindings.subscribe(self._on_binding)

    def view(self, key: Key) -> PlainView | None:
        """Look at a plain gang; None if the PodGang of its name cannot be read."""
        found = self._caches.gangs.get(*key)
        there = read_gang(found) if found is not None else None
        if found is not None and there is None:
            return None
        pods = (self._caches.pods.get(*pod) for pod in sorted(self._pods.get(key, ())))
        return PlainView(
            key,
            tuple(pod for pod in pods if pod is not None),
            there,
            self._ledger(there) if there else Ledger({}, {}),
            dict(self._topologies),
        )

    def size(self, key: Key) -> int:
        """How many pods claim the gang."""
        return len(self._pods.get(key, ()))

    def _ledger(self, gang: Gang) -> Ledger:
        found = self._caches.reservations.get(*gang.key)
        reservation = read_reservation(found) if found is not None else None
        if reservation is None or reservation.spec.gang.uid != gang.metadata.uid:
            return Ledger({}, {})
        rooms = {
            slot.index: Room(slot.node, quantities.amounts(requests))
            for _, slot, requests in reservation.slots()
        }
        nodes = {room.node: self._caches.nodes.get("", room.node) for room in rooms.values()}
        return Ledger(
            rooms,
            {name: node for name, node in nodes.items() if node is not None},
            reservation.state in (State.LIFTING, State.BOUND),
            reservation.state is State.ROLLED_BACK or reservation.spec.attempt > 0,
        )

    def _on_pod(self, change: Change[Pod]) -> None:
        before = None if isinstance(change, Added) else self._gang_of(change.old)
        now = None if isinstance(change, Deleted) else self._gang_of(change.new)
        if before == now and (now is None or _says_the_same(change)):
            return
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        pod = (meta.namespace, meta.name)
        if before is not None and before != now:
            self._pods.get(before, set()).discard(pod)
            if not self._pods.get(before):
                self._pods.pop(before, None)
        if now is not None:
            self._pods.setdefault(now, set()).add(pod)
        for gang in {before, now} - {None}:
            if gang is not None:
                self._listeners.moved(gang)

    def _gang_of(self, pod: Pod) -> Key | None:
        ours = pod.spec.scheduler_name in self._schedulers
        return plain_pods.gang_of(pod) if ours else None

    def _on_gang(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = _key(meta)
        if key in self._pods or plain_slots.is_plain(meta):
            self._listeners.written(key)

    def _on_reservation(self, change: Change[Custom]) -> None:
        key = _key((change.old if isinstance(change, Deleted) else change.new).metadata)
        if key in self._pods:
            self._listeners.moved(key)

    def _on_binding(self, change: Change[Custom]) -> None:
        name = (change.old if isinstance(change, Deleted) else change.new).metadata.name
        before = self._topologies.pop(name, None)
        if not isinstance(change, Deleted):
            self._topologies[name] = topologies.read(change.new)
        if self._topologies.get(name) != before:
            for key in self._pods:
                self._listeners.moved(key)


def _key(meta: Meta) -> Key:
    return meta.namespace, meta.name


def _says_the_same(change: Change[Pod]) -> bool:
    """Whether nothing changed that plain gangs go by: pods report about themselves all the time."""
    if not isinstance(change, Modified):
        return False
    old, new = change.old, change.new
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.labels == new.metadata.labels
        and plain_pods.whereabouts(old) == plain_pods.whereabouts(new)
        and plain_pods.timeout(old) == plain_pods.timeout(new)
        and old.gates == new.gates
        and plain_pods.lives(old) == plain_pods.lives(new)
    )
