"""From caches to the engine's input: what is free, what is held, and what a gang asks for. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from api import quantities
from api.streams import Pod
from controller.gangs.deciding import Place
from controller.gangs.views import GangView, Key, Member, Reservation, pinned_node
from scheduler import needs
from scheduler.eligible import Constraints
from scheduler.placing import GangRequest, Want
from scheduler.snapshot import Hold


def holds(views: Iterable[GangView], orphans: Iterable[Reservation]) -> Iterator[Hold]:
    """List the room that reservations keep and no bound pod takes yet.

    A slot of a pod that is being replaced still counts: its successor comes back to it. A slot
    beyond those the gang refers to does not: the gang was scaled in. Orphans, whose gang is gone,
    count until they are gone too, since pods they lifted may still be about to bind.
    """
    for view in views:
        if view.reservation is not None:
            yield from _held(view, view.reservation)
    for reservation in orphans:
        for _, slot, requests in reservation.slots():
            yield Hold(slot.node, quantities.amounts(requests))


def _held(view: GangView, reservation: Reservation) -> Iterator[Hold]:
    member_at = {member.slot: member for member in view.members}
    sizes = {g.name: len(g.pod_references) for g in view.gang.spec.pod_groups}
    for clique, slot, requests in reservation.slots():
        member = member_at.get((clique, slot.index))
        if member is None and slot.index >= sizes.get(clique, 0):
            continue
        if member is None or not member.bound:
            yield Hold(slot.node, quantities.amounts(requests))


def stray_holds(pods: Mapping[Key, Pod], views: Iterable[GangView]) -> Iterator[Hold]:
    """List pinned pods that no slot speaks for but kube-scheduler may bind any moment."""
    spoken_for = {
        (m.pod.metadata.namespace, m.pod.metadata.name)
        for view in views
        for m in view.members
        if m.slot in view.nodes_by_slot()
    }
    for key, pod in pods.items():
        if pod.spec.node_name or pod.finished or pod.gates or key in spoken_for:
            continue
        node = pinned_node(pod)
        if node:
            yield Hold(node, needs.of_pod(pod))


def request(view: GangView, place: Place) -> GangRequest:
    """Put what a gang asks for into the engine's words."""
    namespace, name = view.gang.key
    settled = view.nodes_by_slot()
    anchors = {m.pod.spec.node_name or settled.get(m.slot, "") for m in view.members} - {""}
    return GangRequest(
        namespace,
        name,
        tuple(_want(member) for member in place.minimum),
        tuple(_want(member) for member in place.extras),
        tuple(sorted(anchors)),
    )


def _want(member: Member) -> Want:
    clique, index = member.slot
    return Want(clique, index, needs.of_pod(member.pod), Constraints.of(member.pod))
