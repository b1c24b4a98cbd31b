"""What a pod's claims to volumes and devices say of nodes, looked up among what there is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from api.claims import (
    DeviceClaim,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from api.streams import Expression, NodeSelector, Pod, Term
from scheduler import residents
from scheduler.filters.constraints import Claimed
from scheduler.filters.selecting import NAME_FIELD

Key: TypeAlias = tuple[str, str]  # namespace and name

NOWHERE: Final = NodeSelector()  # no term, so no node
DEVICES_LEFT: Final = "devices"
VOLUMES_LEFT: Final = "volumes"

_BOUND: Final = "pv.kubernetes.io/bind-completed"
_CHOSEN: Final = "volume.kubernetes.io/selected-node"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
# Older labels first, and what stands in for each of them on nodes.
_ZONES: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True)
class Claims:
    """What there is in a cluster to claim, and who has claimed it."""

    claims: Mapping[Key, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    devices: Mapping[Key, DeviceClaim] = field(default_factory=dict)

    def of(self, pod: Pod) -> Claimed:
        """Tell what the pod's claims say of nodes, and what only kube-scheduler will tell."""
        namespace = pod.metadata.namespace
        nodes: list[NodeSelector] = []
        left: list[str] = []
        for name in residents.claims(pod.spec, pod.metadata.name):
            found, unknown = self._volume(self.claims.get((namespace, name)))
            nodes += found
            left += [VOLUMES_LEFT] if unknown else []
        for device in pod.spec.resource_claims:
            given = self.devices.get((namespace, device.resource_claim_name))
            allocation = given.status.allocation if given else None
            if allocation is None:
                left.append(DEVICES_LEFT)
            elif allocation.node_selector is not None:
                nodes.append(allocation.node_selector)
        return Claimed(tuple(dict.fromkeys(nodes)), tuple(dict.fromkeys(left)))

    def _volume(self, claim: PersistentVolumeClaim | None) -> tuple[list[NodeSelector], bool]:
        if claim is None or claim.metadata.deletion_timestamp or claim.status.phase == "Lost":
            return [NOWHERE], False
        notes, named = claim.metadata.annotations, claim.spec.volume_name
        if named and _BOUND in notes:
            volume = self.volumes.get(named)
            return [NOWHERE] if volume is None else list(_reached(volume)), False
        kind = self.classes.get(notes.get(_CLASS, claim.spec.storage_class_name or ""))
        if named or kind is None or kind.volume_binding_mode != "WaitForFirstConsumer":
            return [NOWHERE], False  # others bind it, and until then the pod is not bound
        return ([_only(notes[_CHOSEN])] if _CHOSEN in notes else self._to_be(kind)), True

    def _to_be(self, kind: StorageClass) -> list[NodeSelector]:
        """Tell where a volume of this class can be made, or waits for somebody to claim it."""
        if kind.provisioner != _NO_PROVISIONER:
            terms = tuple(map(_allowed, kind.allowed_topologies))
            return [NodeSelector(terms)] if terms else []
        free = [
            list(_affine(volume))
            for volume in self.volumes.values()
            if volume.status.phase == "Available"
            and volume.spec.storage_class_name == kind.metadata.name
        ]
        if not all(free):
            return []  # one of them is reached from everywhere
        return [
            NodeSelector(
                tuple(dict.fromkeys(t for [each] in free for t in each.node_selector_terms))
            )
        ]


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
