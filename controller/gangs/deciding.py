"""The one thing a gang needs next. Pure: equal views give equal steps.

A gang goes through these steps. A leader that died after any write is replaced by one that reads
the same objects and goes on from there:

    Wait ─► Place (reservation Held) ─► Begin (Lifting) ─► Lift, pod by pod ─► Wait ─► Close (Bound)
                      └─► Expire: the deadline passed, or a node was lost, before any lift

Invariant: a pod is lifted only by its slot in a reservation that says Lifting or Bound, and such a
reservation has a slot for the whole minimum of every clique.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from api import names
from api.reservation import State
from controller.gangs.views import GangView, Member, Reservation


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something changes; the reason is shown on the gang."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Place:
    """Find room for these members: `minimum` all or none of them, `extras` as they fit."""

    minimum: tuple[Member, ...]
    extras: tuple[Member, ...]


@dataclass(frozen=True)
class Begin:
    """Commit the reservation: from now on its deadline no longer counts."""

    reservation: Reservation


@dataclass(frozen=True)
class Lift:
    """Pin these pods to their nodes and take our gate off, one patch each."""

    lifts: tuple[tuple[Member, str], ...]


@dataclass(frozen=True)
class Close:
    """Every lifted pod is bound: what the reservation kept is now really taken."""

    reservation: Reservation


@dataclass(frozen=True)
class Expire:
    """Nothing was lifted, and time ran out or a node was lost: give the room back."""

    reservation: Reservation


Step: TypeAlias = Wait | Place | Begin | Lift | Close | Expire


def next_step(view: GangView, now: datetime) -> Step:
    """Decide what the gang needs now."""
    obstacle = _obstacle(view)
    if obstacle is not None:
        return obstacle
    reservation = view.reservation
    if reservation is None:
        return _place(view) or Wait(names.REASON_BOUND)
    if reservation.state is State.HELD:
        expired = deadline_of(reservation) <= now
        return Expire(reservation) if expired or view.lost else Begin(reservation)
    return _committed(view, reservation)


def deadline_of(reservation: Reservation) -> datetime:
    """Read until when the reservation keeps its room if nothing is lifted."""
    return datetime.fromisoformat(reservation.spec.deadline)


def _committed(view: GangView, reservation: Reservation) -> Step:
    """Go on with a gang whose first lift may have happened: there is no way back."""
    nodes = view.nodes_by_slot()
    due = [(m, nodes[m.slot]) for m in view.members if m.gated and m.slot in nodes]
    ready = tuple((member, node) for member, node in due if node not in view.lost)
    if ready:
        return Lift(ready)
    if due:
        lost = ", ".join(sorted({node for _, node in due}))
        return Wait(names.REASON_LIFTING, f"{len(due)} pods wait for their nodes: {lost}")
    unbound = [m for m in view.members if not m.gated and not m.bound]
    if unbound:
        return Wait(names.REASON_LIFTING, f"{len(unbound)} lifted pods are not bound yet")
    if reservation.state is State.LIFTING:
        return Close(reservation)
    return _place(view) or Wait(names.REASON_BOUND)


def _obstacle(view: GangView) -> Wait | None:
    """Say what must come about before anything can be decided."""
    waiting = []
    for group in view.gang.spec.pod_groups:
        there = len(view.of_clique(group.name))
        if there < group.min_replicas:
            waiting.append(f"{group.name} has {there} of {group.min_replicas} pods")
    if waiting or not view.gang.initialized:
        return Wait(names.REASON_WAITING_FOR_PODS, "; ".join(waiting))
    if not view.base_started:
        return Wait(names.REASON_WAITING_FOR_BASE, "its base gang has not started")
    foreign = sorted({g for m in view.members if m.gated for g in m.pod.gates} - {names.GATE})
    if foreign:
        # To reserve room for a pod that somebody else holds back would keep it for nobody.
        return Wait(
            names.REASON_FOREIGN_GATES, f"other gates are on its pods: {', '.join(foreign)}"
        )
    return None


def _place(view: GangView) -> Place | None:
    """Ask for room for gated members without a slot: what the minimum lacks, then the rest."""
    nodes = view.nodes_by_slot()
    minimum: list[Member] = []
    extras: list[Member] = []
    for group in view.gang.spec.pod_groups:
        members = view.of_clique(group.name)
        homeless = [m for m in members if m.gated and m.slot not in nodes]
        settled = len(members) - len(homeless)
        lacking = max(0, group.min_replicas - settled)
        minimum += homeless[:lacking]
        extras += homeless[lacking:]
    return Place(tuple(minimum), tuple(extras)) if minimum or extras else None
