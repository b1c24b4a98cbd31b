"""From caches to the engine's input: what is free, what is held, and what a gang asks for. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Set

from api import quantities
from api.streams import Pod
from controller.gangs.deciding import Place
from controller.gangs.views import GangView, Member, Reservation, SlotKey, pinned_node
from kube.objects import Key
from scheduler import needs
from scheduler.eligible import Constraints
from scheduler.requests import Anchor, GangRequest, Want
from scheduler.snapshot import Hold


def claim(pod: Pod) -> Hold | None:
    """Give the room that a pod takes or is about to take, wherever it got that from.

    Bound, nominated by a scheduler that makes room for it, or pinned and released, so that
    kube-scheduler may bind it any moment.
    """
    node = "" if pod.finished else claimed_node(pod)
    return Hold(node, needs.of_pod(pod)) if node else None


def claimed_node(pod: Pod) -> str:
    """Name the node that the pod is on or about to be on, or give ""."""
    pinned = "" if pod.gates else pinned_node(pod)
    return pod.spec.node_name or pod.status.nominated_node_name or pinned


def stock(
    pods: Mapping[Key, Pod],
    views: Iterable[GangView],
    orphans: Iterable[Reservation],
    moving: Set[tuple[Key, SlotKey]] = frozenset(),
) -> list[Hold]:
    """List all room that is taken: by pods, and by slots whose pod is not bound there.

    Every slot in the ledger counts until it is taken out of it, also while its pod is replaced:
    a successor is lifted onto it without being asked again. Orphans, whose gang is gone, count
    until they are gone too, since pods they lifted may still be about to bind. Slots that are
    `moving` do not count: what is planned is what takes their place.
    """
    taken: list[Hold] = []
    spoken_for: set[Key] = set()
    for view in views:
        nodes = view.nodes_by_slot()
        there = [(m, claimed_node(m.pod) == nodes[m.slot]) for m in view.members if m.slot in nodes]
        bound = {m.slot for m, at_home in there if m.bound and at_home}
        spoken_for |= {_key(m.pod) for m, at_home in there if not m.bound and (m.gated or at_home)}
        leaving = {slot for slot in nodes if (view.gang.key, slot) in moving}
        taken += _held(view.reservation, bound | leaving) if view.reservation else ()
    for reservation in orphans:
        taken += _held(reservation, frozenset())
    claims = (claim(pod) for key, pod in pods.items() if key not in spoken_for)
    return [*taken, *(each for each in claims if each is not None)]


def _held(reservation: Reservation, bound: Set[SlotKey]) -> Iterator[Hold]:
    for clique, slot, requests in reservation.slots():
        if (clique, slot.index) not in bound:
            yield Hold(slot.node, quantities.amounts(requests))


def _key(pod: Pod) -> Key:
    return pod.metadata.namespace, pod.metadata.name


def request(view: GangView, place: Place) -> GangRequest:
    """Put what a gang asks for into the engine's words."""
    namespace, name = view.gang.key
    settled = view.nodes_by_slot()
    found = {m.pod.spec.node_name or settled.get(m.slot, "") for m in view.members}
    anchors = found - view.lost - {""}
    return GangRequest(
        namespace,
        name,
        tuple(_want(member) for member in place.minimum),
        tuple(_want(member) for member in place.extras),
        anchors=tuple(Anchor(node) for node in sorted(anchors)),
    )


def _want(member: Member) -> Want:
    clique, index = member.slot
    return Want(clique, index, needs.of_pod(member.pod), Constraints.of(member.pod))
