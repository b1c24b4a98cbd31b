"""The one thing a gang needs next. Pure: equal views give equal steps.

A gang goes through these steps. A leader that died after any write is replaced by one that reads
the same objects and goes on from there:

    Wait ─► Place (Held) ─► Begin (Lifting) ─► Lift, pod by pod ─► Wait ─► Close (Bound)
              │                                  ├─► Repair, Evict ─► Place, what was lost
              │                                  └─► Abandon (RolledBack) ─► Evict ─► Place
              └─► Expire: the deadline passed, or a node was lost, before any lift

Cliques that wait for others are lifted wave by wave, each once its parents are up; the gang is
Lifting until the last wave is bound, however long that takes.

What was lifted and is not bound in time is taken out of the ledger first and deleted then, so that
whoever comes in its place is placed anew and never lifted onto the same node unasked. A gang that
is rolled back loses all its lifted pods, then its slots, and is placed again as a whole.

A begun gang that is scaled in has its reservation trimmed; one that grew is placed again, and so is
a pod that is still gated when its slot serves it no more.

While its base gang is rolled back, nothing of a scaled gang is lifted: one that is not Bound is
taken back as well and waits again, since its base needs the room first; what runs stays.

Invariant: a pod is lifted only by its slot in a reservation that says Lifting or Bound, and such a
reservation began with a slot for the whole minimum of every clique.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from api import names
from api.objects import timestamp
from api.reservation import State
from controller.gangs import lacking, startup, watching
from controller.gangs.booking import NO_REFUSALS, Refusals
from controller.gangs.views import GangView, Member, Reservation, SlotKey

_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)  # for a question that no deadline bears on


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something changes; the reason is shown on the gang."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Place:
    """Find room for these members: `minimum` all or none of them, `extras` as they fit.

    None of them on a node to `avoid`.
    """

    minimum: tuple[Member, ...]
    extras: tuple[Member, ...]
    avoid: frozenset[str] = frozenset()


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
    """Nothing was lifted, and time ran out or a slot serves no more: give the room back.

    Or a former leader wrote it after its time. What is known of earlier tries is kept.
    """

    reservation: Reservation


@dataclass(frozen=True)
class Trim:
    """Slots of pods that are wanted no more: take them out of the reservation."""

    reservation: Reservation
    slots: frozenset[SlotKey]


@dataclass(frozen=True)
class Extend:
    """Give what is lifted time to be bound; said before the lift, so it holds whoever leads."""

    reservation: Reservation


@dataclass(frozen=True)
class Repair:
    """Lifted pods did not get onto these slots: take the slots out of the ledger."""

    reservation: Reservation
    slots: frozenset[SlotKey]
    refusals: Refusals = NO_REFUSALS


@dataclass(frozen=True)
class Evict:
    """Delete lifted pods that have no slot any more, or whose gang was rolled back."""

    members: tuple[Member, ...]


@dataclass(frozen=True)
class Abandon:
    """Roll the whole gang back: some of it was lifted, and the rest finds no place."""

    reservation: Reservation
    message: str


Step: TypeAlias = (
    Wait | Place | Begin | Lift | Close | Expire | Trim | Extend | Repair | Evict | Abandon
)


def next_step(view: GangView, now: datetime) -> Step:
    """Decide what the gang needs now."""
    reservation = view.reservation
    if reservation is not None and reservation.state is State.ROLLED_BACK:
        return _rolled_back(view, reservation, now)
    if reservation is not None and reservation.state is not State.HELD:
        step = _watched(view, reservation, now) or _committed(view, reservation, now)
        return _without_base(view, reservation, step) if view.base_down else step
    held = reservation if reservation is not None and reservation.size else None
    if held is not None and (_is_over(view, held, now) or view.base_down):
        return Expire(held)
    obstacle = _missing(view) or _held_back(view)
    if obstacle is not None:
        return obstacle
    return Begin(held) if held is not None else _place(view) or settled(view)


def _is_over(view: GangView, held: Reservation, now: datetime) -> bool:
    """Whether a reservation of which nothing was lifted keeps its room no longer."""
    return deadline_of(held) <= now or bool(view.unfit) or view.overtaken


def deadline_of(reservation: Reservation) -> datetime:
    """Read until when the reservation keeps its room if nothing is lifted."""
    return datetime.fromisoformat(reservation.spec.deadline)


def next_deadline(view: GangView, now: datetime) -> datetime | None:
    """Say when time will have changed what the gang needs; after that, only events tell."""
    reservation = view.reservation
    due: datetime | None = None
    if reservation is None:
        return None
    if reservation.state is State.HELD:
        due = deadline_of(reservation)
    elif reservation.state is State.ROLLED_BACK:
        said = reservation.status.retry_at
        due = datetime.fromisoformat(said) if said else None
    else:
        bound_by = watching.bind_by(reservation) if view.unbound() else None
        later = [*lacking.overdue_at(view), lacking.together_at(view)]
        all_due = (bound_by, _rests_until(view), watching.avoided_until(reservation), *later)
        return min((each for each in all_due if each is not None and each > now), default=None)
    return due if due is not None and due > now else None


def abandoned(view: GangView, step: Step, refused_for: float) -> Abandon | None:
    """Decide whether a begun gang is given up, as what it lost has found no room for so long."""
    reservation = view.reservation
    if reservation is None or reservation.state is not State.LIFTING:
        return None  # one that has started is whoever terminates gangs to judge
    if not isinstance(step, Place) or not step.minimum or refused_for < watching.GRACE_SECONDS:
        return None
    pods = len(step.minimum)
    return Abandon(reservation, f"{pods} of its pods lost their place and there is no other")


def _watched(view: GangView, reservation: Reservation, now: datetime) -> Step | None:
    """Look after lifted pods that cannot be bound; None if there are none."""
    failed = watching.failed(view, now)
    if not failed:
        return None
    slots = frozenset(m.slot for m in failed) & view.nodes_by_slot().keys()
    if not slots:
        return Evict(failed)
    # Nodes that vanish do not speak against a gang, however many.
    refused = [m for m in failed if m.slot in slots - view.stranded]
    if reservation.state is State.LIFTING and watching.is_spent(reservation, len(refused)):
        return Abandon(reservation, watching.blame(refused))
    remembered = watching.refused_again(reservation, refused, now)
    return Repair(reservation, slots, Refusals(len(refused), remembered))


def _without_base(view: GangView, reservation: Reservation, step: Step) -> Step:
    """Do nothing that would start more of a gang whose base gang is rolled back."""
    if reservation.state is State.LIFTING and not isinstance(step, Close):
        return Abandon(reservation, "its base gang was rolled back")
    if not isinstance(step, Lift | Place | Extend):
        return step
    if lacking.is_bound(view):
        return settled(view)
    return Wait(names.REASON_WAITING_FOR_BASE, "its base gang was rolled back")


def _rolled_back(view: GangView, reservation: Reservation, now: datetime) -> Step:
    """Take back all that was lifted, then give the room back, then begin anew in time."""
    lifted = tuple(m for m in view.members if not m.gated and watching.comes_again(m.pod))
    if lifted:
        return Evict(lifted)
    slots = frozenset(view.nodes_by_slot())
    if slots:
        return Trim(reservation, slots)
    status = reservation.status
    if status.retry_at and datetime.fromisoformat(status.retry_at) > now:
        why = f"{status.message}; it is tried again at {status.retry_at}"
        return Wait(names.REASON_ROLLED_BACK, why)
    return _missing(view) or _held_back(view) or _place(view) or settled(view)


def _committed(view: GangView, reservation: Reservation, now: datetime) -> Step:
    """Go on with a gang whose first lift may have happened.

    Nothing that befalls one of its pods may keep the others from being lifted.
    """
    let_go = _let_go(view, reservation, now)
    unfit = view.unfit
    due = [(member, node) for member, node in lacking.due(view) if member.slot not in unfit]
    waiting = startup.unmet(view) if due else {}
    ready = tuple((member, node) for member, node in due if not startup.is_held(member, waiting))
    unwatched = bool(view.unbound()) and watching.bind_by(reservation) is None
    if let_go is not None or unwatched:
        return let_go or Extend(reservation)
    if ready and not watching.enough_time(reservation, now):
        # More time for these would be more for the refused too, again and again.
        return settled(view) if watching.has_refused(view) else Extend(reservation)
    if ready:
        return Lift(ready)
    stale = view.stale_slots()
    if stale:
        return Trim(reservation, stale)
    if reservation.state is State.BOUND:
        return _started(view, now)
    return _lifted(view, reservation, now, waiting=bool(due))


def _started(view: GangView, now: datetime) -> Step:
    """Go on with a gang that has started, of which nothing can be lifted now."""
    if lacking.gathers(view, now):
        return Wait(names.REASON_WAITING_FOR_PODS, lacking.to_come(view))
    until = _rests_until(view)
    if until is None or until <= now:
        return _again(view, now) or _by_others(view) or settled(view)
    slots = view.nodes_by_slot()
    place = _again(view, now, without=lambda member: member.slot not in slots)
    resting = any(lacking.homeless(view))
    return place or (_resting(view, until) if resting else settled(view))


def _rests_until(view: GangView) -> datetime | None:
    return watching.rests_until(view.reservation) if view.reservation is not None else None


def _resting(view: GangView, until: datetime) -> Wait:
    said = view.reservation.spec.refused if view.reservation is not None else None
    message = f"{said.message if said else ''}; it is tried again at {timestamp(until)}"
    return Wait(names.REASON_BOUND if lacking.is_bound(view) else names.REASON_REFUSED, message)


def _lifted(view: GangView, reservation: Reservation, now: datetime, *, waiting: bool) -> Step:
    """Go on where nothing can be lifted now, though some may be `waiting` for their turn."""
    place = _again(view, now)
    if place is not None and lacking.gathers(view, now):
        return Wait(names.REASON_WAITING_FOR_PODS, lacking.to_come(view))
    if waiting:
        return place or settled(view)
    if place is not None and place.minimum:
        return place  # its slot serves no more, and who waits for it would wait for ever
    if view.unbound():
        return settled(view)
    return _missing(view) or _by_others(view) or Close(reservation)


def settled(view: GangView) -> Wait:
    """Say how a begun gang stands that has nothing to do, or none but to ask for extras."""
    unbound = len(view.unbound())
    if unbound:
        return Wait(names.REASON_LIFTING, f"{unbound} lifted pods are not bound yet")
    unmet = startup.unmet(view)
    waiting = Counter(m.slot[0] for m, _ in lacking.due(view) if startup.is_held(m, unmet))
    if waiting:
        message = startup.sentence({name: unmet[name] for name in waiting})
        if _starting(view) or _short_without(view, waiting):
            return Wait(names.REASON_WAITING_FOR_PARENTS, message)
        return Wait(names.REASON_BOUND, message)
    missing = _missing(view)
    return Wait(names.REASON_BOUND, missing.message if missing else "")


def has_started(view: GangView) -> bool:
    """Whether gangs that must come after this one may be placed.

    They may once its whole minimum has its room and whoever is free to start is bound: those of its
    cliques that wait for others can be long in coming, and their room is kept.
    """
    if view.reservation is None:
        # Grove's gangs run where nothing was reserved.
        return lacking.is_bound(view)
    if view.reservation.state in (State.HELD, State.ROLLED_BACK):
        return False
    if view.reservation.state is State.BOUND:
        return True
    step = _committed(view, view.reservation, _ANY_TIME)
    if isinstance(step, Place) and not step.minimum:
        step = settled(view)
    waits = isinstance(step, Wait) and step.reason == names.REASON_WAITING_FOR_PARENTS
    return waits and _missing(view) is None


def _starting(view: GangView) -> bool:
    return view.reservation is not None and view.reservation.state is State.LIFTING


def _short_without(view: GangView, waiting: Mapping[str, int]) -> bool:
    """Whether a clique's minimum is not met by those of its pods that do not wait."""
    return any(
        len(view.of_clique(group.name)) - waiting.get(group.name, 0) < group.min_replicas
        for group in view.gang.spec.pod_groups
    )


def _missing(view: GangView) -> Wait | None:
    """Say which pods must come about before the gang is whole."""
    short = lacking.short(view)
    if short or not (view.gang.initialized or view.is_made):
        return Wait(names.REASON_WAITING_FOR_PODS, short)
    return None


def _held_back(view: GangView) -> Wait | None:
    """Say who else must let go first."""
    if not view.base_started:
        return Wait(names.REASON_WAITING_FOR_BASE, "its base gang has not started")
    foreign = lacking.held_back(view)
    if foreign:
        # To reserve room for a pod that somebody else holds back would keep it for nobody.
        return Wait(names.REASON_FOREIGN_GATES, lacking.gates(foreign))
    return None


def _by_others(view: GangView) -> Wait | None:
    """Say who else keeps a begun gang from having its minimum."""
    foreign = lacking.held_back(view)
    if not foreign or lacking.can_spare(view, foreign):
        return None
    return Wait(names.REASON_FOREIGN_GATES, lacking.gates(foreign))


def _let_go(view: GangView, reservation: Reservation, now: datetime) -> Step | None:
    """Keep room no longer for pods that somebody else has held back for so long."""
    overdue = lacking.overdue(view, now)
    if not overdue:
        return None
    if reservation.state is State.LIFTING and not lacking.can_spare(view, overdue):
        return Abandon(reservation, lacking.gates(overdue))
    slots = frozenset(m.slot for m in overdue) & view.nodes_by_slot().keys()
    return Trim(reservation, slots) if slots else None


def _place(view: GangView, without: Callable[[Member], bool] = lambda _: False) -> Place | None:
    """Ask for room for gated members without a slot that serves: what the minimum lacks first."""
    minimum, extras = lacking.homeless(view, without)
    return Place(minimum, extras) if minimum or extras else None


def _again(
    view: GangView, now: datetime, without: Callable[[Member], bool] = lambda _: False
) -> Place | None:
    """Ask the same for a begun gang, at first on other nodes than those that were refused."""
    place = _place(view, without)
    if place is None or view.reservation is None:
        return place
    return replace(place, avoid=watching.avoided(view.reservation, now))
