"""What a pod's claims to volumes and devices say of nodes, looked up among what there is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from api.claims import (
    DeviceClaim,
    DeviceClaimSpec,
    DeviceTemplate,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from api.quantities import Amounts
from api.streams import Expression, NodeSelector, Pod, Term
from scheduler import residents
from scheduler.filters.constraints import Claimed, Common
from scheduler.filters.counted import merged
from scheduler.filters.devices import Devices
from scheduler.filters.disks import NO_PROVISIONER, Disks, class_of
from scheduler.filters.selecting import NAME_FIELD

Key: TypeAlias = tuple[str, str]  # namespace and name

NOWHERE: Final = NodeSelector()  # no term, so no node
DEVICES_LEFT: Final = "devices"
VOLUMES_LEFT: Final = "volumes"

_BOUND: Final = "pv.kubernetes.io/bind-completed"
_CHOSEN: Final = "volume.kubernetes.io/selected-node"
_NOTHING: Final = Claimed()
_NOWHERE: Final = Claimed((NOWHERE,))
_DEVICES_LEFT: Final = Claimed(left=(DEVICES_LEFT,))
_VOLUMES_LEFT: Final = Claimed(left=(VOLUMES_LEFT,))
# Older labels first, and what stands in for each of them on nodes.
_ZONES: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True)
class Claims:
    """What there is in a cluster to claim, and who has claimed it.

    A kind that nobody can look up is None; what it would tell is left to kube-scheduler.
    """

    claims: Mapping[Key, PersistentVolumeClaim] | None = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] | None = field(default_factory=dict)
    classes: Mapping[str, StorageClass] | None = field(default_factory=dict)
    devices: Mapping[Key, DeviceClaim] | None = field(default_factory=dict)
    templates: Mapping[Key, DeviceTemplate] | None = field(default_factory=dict)
    disks: Disks | None = None
    offered: Devices | None = None

    def of(self, pod: Pod) -> Claimed:
        """Tell what the pod's claims say of nodes, and what only kube-scheduler will tell."""
        parts = [*self._volumes_of(pod), *self._devices_of(pod)]
        if not parts:
            return _NOTHING
        nodes = (selector for part in parts for selector in part.nodes)
        left = (name for part in parts for name in part.left)
        takes: Amounts = {}
        for part in parts:
            takes = merged(takes, part.takes)
        common = {each.name: each for part in parts for each in part.common}
        return Claimed(
            tuple(dict.fromkeys(nodes)), tuple(dict.fromkeys(left)), takes, tuple(common.values())
        )

    def _volumes_of(self, pod: Pod) -> Iterator[Claimed]:
        namespace = pod.metadata.namespace
        for name in residents.claims(pod.spec, pod.metadata.name):
            if self.claims is None:
                yield _VOLUMES_LEFT
            else:
                yield self._volume(self.claims.get((namespace, name)))

    def _volume(self, claim: PersistentVolumeClaim | None) -> Claimed:
        if claim is None or claim.metadata.deletion_timestamp or claim.status.phase == "Lost":
            return _NOWHERE
        notes, named = claim.metadata.annotations, claim.spec.volume_name
        if named and _BOUND in notes:
            return self._at(named)
        if self.classes is None:
            return _VOLUMES_LEFT
        kind = self.classes.get(class_of(claim))
        if named or kind is None or kind.volume_binding_mode != "WaitForFirstConsumer":
            return _NOWHERE  # others bind it, and until then the pod is not bound
        if _CHOSEN in notes:
            return Claimed((_only(notes[_CHOSEN]),), (VOLUMES_LEFT,))
        return self._to_be(claim, kind)

    def _at(self, volume: str) -> Claimed:
        if self.volumes is None:
            return _VOLUMES_LEFT
        found = self.volumes.get(volume)
        return _NOWHERE if found is None else Claimed(tuple(_reached(found)))

    def _to_be(self, claim: PersistentVolumeClaim, kind: StorageClass) -> Claimed:
        """Tell where a volume of this class can be made, or waits for somebody to claim it."""
        if kind.provisioner != NO_PROVISIONER:
            terms = tuple(map(_allowed, kind.allowed_topologies))
            return Claimed((NodeSelector(terms),) if terms else (), (VOLUMES_LEFT,))
        if self.volumes is None or self.disks is None:
            return _VOLUMES_LEFT
        kept = self.disks.kept_for(claim)
        return self._at(kept) if kept else Claimed(takes=self.disks.takes(claim))

    def _devices_of(self, pod: Pod) -> Iterator[Claimed]:
        namespace = pod.metadata.namespace
        made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
        for device in pod.spec.resource_claims:
            name = device.resource_claim_name or made.get(device.name, "")
            if name is None:
                continue  # the template asks for nothing
            if self.devices is None:
                yield _DEVICES_LEFT
                continue
            claim = self.devices.get((namespace, name))
            if device.resource_claim_name or claim is not None:
                yield self._claim(claim, of_pod=not device.resource_claim_name)
            else:
                yield self._made_from((namespace, device.resource_claim_template_name))

    def _claim(self, claim: DeviceClaim | None, *, of_pod: bool) -> Claimed:
        """Tell what a claim says; one that was made for a pod alone is nobody else's."""
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return _NOWHERE  # kube-scheduler waits for one that is there to stay
        allocation = claim.status.allocation
        if allocation is None:
            return self._asked(claim.spec, "" if of_pod else claim.metadata.name)
        return Claimed((allocation.node_selector,) if allocation.node_selector else ())

    def _made_from(self, template: Key) -> Claimed:
        if self.templates is None:
            return _DEVICES_LEFT
        found = self.templates.get(template)
        return _NOWHERE if found is None else self._asked(found.spec.spec, "")

    def _asked(self, spec: DeviceClaimSpec, name: str) -> Claimed:
        if self.offered is None:
            return _DEVICES_LEFT
        asked = self.offered.asked(spec)
        left = (DEVICES_LEFT,) if asked.left else ()
        if not name:
            return Claimed(left=left, takes=asked.takes)
        return Claimed(left=left, common=(Common(name, asked.takes, asked.local),))


def _reached(volume: PersistentVolume) -> Iterator[NodeSelector]:
    """Give what the volume demands of nodes, by its affinity and by its zone."""
    yield from _affine(volume)
    zoned = [
        Expression(key, "In", tuple(volume.metadata.labels[key].split("__")))
        for key in _ZONES
        if key in volume.metadata.labels
    ]
    if zoned:
        yield NodeSelector(tuple(_in_zone(zoned)))


def _affine(volume: PersistentVolume) -> Iterator[NodeSelector]:
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    # Names of nodes do not count: kube-scheduler holds only their labels against a volume.
    terms = required.node_selector_terms if required else ()
    if required and all(t.match_expressions or not t.match_fields for t in terms):
        yield NodeSelector(tuple(Term(term.match_expressions) for term in terms))


def _in_zone(zoned: Iterable[Expression]) -> Iterator[Term]:
    """Take nodes that have no zone at all, and those that have each of these."""
    yield Term(tuple(Expression(key, "DoesNotExist") for key in _ZONES))
    choices: list[tuple[Expression, ...]] = [()]
    for old in zoned:
        new = Expression(_ZONES[old.key], "In", old.values)
        ways: list[tuple[Expression, ...]] = [(old,)]
        if new != old:  # the newer label counts where a node lacks the older one
            ways.append((Expression(old.key, "DoesNotExist"), new))
        choices = [(*taken, *way) for taken in choices for way in ways]
    yield from map(Term, choices)


def _only(node: str) -> NodeSelector:
    return NodeSelector((Term(match_fields=(Expression(NAME_FIELD, "In", (node,)),)),))


def _allowed(term: TopologyTerm) -> Term:
    return Term(tuple(Expression(e.key, "In", e.values) for e in term.match_label_expressions))
