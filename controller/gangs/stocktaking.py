"""What pods and reservations take of nodes, in the engine's words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from api import quantities
from api.streams import Node, Pod
from controller.gangs.views import GangView, Member, Reservation, SlotKey, pinned_node
from kube.objects import Key
from scheduler import needs, residents, stock
from scheduler.snapshot import Hold


@dataclass(frozen=True)
class Spoken:
    """Room that a gang's slots speak for, and the pods that need none beside it."""

    slots: Mapping[SlotKey, Hold] = field(default_factory=dict)
    pods: frozenset[Key] = frozenset()


def hold_of(pod: Pod) -> Hold | None:
    """Give the room that a pod takes or is about to take, wherever it got that from.

    Bound, nominated by a scheduler that makes room for it, or pinned and released, so that
    kube-scheduler may bind it any moment.
    """
    return stock.hold_of(pod, _released_to(pod))


def claim(pod: Pod) -> Hold | None:
    """Give only how much that is and where, for telling whether it became less."""
    node = "" if pod.finished else claimed_node(pod)
    return Hold(node, needs.of_pod(pod)) if node else None


def claimed_node(pod: Pod) -> str:
    """Name the node that the pod is on or about to be on, or give ""."""
    return pod.spec.node_name or _released_to(pod) or pod.status.nominated_node_name


def of_gang(view: GangView) -> Spoken:
    """List what the gang's slots take whose pod is not bound there.

    Every slot in the ledger counts until it is taken out of it, also while its pod is replaced:
    a successor is lifted onto it without being asked again.
    """
    if view.reservation is None:
        return Spoken()
    nodes = view.nodes_by_slot()
    there = [(m, claimed_node(m.pod) == nodes[m.slot]) for m in view.members if m.slot in nodes]
    bound = {m.slot for m, at_home in there if m.bound and at_home}
    spoken = {m.slot: m for m, at_home in there if not m.bound and (m.gated or at_home)}
    slots = _slots(view.reservation, spoken)
    return Spoken(
        {slot: hold for slot, hold in slots.items() if slot not in bound},
        frozenset(_key(member.pod) for member in spoken.values()),
    )


def of_orphan(reservation: Reservation) -> dict[SlotKey, Hold]:
    """List what the slots of a gang that is gone take.

    They count until they are gone too, since pods they lifted may still be about to bind.
    """
    return _slots(reservation, {})


def _slots(reservation: Reservation, members: Mapping[SlotKey, Member]) -> dict[SlotKey, Hold]:
    """List what slots take; where it is known who comes, others must know that too."""
    found: dict[SlotKey, Hold] = {}
    for clique, slot, requests in reservation.slots():
        member = members.get((clique, slot.index))
        who = residents.of_pod(member.pod) if member else None
        found[clique, slot.index] = Hold(slot.node, quantities.amounts(requests), who)
    return found


def _released_to(pod: Pod) -> str:
    return "" if pod.gates else pinned_node(pod)


def _key(pod: Pod) -> Key:
    return pod.metadata.namespace, pod.metadata.name


def same_offer(old: Node, new: Node) -> bool:
    """Whether the node offers what it did, to the pods it did."""
    return (
        old.ready == new.ready
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.metadata.labels == new.metadata.labels
    )
