"""What `gangs` knows: caches of nodes, pods, gangs and reservations, and views built from them."""

import logging
from collections.abc import Callable, Iterator, Mapping

from pydantic import ValidationError
from typing_extensions import override

from api import names
from api.podgang import PodGangSpec, PodGangStatus
from api.reservation import ReservationSpec, ReservationStatus, State
from api.streams import Custom, Node, Pod
from controller.gangs.views import (
    Gang,
    GangView,
    Key,
    Reservation,
    members_of,
)
from kube.cache import Added, Cache, Change, Deleted, Modified
from scheduler.eligible import Constraints, obstacle

_log = logging.getLogger(__name__)


class World:
    """The caches, indexed by gang.

    `touched` is called with a gang's key for every change that could matter to it. `room` counts up
    whenever room may have come free or a node may have become better: what was refused before that
    is worth another try.
    """

    def __init__(
        self,
        caches: tuple[Cache[Node], Cache[Pod], Cache[Custom], Cache[Custom]],
        touched: Callable[[Key], None],
        freed: Callable[[], None],
    ) -> None:
        self.room = 0
        self.nodes, self.pods, gangs, reservations = caches
        self.pod_map: Mapping[Key, Pod] = _Pods(self.pods)
        self._touched = touched
        self._freed = freed
        self._gangs: dict[Key, Gang] = {}
        self._reservations: dict[Key, Reservation] = {}
        self._gang_of_pod: dict[Key, Key] = {}
        self._bases: dict[Key, set[Key]] = {}
        gangs.subscribe(self._on_gang)
        reservations.subscribe(self._on_reservation)
        self.pods.subscribe(self._on_pod)
        self.nodes.subscribe(self._on_node)

    def gangs(self) -> Mapping[Key, Gang]:
        """Give every gang there is."""
        return self._gangs

    def view(self, key: Key) -> GangView | None:
        """Look at one gang, or None if there is none."""
        gang = self._gangs.get(key)
        if gang is None:
            return None
        members = members_of(gang, self.pod_map)
        reservation = self._reservations.get(key)
        if reservation is not None and reservation.spec.gang.uid != gang.metadata.uid:
            reservation = None  # of a namesake that is gone; garbage collection takes it
        view = GangView(gang, members, reservation, self._base_started(gang))
        return GangView(gang, members, reservation, view.base_started, self._lost(view))

    def views(self) -> Iterator[GangView]:
        """Look at every gang that has a reservation: those are the ones that take room."""
        for key in self._reservations:
            view = self.view(key)
            if view is not None and view.reservation is not None:
                yield view

    def orphans(self) -> Iterator[Reservation]:
        """List reservations whose gang is gone."""
        for key, reservation in self._reservations.items():
            gang = self._gangs.get(key)
            if gang is None or gang.metadata.uid != reservation.spec.gang.uid:
                yield reservation

    def _base_started(self, gang: Gang) -> bool:
        base = gang.metadata.labels.get(names.BASE_PODGANG_LABEL)
        if not base:
            return True
        reservation = self._reservations.get((gang.metadata.namespace, base))
        return reservation is not None and reservation.state is State.BOUND

    def _lost(self, view: GangView) -> frozenset[str]:
        """Name reserved nodes that would not take their pod now."""
        nodes = view.nodes_by_slot()
        return frozenset(
            nodes[member.slot]
            for member in view.members
            if member.gated
            and member.slot in nodes
            and self._refuses(nodes[member.slot], Constraints.of(member.pod))
        )

    def _refuses(self, name: str, constraints: Constraints) -> bool:
        node = self.nodes.get("", name)
        return node is None or bool(obstacle(node, constraints))

    def _on_gang(self, change: Change[Custom]) -> None:
        if isinstance(change, Deleted):
            meta = change.old.metadata
            gone = self._gangs.pop((meta.namespace, meta.name), None)
            for _, pod in gone.references() if gone else ():
                self._gang_of_pod.pop(pod, None)
            self._more_room()
            return
        gang = read_gang(change.new)
        if gang is None:
            return
        self._gangs[gang.key] = gang
        for _, pod in gang.references():
            self._gang_of_pod[pod] = gang.key
        base = gang.metadata.labels.get(names.BASE_PODGANG_LABEL)
        if base:
            self._bases.setdefault((gang.metadata.namespace, base), set()).add(gang.key)
        self._touched(gang.key)

    def _on_reservation(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = (meta.namespace, meta.name)
        if isinstance(change, Deleted):
            self._reservations.pop(key, None)
            self._more_room()
        else:
            reservation = read_reservation(change.new)
            if reservation is not None:
                self._reservations[key] = reservation
                for waiting in self._bases.get(key, ()):
                    self._touched(waiting)
        self._touched(key)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        key = (pod.metadata.namespace, pod.metadata.name)
        gang = self._gang_of_pod.get(key)
        if gang is not None:
            self._touched(gang)
        ended = isinstance(change, Deleted) or (
            isinstance(change, Modified) and pod.finished and not change.old.finished
        )
        if ended and pod.spec.node_name:
            self._more_room()

    def _on_node(self, change: Change[Node]) -> None:
        match change:
            case Modified(old, new) if _same_offer(old, new):
                return  # a heartbeat
            case Added() | Modified() | Deleted():
                self._more_room()
                for key, reservation in self._reservations.items():
                    if reservation.state is not State.BOUND:
                        self._touched(key)

    def _more_room(self) -> None:
        self.room += 1
        self._freed()


class _Pods(Mapping[Key, Pod]):
    """The pod cache as the mapping that views are built from."""

    def __init__(self, cache: Cache[Pod]) -> None:
        self._cache = cache

    @override
    def __getitem__(self, key: Key) -> Pod:
        pod = self._cache.get(*key)
        if pod is None:
            raise KeyError(key)
        return pod

    @override
    def __iter__(self) -> Iterator[Key]:
        return iter([key for key, _ in self._cache.items()])

    @override
    def __len__(self) -> int:
        return len(self._cache)


def read_gang(found: Custom) -> Gang | None:
    """Read a gang, or say in the log why it cannot be read."""
    try:
        return Gang(
            found.metadata,
            PodGangSpec.model_validate_json(bytes(found.spec)),
            PodGangStatus.model_validate_json(bytes(found.status)),
        )
    except ValidationError as error:
        _log.error("PodGang %s/%s cannot be read: %s", *_names(found), error)
        return None


def read_reservation(found: Custom) -> Reservation | None:
    """Read a reservation, or say in the log why it cannot be read."""
    try:
        return Reservation(
            found.metadata,
            ReservationSpec.model_validate_json(bytes(found.spec)),
            ReservationStatus.model_validate_json(bytes(found.status)),
        )
    except ValidationError as error:
        _log.error("Reservation %s/%s cannot be read: %s", *_names(found), error)
        return None


def _names(found: Custom) -> Key:
    return found.metadata.namespace, found.metadata.name


def _same_offer(old: Node, new: Node) -> bool:
    """Whether the node offers what it did, to the pods it did."""
    return (
        old.ready == new.ready
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.metadata.labels == new.metadata.labels
    )
