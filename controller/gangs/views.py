"""What is known of one gang at one instant: its pods by clique and slot, and its reservation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from api import names, quantities
from api.quantities import Amounts
from api.reservation import ReservationSpec, ReservationStatus, Slot, State
from api.streams import Meta, NodeSelector, Pod, PodClique
from controller.gangs import plain_pods, plain_slots
from controller.podgang import Gang
from kube.objects import Key
from scheduler import needs

SlotKey: TypeAlias = tuple[str, int]  # clique and index


@dataclass(frozen=True)
class Reservation:
    """A Reservation there is."""

    metadata: Meta
    spec: ReservationSpec
    status: ReservationStatus

    @property
    def state(self) -> State:
        """How far it has come; a status that is about an earlier try says nothing."""
        return self.status.state if self.status.attempt == self.spec.attempt else State.HELD

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

    @property
    def up(self) -> bool:
        """Whether its containers are ready, or have done what they were made for."""
        return self.pod.containers_ready or self.pod.finished


@dataclass(frozen=True)
class GangView:
    """One gang at one instant.

    `base_started` is true for a gang that waits for no other; `base_down` says of one that does
    that what it waited for was rolled back, and has not begun anew. `lost` names reserved nodes
    that do not take the gang's pods any more. `cliques` are the PodCliques of the gang's owner, by
    the names that the gang has for them. `stranded` are the slots of lifted and of bound members
    whose node is gone. The reservation is `overtaken` if a leader before this one wrote what it
    keeps, and that was not known yet at the takeover: it may have been promised to others since.
    """

    gang: Gang
    members: tuple[Member, ...]
    reservation: Reservation | None
    base_started: bool
    lost: frozenset[str] = frozenset()
    cliques: Mapping[str, PodClique] = field(default_factory=dict)
    stranded: frozenset[SlotKey] = frozenset()
    base_down: bool = False
    overtaken: bool = False

    def of_clique(self, name: str) -> list[Member]:
        """List the members of one clique, by index."""
        return [member for member in self.members if member.slot[0] == name]

    @property
    def is_made(self) -> bool:
        """Whether all pods are there that the gang of a set refers to, as it does from the start.

        Of other gangs, who makes them says it: theirs come to be referred to one by one.
        """
        referred = sum(1 for _ in self.gang.references())
        return bool(self.cliques) and 0 < referred == len(self.members)

    def size_of(self, name: str) -> int:
        """How many pods the gang refers to in a clique."""
        groups = self.gang.spec.pod_groups
        return sum(len(group.pod_references) for group in groups if group.name == name)

    def stale_slots(self) -> frozenset[SlotKey]:
        """Name the slots that no pod will come for: the gang was scaled in.

        Which of its pods went does not matter. Of a clique's empty slots as many are kept as pods
        are still to come that the gang refers to; the highest are given up.
        """
        if plain_slots.is_plain(self.gang.metadata):
            kept = {(self.gang.metadata.name, i) for i in plain_slots.slots_of(self.gang).values()}
            return frozenset(self.nodes_by_slot().keys() - kept)
        empty: dict[str, list[int]] = {}
        for clique, index in self.nodes_by_slot().keys() - {member.slot for member in self.members}:
            empty.setdefault(clique, []).append(index)
        return frozenset(
            (clique, index)
            for clique, indices in empty.items()
            for index in sorted(indices)[max(0, self._coming(clique)) :]
        )

    def _coming(self, clique: str) -> int:
        return self.size_of(clique) - len(self.of_clique(clique))

    @cached_property
    def unfit(self) -> frozenset[SlotKey]:
        """Name the slots that their pods, still gated, cannot take any more.

        The node is lost, or the pod was made from a newer template and takes more than is kept.
        """
        gated = {member.slot: member.pod for member in self.members if member.gated}
        unfit: set[SlotKey] = set()
        for group in self.reservation.spec.groups if gated and self.reservation else ():
            kept = quantities.amounts(group.requests)
            for slot in group.slots:
                pod = gated.get((group.name, slot.index))
                if pod and (slot.node in self.lost or _outgrows(pod, kept)):
                    unfit.add((group.name, slot.index))
        return frozenset(unfit)

    def unbound(self) -> list[Member]:
        """List the members that kube-scheduler may bind but has not bound yet."""
        return [member for member in self.members if not member.gated and not member.bound]

    def homes(self) -> dict[SlotKey, str]:
        """Give the node of every pod that is bound, and of every slot whose node serves.

        A pod that is bound stays on a node that takes no others.
        """
        kept = {slot: node for slot, node in self.nodes_by_slot().items() if node not in self.lost}
        return kept | {m.slot: m.pod.spec.node_name for m in self.members if m.bound}

    def nodes_by_slot(self) -> dict[SlotKey, str]:
        """Give the node of every reserved slot."""
        if self.reservation is None:
            return {}
        return {(name, slot.index): slot.node for name, slot, _ in self.reservation.slots()}


def members_of(
    gang: Gang, pods: Mapping[Key, Pod], cliques: Mapping[str, PodClique]
) -> tuple[Member, ...]:
    """Find the gang's pods that exist, are not going away and have not failed.

    A pod belongs if the gang refers to it and it is controlled by the PodClique of that name which
    belongs to the gang's owner: a label is a claim that anybody can make.
    """
    if plain_slots.is_plain(gang.metadata):
        return _plain_members(gang, pods)
    found: dict[SlotKey, Member] = {}
    for group, key in gang.references():
        pod = pods.get(key)
        # One that is done keeps its place; nobody makes another.
        if pod is None or pod.failed or pod.metadata.deletion_timestamp is not None:
            continue
        clique = cliques.get(group.name)
        if clique is None or pod.metadata.controller_uid != clique.metadata.uid:
            continue
        slot = (group.name, index_of(pod, group.name))
        found.setdefault(slot, Member(slot, pod))
    return tuple(member for _, member in sorted(found.items()))


def _outgrows(pod: Pod, kept: Amounts) -> bool:
    return any(amount > kept.get(name, 0) for name, amount in needs.of_pod(pod).items())


def _plain_members(gang: Gang, pods: Mapping[Key, Pod]) -> tuple[Member, ...]:
    """Find the pods of a gang that labels make; guards see to it that these can be believed."""
    found: list[Member] = []
    for key, index in plain_slots.slots_of(gang).items():
        pod = pods.get(key)
        if pod is not None and plain_pods.lives(pod) and plain_pods.gang_of(pod) == gang.key:
            found.append(Member((gang.metadata.name, index), pod))
    return tuple(found)


def index_of(pod: Pod, clique: str) -> int:
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
