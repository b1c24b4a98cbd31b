"""How long a gang may wait, and what becomes of it and its room after that."""

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api import names
from api.objects import condition_of, timestamp
from api.podgang import PodGangStatus
from api.reservation import State
from controller.gangs import patience, reporting
from controller.gangs.deciding import Abandon, Expire, Wait, next_step
from controller.gangs.patience import HELD_FOR
from controller.gangs.telling import of_timeout
from controller.gangs.views import GangView
from controller.podgang import Gang
from tests.support.sets import NOW, gang, member, reservation, view

TEN = timedelta(minutes=10)
PAIR = gang({"a": (2, 2)})
SLOTS = {("a", 0): "n0", ("a", 1): "n1"}


def saying(text: str, *, label: bool = False) -> Gang:
    said = {names.GANG_TIMEOUT: text}
    more = {"labels": said} if label else {"annotations": said}
    return replace(PAIR, metadata=msgspec.structs.replace(PAIR.metadata, **more))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("90s", 90), ("1h30m", 5400), ("600", 600), ("0", None), ("-5s", None)],
)
def test_a_gang_says_for_how_long_it_may_wait(text: str, seconds: float | None) -> None:
    wanted = timedelta(seconds=seconds) if seconds else None
    assert patience.timeout_of(saying(text), TEN) == wanted
    assert patience.timeout_of(saying(text, label=True), TEN) == wanted


@pytest.mark.parametrize("text", ["soon", "10", "", "10 m", "9" * 30, "1e3"])
def test_what_cannot_be_read_leaves_the_default(text: str) -> None:
    wanted = timedelta(seconds=10) if text == "10" else TEN
    assert patience.timeout_of(saying(text), TEN) == wanted


def test_without_any_word_a_gang_may_wait_for_ever() -> None:
    assert patience.timeout_of(PAIR, None) is None
    assert patience.timeout_of(PAIR, timedelta()) is None
    assert patience.timeout_of(PAIR, TEN) == TEN
    assert patience.timeout_of(saying("2500000h"), None) is not None, "and it is no instant yet"


def waiting(since: datetime, status: str = "False") -> Gang:
    condition = {
        "type": names.SCHEDULED, "status": status, "reason": names.REASON_INSUFFICIENT,
        "message": "no room", "lastTransitionTime": timestamp(since),
    }  # fmt: skip
    there = [c.model_dump(by_alias=True) for c in PAIR.status.conditions]
    return replace(PAIR, status=PodGangStatus.model_validate({"conditions": [*there, condition]}))


def test_a_gang_is_overdue_when_it_has_waited_for_so_long() -> None:
    late = waiting(NOW - TEN)
    assert patience.overdue(late, NOW, TEN) == "not scheduled within 600 s, its gang timeout"
    assert patience.overdue(waiting(NOW - TEN + timedelta(seconds=1)), NOW, TEN) == ""
    assert patience.overdue(waiting(NOW - TEN, "True"), NOW, TEN) == "", "it waits no more"
    assert patience.overdue(late, NOW, None) == ""


def test_before_anything_was_said_its_making_counts() -> None:
    meta = msgspec.structs.replace(PAIR.metadata, creation_timestamp=NOW - TEN)
    assert patience.overdue(replace(PAIR, metadata=meta), NOW, TEN) != ""


def test_it_says_so_until_it_is_scheduled_and_an_event_tells_why() -> None:
    seen = view(waiting(NOW - TEN), [member("a", 0), member("a", 1)])
    step = Wait(names.REASON_FOREIGN_GATES, "other gates are on its pods: x")
    overdue = patience.overdue(seen.gang, NOW, TEN)
    status = reporting.status(seen, step, None, NOW, "", overdue)
    late = condition_of(status.conditions, names.TIMED_OUT)
    assert late is not None
    assert (late.status, late.reason) == ("True", "GangTimeout")
    tell = of_timeout(seen, status)
    assert tell is not None
    assert tell.reason == "GangTimeout"
    assert tell.note == f"{overdue}: other gates are on its pods: x"
    bound = reporting.status(seen, Wait(names.REASON_BOUND), None, NOW, "", overdue)
    assert condition_of(bound.conditions, names.TIMED_OUT) is None, "it never said so"
    seen = replace(seen, gang=replace(seen.gang, status=status))
    bound = reporting.status(seen, Wait(names.REASON_BOUND), None, NOW, "", overdue)
    late = condition_of(bound.conditions, names.TIMED_OUT)
    assert late is not None
    assert (late.status, late.reason) == ("False", names.REASON_BOUND)
    assert of_timeout(seen, bound) is None
    since = replace(seen, gang=replace(seen.gang, status=bound))
    anew = reporting.status(since, step, None, NOW, "", "")
    late = condition_of(anew.conditions, names.TIMED_OUT)
    assert late is not None
    assert (late.status, late.reason) == ("False", "MayWaitLonger"), "it waits for another time"
    given_time = reporting.status(seen, step, None, NOW, "", "")
    late = condition_of(given_time.conditions, names.TIMED_OUT)
    assert late is not None
    assert (late.status, late.reason) == ("False", "MayWaitLonger"), "it is not bound"
    assert of_timeout(seen, given_time) is None


def kept(state: State, ago: timedelta, *lifted: str) -> GangView:
    """The pair with its room reserved so long ago; pods on their way, one for each node given."""
    pods = [member("a", i, gated=False, node=node) for i, node in enumerate(lifted)]
    pods += [member("a", i) for i in range(len(lifted), 2)]
    return view(PAIR, pods, reservation(SLOTS, state, deadline=NOW - ago + HELD_FOR))


def test_room_that_nobody_came_to_for_so_long_is_given_back() -> None:
    held = patience.given_up(kept(State.HELD, TEN), NOW, TEN)
    assert isinstance(held, Expire)
    lifting = patience.given_up(kept(State.LIFTING, TEN, "", ""), NOW, TEN)
    assert isinstance(lifting, Abandon)
    assert lifting.message == "none of its pods was bound within 600 s, its gang timeout"


def test_room_is_kept_while_it_is_not_late_or_may_wait_for_ever() -> None:
    second = timedelta(seconds=1)
    for state in (State.HELD, State.LIFTING):
        assert patience.given_up(kept(state, TEN - second), NOW, TEN) is None
        assert patience.given_up(kept(state, TEN), NOW, None) is None
    assert patience.given_up(view(waiting(NOW - TEN), []), NOW, TEN) is None, "it has none"


@pytest.mark.parametrize("state", [State.BOUND, State.ROLLED_BACK])
def test_what_is_bound_or_taken_back_already_is_left_alone(state: State) -> None:
    assert patience.given_up(kept(state, TEN, "", ""), NOW, TEN) is None


def test_a_gang_with_a_pod_on_a_node_is_never_touched() -> None:
    assert patience.given_up(kept(State.LIFTING, TEN, "n0", ""), NOW, TEN) is None


def test_a_gang_that_was_rolled_back_for_it_goes_on_as_after_any_rollback() -> None:
    """From each write: the state, then its pods, then its slots."""
    seen = kept(State.ROLLED_BACK, TEN, "", "")
    assert type(next_step(seen, NOW)).__name__ == "Evict"
    gone = view(PAIR, [], seen.reservation)
    assert type(next_step(gone, NOW)).__name__ == "Trim"


def test_it_is_looked_at_again_each_time_something_is_late() -> None:
    seen = kept(State.LIFTING, timedelta(minutes=1), "", "")
    lifted = NOW + timedelta(minutes=9)
    assert patience.due(seen, NOW, TEN) == lifted
    both = replace(seen, gang=waiting(NOW - timedelta(minutes=5)))
    assert patience.due(both, NOW, TEN) == NOW + timedelta(minutes=5)
    assert patience.due(both, NOW + timedelta(minutes=5), TEN) == lifted
    assert patience.due(both, lifted, TEN) is None
    assert patience.due(seen, NOW, None) is None
    assert patience.due(view(waiting(NOW, "True"), []), NOW, TEN) is None
