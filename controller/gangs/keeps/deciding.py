"""What is to be said of what a person has kept, and whether room is to be found for it. Pure.

A keep goes these ways. All there is to go on is the reservation itself and the ledger, so a leader
that died after any write is replaced by one that goes on from there:

    Pending ─► Available ◄─► Allocated ─► Succeeded, once one gang is bound in it
       ▲           │             │
       └───────────┴─────────────┴─► Expired, or Failed if nobody it is for is left

Invariant: what is kept is written with its state in one write, and counts as taken from then on
until another write says that it ended. What a gang draws is in the gang's own entry of the ledger.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from api import names, quantities
from api.jsons import JsonObject
from api.keep import KeepStatus, KeptSlot, State, User
from api.models import Condition
from api.objects import condition_of, settled, timestamp
from api.quantities import Amounts
from api.reservation import State as EntryState
from controller.gangs.keeps import views
from controller.gangs.keeps.views import Keep, KeepView
from scheduler.answers import Placement

_LONGEST: Final = 1024  # of a message
_TOLD: Final = 1000  # users that are named

_REASONS: Final[Mapping[State, str]] = {
    State.PENDING: names.REASON_INSUFFICIENT,
    State.AVAILABLE: names.REASON_KEPT,
    State.ALLOCATED: names.REASON_KEPT,
    State.SUCCEEDED: names.REASON_USED,
    State.FAILED: names.REASON_KEEP_FAILED,
    State.EXPIRED: names.REASON_EXPIRED,
}


@dataclass(frozen=True)
class Rest:
    """Nothing to do until something changes, or until then."""

    until: datetime | None = None


@dataclass(frozen=True)
class Tell:
    """Write this status."""

    status: KeepStatus


@dataclass(frozen=True)
class Seek:
    """Find room for these slots, all of them or none."""

    indices: tuple[int, ...]


Step: TypeAlias = Rest | Tell | Seek


def next_step(view: KeepView, now: datetime) -> Step:
    """Decide what a keep needs now."""
    keep = view.keep
    if keep.ended:
        return Rest()
    end = _end(view, now)
    if end is not None:
        return Tell(_status(view, now, *end, slots=()))
    missing = view.missing()
    slots = view.slots()
    if missing and not view.refusal and len(slots) == len(keep.status.slots):
        return Seek(missing)
    said = _status(view, now, _state(view), view.refusal if missing else "", slots=slots)
    if not same(keep.status, said):
        return Tell(said)
    return Seek(missing) if missing else Rest(keep.expires)


def placed(view: KeepView, placement: Placement, now: datetime) -> KeepStatus:
    """Say where the room is now, of all slots."""
    found = [KeptSlot(index=p.want.index, node=p.node) for p in placement.placed]
    (need,) = {tuple(sorted(p.want.need.items())) for p in placement.placed}
    slots = sorted([*view.slots(), *found], key=lambda slot: slot.index)
    state = State.ALLOCATED if view.users else State.AVAILABLE
    return _status(view, now, state, "", slots=slots, need=dict(need))


def failed(view: KeepView, why: str, now: datetime) -> KeepStatus:
    """Say that no room can ever be found, since what is asked for cannot be read."""
    return _status(view, now, State.FAILED, why, slots=())


def same(there: KeepStatus, wanted: KeepStatus) -> bool:
    """Whether a status says all that is wanted, whenever it began to."""
    return _said(there) == _said(wanted)


def patch(keep: Keep, status: KeepStatus) -> JsonObject:
    """Write the merge patch that says it; it fails if the reservation has changed since."""
    body: JsonObject = status.model_dump(mode="json", by_alias=True)
    body["expiresAt"] = status.expires_at or None
    for name in ("requests", "kept", "used"):
        # A merge patch leaves as they were the amounts that it does not name.
        before: Mapping[str, str] = getattr(keep.status, name)
        now: Mapping[str, str] = getattr(status, name)
        body[name] = {**dict.fromkeys(before), **now}
    return {"metadata": {"resourceVersion": keep.metadata.resource_version}, "status": body}


def _end(view: KeepView, now: datetime) -> tuple[State, str] | None:
    keep = view.keep
    used = [user for user in view.users if user.state is EntryState.BOUND]
    if keep.spec.allocate_once and used:
        return State.SUCCEEDED, f"{used[0].metadata.name} has its pods in it"
    if keep.expires is not None and keep.expires <= now:
        return State.EXPIRED, "its time is over"
    if view.orphaned:
        return State.FAILED, "all that its owners name is gone"
    return None


def _state(view: KeepView) -> State:
    if view.missing():
        return State.PENDING
    return State.ALLOCATED if view.users else State.AVAILABLE


def _status(
    view: KeepView,
    now: datetime,
    state: State,
    message: str,
    *,
    slots: Sequence[KeptSlot],
    need: Amounts | None = None,
) -> KeepStatus:
    keep = view.keep
    requests = _texts(need) if need is not None else keep.status.requests
    each = quantities.amounts(requests)
    used: Amounts = {}
    for user in view.users:
        for drawn in views.drawn_by(user).values():
            used = quantities.plus(used, drawn)
    holds = state in (State.AVAILABLE, State.ALLOCATED)
    condition = Condition(
        type=names.AVAILABLE,
        status="True" if holds else "False",
        reason=_REASONS[state],
        message=message[:_LONGEST],
        last_transition_time=timestamp(now),
        observed_generation=keep.metadata.generation,
    )
    before = condition_of(keep.status.conditions, names.AVAILABLE)
    return KeepStatus(
        state=state,
        message=message[:_LONGEST],
        expires_at=timestamp(keep.expires) if keep.expires else "",
        requests=requests,
        slots=list(slots),
        users=_users(view),
        kept=_texts({name: amount * len(slots) for name, amount in each.items()}),
        used=_texts(used),
        conditions=[settled([before] if before else [], condition)],
    )


def _users(view: KeepView) -> list[User]:
    return [
        User(gang=user.spec.gang.name, uid=user.spec.gang.uid, pods=views.pods_of(user))
        for user in view.users[:_TOLD]
    ]


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: quantities.text(name, amount) for name, amount in sorted(amounts.items())}


def _said(status: KeepStatus) -> tuple[object, ...]:
    conditions = Counter((c.type, c.status, c.reason, c.message) for c in status.conditions)
    rest = status.model_dump(exclude={"conditions"})
    return conditions, rest
