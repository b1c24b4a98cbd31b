"""The one thing a gang needs next. Pure: equal views give equal steps.

A gang goes through these steps. A leader that died after any write is replaced by one that reads
the same objects and goes on from there:

    Wait ─► Place (reservation Held) ─► Begin (Lifting) ─► Lift, pod by pod ─► Wait ─► Close (Bound)
                      └─► Expire: the deadline passed, or a node was lost, before any lift

A bound gang that is scaled in has its reservation trimmed; one that grew is placed again.

Invariant: a pod is lifted only by its slot in a reservation that says Lifting or Bound, and such a
reservation has a slot for the whole minimum of every clique.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from api import names
from api.reservation import State
from controller.gangs.views import GangView, Member, Reservation, SlotKey


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


@dataclass(frozen=True)
class Trim:
    """Slots of pods that are wanted no more: take them out of the reservation."""

    reservation: Reservation
    slots: frozenset[SlotKey]


Step: TypeAlias = Wait | Place | Begin | Lift | Close | Expire | Trim


def next_step(view: GangView, now: datetime) -> Step:
    """Decide what the gang needs now."""
    reservation = view.reservation
    if reservation is not None and reservation.state is not State.HELD:
        return _committed(view, reservation)
    if reservation is not None and (deadline_of(reservation) <= now or view.lost):
        return Expire(reservation)
    obstacle = _missing(view) or _held_back(view)
    if obstacle is not None:
        return obstacle
    if reservation is not None:
        return Begin(reservation)
    return _place(view) or _settled(view)


def deadline_of(reservation: Reservation) -> datetime:
    """Read until when the reservation keeps its room if nothing is lifted."""
    return datetime.fromisoformat(reservation.spec.deadline)


def _committed(view: GangView, reservation: Reservation) -> Step:
    """Go on with a gang whose first lift may have happened: there is no way back.

    So nothing that befalls one of its pods may keep the others from being lifted.
    """
    nodes = view.nodes_by_slot()
    due = [(m, nodes[m.slot]) for m in view.members if m.gated and m.slot in nodes]
    ready = tuple((member, node) for member, node in due if node not in view.lost)
    if ready:
        return Lift(ready)
    if due:
        lost = ", ".join(sorted({node for _, node in due}))
        return Wait(names.REASON_LIFTING, f"{len(due)} pods wait for their nodes: {lost}")
    if reservation.state is State.LIFTING:
        if view.unbound():
            return _settled(view)
        return _missing(view) or Close(reservation)
    stale = view.stale_slots()
    if stale:
        return Trim(reservation, stale)
    return _place(view) or _settled(view)


def _settled(view: GangView) -> Wait:
    """There is nothing to do; say whether that is because all is done."""
    unbound = len(view.unbound())
    if unbound:
        return Wait(names.REASON_LIFTING, f"{unbound} lifted pods are not bound yet")
    missing = _missing(view)
    return Wait(names.REASON_BOUND, missing.message if missing else "")


def _missing(view: GangView) -> Wait | None:
    """Say which pods must come about before the gang is whole."""
    waiting = []
    for group in view.gang.spec.pod_groups:
        there = len(view.of_clique(group.name))
        if there < group.min_replicas:
            waiting.append(f"{group.name} has {there} of {group.min_replicas} pods")
    if waiting or not view.gang.initialized:
        return Wait(names.REASON_WAITING_FOR_PODS, "; ".join(waiting))
    return None


def _held_back(view: GangView) -> Wait | None:
    """Say who else must let go first."""
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
        homeless = [m for m in members if m.pod.gates == (names.GATE,) and m.slot not in nodes]
        settled = len(members) - len(homeless)
        lacking = max(0, group.min_replicas - settled)
        minimum += homeless[:lacking]
        extras += homeless[lacking:]
    return Place(tuple(minimum), tuple(extras)) if minimum or extras else None
