"""What is known of one gang at one instant: its pods by clique and slot, and its reservation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from api import names
from api.reservation import ReservationSpec, ReservationStatus, Slot, State
from api.streams import Meta, NodeSelector, Pod
from controller.podgang import Gang
from kube.objects import Key

SlotKey: TypeAlias = tuple[str, int]  # clique and index


@dataclass(frozen=True)
class Reservation:
    """A Reservation there is."""

    metadata: Meta
    spec: ReservationSpec
    status: ReservationStatus

    @property
    def state(self) -> State:
        """How far it has come."""
        return self.status.state

    @property
    def ours(self) -> bool:
        """Whether it was made for its gang by us, and not by a person under a gang's name."""
        return any(owner.uid == self.spec.gang.uid for owner in self.metadata.owner_references)

    @property
    def size(self) -> int:
        """How many slots it has."""
        return sum(len(group.slots) for group in self.spec.groups)

    def slots(self) -> Iterator[tuple[str, Slot, Mapping[str, str]]]:
        """List its slots, with their clique and what each takes of its node."""
        for group in self.spec.groups:
            for slot in group.slots:
                yield group.name, slot, group.requests


@dataclass(frozen=True)
class Member:
    """A pod of a gang, and the slot it stands for."""

    slot: SlotKey
    pod: Pod

    @property
    def gated(self) -> bool:
        """Whether our gate is still on it."""
        return names.GATE in self.pod.gates

    @property
    def bound(self) -> bool:
        """Whether kube-scheduler has given it a node."""
        return bool(self.pod.spec.node_name)


@dataclass(frozen=True)
class GangView:
    """One gang at one instant.

    `base_started` is true for a gang that waits for no other. `lost` names reserved nodes that do
    not take the gang's pods any more.
    """

    gang: Gang
    members: tuple[Member, ...]
    reservation: Reservation | None
    base_started: bool
    lost: frozenset[str] = frozenset()

    def of_clique(self, name: str) -> list[Member]:
        """List the members of one clique, by index."""
        return [member for member in self.members if member.slot[0] == name]

    def size_of(self, name: str) -> int:
        """How many pods the gang refers to in a clique."""
        groups = self.gang.spec.pod_groups
        return sum(len(group.pod_references) for group in groups if group.name == name)

    def stale_slots(self) -> frozenset[SlotKey]:
        """Name the reserved slots beyond those the gang refers to: it was scaled in."""
        there = {member.slot for member in self.members}
        slots = self.nodes_by_slot().keys() - there
        return frozenset(slot for slot in slots if slot[1] >= self.size_of(slot[0]))

    def unbound(self) -> list[Member]:
        """List the members that kube-scheduler may bind but has not bound yet."""
        return [member for member in self.members if not member.gated and not member.bound]

    def nodes_by_slot(self) -> dict[SlotKey, str]:
        """Give the node of every reserved slot."""
        if self.reservation is None:
            return {}
        return {(name, slot.index): slot.node for name, slot, _ in self.reservation.slots()}


def members_of(gang: Gang, pods: Mapping[Key, Pod]) -> tuple[Member, ...]:
    """Find the gang's pods that exist, are not going away and have not ended.

    A pod belongs if the gang refers to it and both are controlled by the same owner: a label is a
    claim that anybody can make.
    """
    found: dict[SlotKey, Member] = {}
    for group, key in gang.references():
        pod = pods.get(key)
        if pod is None or pod.finished or pod.metadata.deletion_timestamp is not None:
            continue
        if pod.metadata.controller_uid != gang.metadata.controller_uid:
            continue
        slot = (group.name, _index(pod, group.name))
        found.setdefault(slot, Member(slot, pod))
    return tuple(member for _, member in sorted(found.items()))


def _index(pod: Pod, clique: str) -> int:
    """Read the pod's index from its hostname, which nobody can change afterwards."""
    text = pod.spec.hostname.removeprefix(f"{clique}-")
    if text.isascii() and text.isdigit():
        return int(text)
    label = pod.metadata.labels.get(names.POD_INDEX_LABEL, "")
    return int(label) if label.isascii() and label.isdigit() else 0


def pinned_node(pod: Pod) -> str:
    """Give the one node that all of the pod's required terms name, or ""."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required if affinity else None
    nodes = set(_named(required)) if required else set()
    return nodes.pop() if len(nodes) == 1 else ""


def _named(required: NodeSelector) -> Iterable[str]:
    for term in required.node_selector_terms:
        named = [
            e.values[0]
            for e in term.match_fields
            if e.key == "metadata.name" and e.operator == "In" and len(e.values) == 1
        ]
        if term.match_expressions or term.match_fields:  # an empty term matches nothing
            yield named[-1] if named else ""
