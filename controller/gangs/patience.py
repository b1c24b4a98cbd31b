"""For how long a gang may wait, and what is done when that is over. Pure.

A gang that waits without room holds nothing, so it is only told that it has waited too long. One
that has room, and has nobody on a node after so long, gives the room back for a while: what was
lifted is taken back behind the gate, and it is tried again later. Pods that have a node are never
touched, nor the room that is kept beside them.
"""

import re
from datetime import datetime, timedelta
from typing import Final

from api import durations, names
from api.durations import BadDurationError
from api.objects import condition_of
from api.reservation import State
from controller.gangs.deciding import Abandon, Expire, deadline_of
from controller.gangs.views import GangView
from controller.podgang import Gang
from policies.policy import Policy

HELD_FOR: Final = timedelta(seconds=60)  # how long a reservation waits for its first lift
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_LONGEST: Final = timedelta(days=3650)


def timeout_of(gang: Gang, default: timedelta | None) -> timedelta | None:
    """Give how long the gang may wait; None for as long as it takes.

    The gang's own word counts, unless it cannot be read. Nothing, or less, means for ever.
    """
    meta = gang.metadata
    text = meta.annotations.get(names.GANG_TIMEOUT, "") or meta.labels.get(names.GANG_TIMEOUT, "")
    said = read(text) if text else None
    chosen = default if said is None else said
    return chosen if chosen is not None and chosen > timedelta() else None


def of_policy(policy: Policy, flag: timedelta) -> timedelta:
    """Give how long gangs may wait that say nothing of it: as the policy says, else the flag."""
    said = read(policy.timeouts.gang) if policy.timeouts.gang is not None else None
    return flag if said is None else said


def read(text: str) -> timedelta | None:
    """Read a timeout: a duration as Go writes it, or seconds; None if it is neither."""
    try:
        seconds = float(text) if _SECONDS.fullmatch(text) else durations.seconds(text)
    except BadDurationError:
        return None
    return min(timedelta(seconds=seconds), _LONGEST)


def waits_since(gang: Gang) -> datetime | None:
    """Tell since when the gang is not scheduled; None for one that is."""
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    if said is None:
        return gang.metadata.creation_timestamp
    return None if said.status == "True" else datetime.fromisoformat(said.last_transition_time)


def due(view: GangView, now: datetime, timeout: timedelta | None) -> datetime | None:
    """Tell when the gang will next have waited, or held room, for too long."""
    if timeout is None:
        return None
    since = [waits_since(view.gang), _kept_since(view)]
    late = [each + timeout for each in since if each is not None]
    return min((each for each in late if each > now), default=None)


def overdue(gang: Gang, now: datetime, timeout: timedelta | None) -> str:
    """Say for how long the gang should have waited at the most; "" while it has not."""
    since = waits_since(gang)
    if timeout is None or since is None or now < since + timeout:
        return ""
    return f"not scheduled within {timeout.total_seconds():.0f} s, its gang timeout"


def given_up(view: GangView, now: datetime, timeout: timedelta | None) -> Abandon | Expire | None:
    """Decide whether the room that the gang has is given back, as it got no further for so long."""
    reservation, since = view.reservation, _kept_since(view)
    if reservation is None or timeout is None or since is None or now < since + timeout:
        return None
    if reservation.state is State.HELD:
        return Expire(reservation)
    why = f"none of its pods was bound within {timeout.total_seconds():.0f} s, its gang timeout"
    return Abandon(reservation, why)


def _kept_since(view: GangView) -> datetime | None:
    """Tell since when it has room that nobody has come to."""
    reservation = view.reservation
    if reservation is None or reservation.state not in (State.HELD, State.LIFTING):
        return None
    if any(member.bound for member in view.members):
        return None
    return deadline_of(reservation) - HELD_FOR
