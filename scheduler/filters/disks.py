"""How many volumes each node has for claims to local storage, of classes that make none themselves.

Kept up by events. Claims of one class that ask for the same have one column; a volume counts in
each column whose demand it meets.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from api import names, quantities
from api.claims import PersistentVolume, PersistentVolumeClaim, StorageClass
from api.quantities import Amounts, BadQuantityError
from api.streams import LabelSelector, Node, NodeSelector
from scheduler.filters.constraints import Requirements, requirements, selects
from scheduler.filters.counted import Shelf, merged, volumes_of, within
from scheduler.filters.selecting import selected

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

_BOUND: Final = "pv.kubernetes.io/bind-completed"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_SIZE: Final = "storage"
_MOST_IDLE: Final = 32  # demands that are kept although nobody has them any more


@dataclass(frozen=True)
class Demand:
    """What a claim asks of a volume."""

    storage_class: str
    size: int
    modes: frozenset[str]
    volume_mode: str
    selector: Requirements = ()

    @property
    def column(self) -> str:
        """Name what counts such volumes."""
        told = [quantities.text(_SIZE, self.size), *sorted(self.modes)]
        told += [self.volume_mode] if self.volume_mode != "Filesystem" else []
        told += [f"{e.key} {e.operator} {'/'.join(e.values)}".strip() for e in self.selector]
        return volumes_of(self.storage_class, ", ".join(told))

    def met(self, volume: PersistentVolume) -> bool:
        """Whether a volume would do, whoever has it."""
        spec = volume.spec
        return (
            spec.storage_class_name == self.storage_class
            and (spec.volume_mode or "Filesystem") == self.volume_mode
            and self.modes <= set(spec.access_modes)
            and _amount(spec.capacity) >= self.size
            and selects(self.selector, volume.metadata.labels)
        )


class Disks:
    """The volumes there are, and what claims ask for that have none."""

    def __init__(self, classes: Mapping[str, StorageClass] | None = None) -> None:
        self._classes = {} if classes is None else classes
        self._volumes: dict[str, dict[str, PersistentVolume]] = {}  # by class and name
        self._at: dict[str, dict[str, PersistentVolume]] = {}  # by hostname, if one node has it
        self._wide: dict[str, PersistentVolume] = {}
        self._reached: dict[NodeSelector | None, Shelf] | None = None  # of these, by which nodes
        self._kinds: dict[str, set[frozenset[Demand]]] = {}  # by class, as volumes meet them
        self._kept: dict[tuple[str, str], str] = {}  # which volume is kept for a claim
        self._asking: dict[tuple[str, str], Demand] = {}
        self._demands: dict[Demand, int] = {}  # by how many claims
        self._touched: set[str] = set()
        self._everywhere = False

    def classes_changed(self) -> None:
        """Classes are others than they were."""
        self._everywhere, self._reached = bool(self._demands), None

    def put_volume(self, volume: PersistentVolume) -> None:
        """A volume is there, or is another."""
        name, spec = volume.metadata.name, volume.spec
        before = self._volumes.get(spec.storage_class_name, {}).get(name)
        if before is not None:
            self.drop_volume(before)
        self._volumes.setdefault(spec.storage_class_name, {})[name] = volume
        if spec.claim_ref is not None:
            self._kept[spec.claim_ref.namespace, spec.claim_ref.name] = name
        host = _host(volume)
        if host:
            self._at.setdefault(host, {})[name] = volume
        else:
            self._wide[name] = volume
        self._touch(volume, host)

    def drop_volume(self, volume: PersistentVolume) -> None:
        """A volume is gone, as it was last seen."""
        name, spec = volume.metadata.name, volume.spec
        host = _host(volume)
        there = self._at.get(host, {}) if host else self._wide
        for where in (self._volumes.get(spec.storage_class_name, {}), there):
            where.pop(name, None)
        if spec.claim_ref is not None:
            self._kept.pop((spec.claim_ref.namespace, spec.claim_ref.name), None)
        self._touch(volume, host)

    def put_claim(self, claim: PersistentVolumeClaim) -> None:
        """A claim is there, or is another."""
        key = claim.metadata.namespace, claim.metadata.name
        demand = None if _BOUND in claim.metadata.annotations else demand_of(claim)
        if self._asking.get(key) == demand:
            return
        self.drop_claim(key)
        if demand is not None:
            self._asking[key] = demand
            if demand not in self._demands:
                self._forget_idle()
                self._everywhere, self._reached = True, None
                self._kinds.pop(demand.storage_class, None)
            self._demands[demand] = self._demands.get(demand, 0) + 1

    def drop_claim(self, key: tuple[str, str]) -> None:
        """A claim is gone, or has its volume."""
        demand = self._asking.pop(key, None)
        if demand is not None:
            self._demands[demand] -= 1

    def changed(self) -> frozenset[str] | None:
        """Give the hostnames of nodes whose volumes may not be what they were; None for any."""
        found = None if self._everywhere else frozenset(self._touched)
        self._everywhere = False
        self._touched.clear()
        return found

    def on(self, node: Node) -> Shelf:
        """Count what a node has for each demand, and what of it is somebody's."""
        host = node.metadata.labels.get(names.HOSTNAME_KEY, "")
        shelf = self._shelf(self._at.get(host, {}).values())
        for required, wide in self._of_several().items():
            if required is None or selected(node, required):
                shelf = Shelf(merged(shelf.has, wide.has), merged(shelf.taken, wide.taken))
        return shelf

    def local(self, name: str) -> bool:
        """Whether volumes of a class are chosen by kube-scheduler, and made by nobody."""
        kind = self._classes.get(name)
        return (
            kind is not None
            and kind.provisioner == NO_PROVISIONER
            and kind.volume_binding_mode == "WaitForFirstConsumer"
        )

    def kept_for(self, claim: PersistentVolumeClaim) -> str:
        """Name the volume that is kept for a claim, or give ""."""
        return self._kept.get((claim.metadata.namespace, claim.metadata.name), "")

    def takes(self, claim: PersistentVolumeClaim) -> Amounts:
        """Tell what a claim takes that has no volume: one of those that meet its demand.

        It counts also where all that meet it meet another demand too.
        """
        demand = demand_of(claim)
        name = demand.storage_class
        kinds = self._kinds.get(name)
        if kinds is None:
            demands = [each for each in self._demands if each.storage_class == name]
            there = self._volumes.get(name, {}).values()
            kinds = {frozenset(d for d in demands if d.met(volume)) for volume in there}
            self._kinds[name] = kinds
        return dict.fromkeys(sorted(each.column for each in within(kinds, demand)), 1)

    def _shelf(self, volumes: Iterable[PersistentVolume]) -> Shelf:
        has: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        demands = [each for each in self._demands if self.local(each.storage_class)]
        for volume in volumes if demands else ():
            met = [each.column for each in demands if each.met(volume)]
            has.update(met)
            if not _free(volume):
                taken.update(met)
        return Shelf(dict(has), dict(taken))

    def _of_several(self) -> Mapping[NodeSelector | None, Shelf]:
        """Count the volumes that several nodes may reach, by which nodes do."""
        if self._reached is None:
            there: dict[NodeSelector | None, list[PersistentVolume]] = {}
            for volume in self._wide.values():
                there.setdefault(_required(volume), []).append(volume)
            self._reached = {where: self._shelf(found) for where, found in there.items()}
        return self._reached

    def _touch(self, volume: PersistentVolume, host: str) -> None:
        name = volume.spec.storage_class_name
        self._kinds.pop(name, None)
        if not host:
            self._reached = None
        if any(each.storage_class == name for each in self._demands):
            self._everywhere |= not host
            self._touched.add(host)

    def _forget_idle(self) -> None:
        idle = [demand for demand, claims in self._demands.items() if not claims]
        for demand in idle if len(idle) > _MOST_IDLE else ():
            del self._demands[demand]


def class_of(claim: PersistentVolumeClaim) -> str:
    """Name the class that a claim asks for; the older annotation counts first."""
    return claim.metadata.annotations.get(_CLASS, claim.spec.storage_class_name or "")


def demand_of(claim: PersistentVolumeClaim) -> Demand:
    """Tell what a claim asks of a volume."""
    spec = claim.spec
    return Demand(
        class_of(claim),
        _amount(spec.resources.requests),
        frozenset(spec.access_modes),
        spec.volume_mode or "Filesystem",
        _all_of(spec.selector),
    )


def _all_of(selector: LabelSelector | None) -> Requirements:
    return requirements(selector) or ()  # none at all takes every volume


def _free(volume: PersistentVolume) -> bool:
    return (
        volume.status.phase == "Available"
        and volume.spec.claim_ref is None
        and volume.metadata.deletion_timestamp is None
    )


def _amount(listed: Mapping[str, str]) -> int:
    return _read(listed.get(_SIZE, "0"))


@lru_cache(maxsize=256)
def _read(text: str) -> int:
    try:
        return quantities.whole(_SIZE, text)
    except BadQuantityError:
        return 0


def _required(volume: PersistentVolume) -> NodeSelector | None:
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def _host(volume: PersistentVolume) -> str:
    """Name the one host that has a volume, if its affinity says just that."""
    required = _required(volume)
    if required is None or len(required.node_selector_terms) != 1:
        return ""
    (term,) = required.node_selector_terms
    if term.match_fields or len(term.match_expressions) != 1:
        return ""
    (said,) = term.match_expressions
    one = said.key == names.HOSTNAME_KEY and said.operator == "In" and len(said.values) == 1
    return said.values[0] if one else ""
