"""Watches over pods that were lifted and not bound: whom to take back, when to give up. Pure.

A pin cannot be changed, so a pod that does not get onto its node is deleted, and whoever made it
makes another behind our gate, which is placed anew near the rest of its gang. Where that is
impossible, or keeps failing, the whole gang is taken back, to be tried again later.

Only a pod whose maker will make it again is ever taken back, and only when kube-scheduler has tried
it and said no, or its node is gone: while kube-scheduler is away, waiting is all that helps.

A gang that has started is never taken back. Pods that come to it later and are refused are tried
again ever later, and hold no room meanwhile: the engine may not know what is in their way.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from api.objects import timestamp
from api.reservation import Refused, State
from api.streams import Pod
from controller.gangs import freeing
from controller.gangs.views import GangView, Member, Reservation

PATIENCE: Final = timedelta(seconds=30)  # for a pod to be bound, however few there are
# Slots that may be found anew in one try, beside one in so many of the gang's.
MOST_REPAIRS: Final = 3
REPAIRED_SHARE: Final = 4
# Seconds: how long a begun gang without room for what it lost is kept before it is given up.
GRACE_SECONDS: Final = 30.0
FIRST_PAUSE: Final = timedelta(seconds=10)
LONGEST_PAUSE: Final = timedelta(minutes=5)
FORGOTTEN: Final = 3 * LONGEST_PAUSE  # a refusal that comes so much later is another matter
ELSEWHERE: Final = timedelta(seconds=20)  # how long only other nodes are tried
_NODES: Final = 16  # that are remembered
_SHOWN: Final = 512  # characters of what kube-scheduler said


def failed(view: GangView, now: datetime) -> tuple[Member, ...]:
    """List the lifted members for which it is no use to wait any longer."""
    late = is_late(view.reservation, now)
    return tuple(
        member
        for member in view.unbound()
        if comes_again(member.pod)
        and (member.slot in view.stranded or (late and refused(member.pod)))
    )


def is_late(reservation: Reservation | None, now: datetime) -> bool:
    """Whether all that was lifted should be bound by now."""
    until = bind_by(reservation)
    return until is not None and until <= now


def bind_by(reservation: Reservation | None) -> datetime | None:
    """Read until when what was lifted is to be bound, if anybody has said."""
    said = reservation.status.bind_by if reservation else ""
    return datetime.fromisoformat(said) if said else None


def enough_time(reservation: Reservation, now: datetime) -> bool:
    """Whether a pod that is lifted now has as much time as any."""
    until = bind_by(reservation)
    return until is not None and until >= now + PATIENCE


def is_spent(reservation: Reservation, more: int) -> bool:
    """Whether so many more refusals would be too many for one try."""
    return reservation.spec.repairs + more > MOST_REPAIRS + reservation.size // REPAIRED_SHARE


def refused(pod: Pod) -> bool:
    """Whether kube-scheduler has tried the pod and found no node for it."""
    return bool(verdict(pod))


def has_refused(view: GangView) -> bool:
    """Whether pods were refused that are taken back if they are not bound in time."""
    return any(refused(m.pod) and comes_again(m.pod) for m in view.unbound())


def verdict(pod: Pod) -> str:
    """Give what kube-scheduler said of a pod it could not bind, or ""."""
    for condition in pod.status.conditions:
        kind, said = condition.type, condition.reason
        # The API server writes SchedulingGated when the pod is made, and nobody takes it back.
        if (kind, condition.status) == ("PodScheduled", "False") and said != "SchedulingGated":
            return condition.message or said
    return ""


def comes_again(pod: Pod) -> bool:
    """Whether it may be taken back: somebody makes another, and no person let this one go."""
    return bool(pod.metadata.controller_uid) and not freeing.is_free(pod)


def blame(members: Sequence[Member]) -> str:
    """Say what kept pods from being bound, in kube-scheduler's words."""
    said = next((v for m in members if (v := verdict(m.pod))), "a node of theirs is gone")
    which = members[0].pod.metadata.name
    others = f" and {len(members) - 1} more pods" if len(members) > 1 else ""
    were = "were" if len(members) > 1 else "was"
    return f"{which}{others} {were} not bound: {said[:_SHOWN]}"


def refused_again(
    reservation: Reservation, members: Sequence[Member], now: datetime
) -> Refused | None:
    """Remember that these were refused, and where, so that they go elsewhere first, or wait."""
    if not members:
        return None
    before = reservation.spec.refused
    if before is not None and datetime.fromisoformat(before.at) + FORGOTTEN <= now:
        before = None
    slots = {m.slot for m in members}
    nodes = [slot.node for name, slot, _ in reservation.slots() if (name, slot.index) in slots]
    there = dict.fromkeys([*(before.nodes if before else ()), *nodes])
    return Refused(
        times=before.times + 1 if before else 1,
        at=timestamp(now),
        message=blame(members),
        nodes=list(there)[-_NODES:],
    )


def rests_until(reservation: Reservation) -> datetime | None:
    """Read until when pods that lost their slot in a gang that has started are not placed.

    The first refusal is taken for chance: whoever came into the room may be seen by now.
    """
    said = reservation.spec.refused
    if reservation.state is not State.BOUND or said is None or said.times < 2:
        return None
    return datetime.fromisoformat(said.at) + pause(said.times - 2)


def avoided(reservation: Reservation, now: datetime) -> frozenset[str]:
    """Name the nodes on which its pods are not placed again just now."""
    said, until = reservation.spec.refused, avoided_until(reservation)
    return frozenset(said.nodes) if said and until is not None and until > now else frozenset()


def avoided_until(reservation: Reservation) -> datetime | None:
    """Say until when others are tried first: what was in the way there may pass."""
    said = reservation.spec.refused
    if said is None:
        return None
    return (rests_until(reservation) or datetime.fromisoformat(said.at)) + ELSEWHERE


def pause(attempt: int) -> timedelta:
    """Give how long to wait after this try was rolled back: longer each time."""
    doublings: int = 1 << min(attempt, 10)
    return min(LONGEST_PAUSE, FIRST_PAUSE * doublings)
