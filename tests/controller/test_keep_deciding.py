"""What becomes of room that a person has kept: found whole, drawn on, and free again at the end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.keep import KeepSpec, State
from api.objects import condition_of
from api.reservation import State as EntryState
from api.streams import Custom
from controller.gangs.keeps import deciding, views
from controller.gangs.keeps.deciding import Rest, Seek, Tell
from controller.gangs.keeps.views import Keep, KeepView
from scheduler.answers import Placed, Placement
from scheduler.requests import GangRequest, Want
from tests.support.keeping import GPU, keep, raw, user
from tests.support.sets import NOW

TWO = {0: "n0", 1: "n1"}


def told(view: KeepView) -> tuple[State, str]:
    step = deciding.next_step(view, NOW)
    assert isinstance(step, Tell)
    return step.status.state, step.status.message


def found(view: KeepView, *nodes: str) -> Placement:
    wants = tuple(Want("room", index, {GPU: 1, "pods": 1}) for index in view.missing())
    placed = tuple(Placed(want, node) for want, node in zip(wants, nodes, strict=True))
    return Placement(GangRequest("default", "room", wants), placed, (), 1.0)


def stored(kept: Keep, view: KeepView) -> Keep:
    """The keep after its next step was written."""
    step = deciding.next_step(view, NOW)
    assert isinstance(step, Tell)
    return replace(kept, status=step.status)


def test_a_new_one_seeks_room_for_all_its_slots_at_once() -> None:
    view = KeepView(keep(replicas=3))
    assert deciding.next_step(view, NOW) == Seek((0, 1, 2))


def test_once_placed_it_is_available_and_says_what_it_keeps() -> None:
    view = KeepView(keep(replicas=2))
    status = deciding.placed(view, found(view, "n1", "n0"), NOW)
    assert status.state is State.AVAILABLE
    assert [(slot.index, slot.node) for slot in status.slots] == [(0, "n1"), (1, "n0")]
    assert status.kept == {GPU: "2", "pods": "2"}
    condition = condition_of(status.conditions, names.AVAILABLE)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", names.REASON_KEPT)
    after = replace(view.keep, status=status)
    assert deciding.next_step(KeepView(after), NOW) == Rest(after.expires)


def test_while_there_is_no_room_it_says_what_is_missing_and_then_seeks_again() -> None:
    view = KeepView(keep(replicas=2), refusal="2 GPUs short")
    assert told(view) == (State.PENDING, "2 GPUs short")
    after = replace(view, keep=stored(view.keep, view))
    assert deciding.next_step(after, NOW) == Seek((0, 1))


def test_it_is_allocated_while_a_gang_draws_on_it_and_tells_who_and_how_much() -> None:
    view = KeepView(keep(slots=TWO, replicas=2), (user({0: "n1", 1: "n7"}, {"n1": 1}),))
    step = deciding.next_step(view, NOW)
    assert isinstance(step, Tell)
    assert step.status.state is State.ALLOCATED
    assert [(each.gang, each.pods) for each in step.status.users] == [("demo-0", 1)]
    assert step.status.used == {GPU: "1", "pods": "1"}
    gone = KeepView(replace(view.keep, status=step.status))
    assert told(gone) == (State.AVAILABLE, "")


def test_room_for_once_has_served_when_one_gang_is_bound_in_it() -> None:
    held = keep(slots=TWO, replicas=2)
    for state in (EntryState.HELD, EntryState.LIFTING):
        assert told(KeepView(held, (user({0: "n1"}, {"n1": 1}, state),)))[0] is State.ALLOCATED
    bound = KeepView(held, (user({0: "n1"}, {"n1": 1}, EntryState.BOUND),))
    assert told(bound) == (State.SUCCEEDED, "demo-0 has its pods in it")
    after = stored(held, bound)
    assert after.shares() == {}
    assert deciding.next_step(KeepView(after), NOW) == Rest()


def test_room_for_many_is_kept_on_after_a_gang_is_bound_in_it() -> None:
    held = keep(slots=TWO, replicas=2, allocateOnce=False)
    bound = KeepView(held, (user({0: "n1"}, {"n1": 1}, EntryState.BOUND),))
    assert told(bound)[0] is State.ALLOCATED
    assert views.rest(held, bound.users) == {"n0": {GPU: 1, "pods": 1}}


@pytest.mark.parametrize(
    ("spec", "lasts"),
    [
        ({}, timedelta(hours=24)),
        ({"ttl": "90m"}, timedelta(minutes=90)),
        ({"expires": (NOW + timedelta(days=3)).isoformat()}, timedelta(days=3)),
    ],
)
def test_when_its_time_is_over_it_keeps_nothing(spec: JsonObject, lasts: timedelta) -> None:
    made = keep(slots=TWO, replicas=2)
    written = {**made.spec.model_dump(by_alias=True), **spec}
    held = replace(made, spec=KeepSpec.model_validate(written))
    view = KeepView(held)
    assert held.expires == NOW + lasts
    assert isinstance(deciding.next_step(view, NOW + lasts - timedelta(seconds=1)), Tell)
    step = deciding.next_step(view, NOW + lasts)
    assert isinstance(step, Tell)
    assert step.status.state is State.EXPIRED
    after = replace(held, status=step.status)
    assert after.shares() == {}
    # Nothing brings it back, also not more time.
    assert deciding.next_step(KeepView(after), NOW) == Rest()


def test_one_that_was_never_placed_expires_too() -> None:
    step = deciding.next_step(KeepView(keep()), NOW + timedelta(hours=24))
    assert isinstance(step, Tell)
    assert step.status.state is State.EXPIRED


def test_when_nobody_is_left_that_it_could_be_for_it_fails() -> None:
    view = KeepView(keep(slots=TWO, replicas=2), orphaned=True)
    assert told(view) == (State.FAILED, "all that its owners name is gone")


def test_slots_whose_node_is_gone_are_given_up_and_found_anew() -> None:
    held = keep(slots=TWO, replicas=2)
    view = KeepView(held, lost=frozenset({"n1"}))
    step = deciding.next_step(view, NOW)
    assert isinstance(step, Tell)
    assert step.status.state is State.PENDING
    assert [slot.node for slot in step.status.slots] == ["n0"]
    after = KeepView(replace(held, status=step.status))
    assert deciding.next_step(after, NOW) == Seek((1,))
    again = deciding.placed(after, found(after, "n5"), NOW)
    assert [(slot.index, slot.node) for slot in again.slots] == [(0, "n0"), (1, "n5")]


def test_slots_that_somebody_uses_stay_where_they_are() -> None:
    view = KeepView(
        keep(slots=TWO, replicas=2), (user({0: "n1"}, {"n1": 1}),), lost=frozenset({"n1"})
    )
    assert view.missing() == ()


def test_what_is_written_replaces_amounts_that_are_no_more() -> None:
    before = keep(slots=TWO, replicas=2)
    one = KeepView(before, (user({0: "n1"}, {"n1": 1}),))
    step = deciding.next_step(one, NOW)
    assert isinstance(step, Tell)
    after = replace(before, status=step.status)
    none = deciding.next_step(KeepView(after), NOW)
    assert isinstance(none, Tell)
    status = deciding.patch(after, none.status)["status"]
    assert isinstance(status, dict)
    assert status["used"] == {GPU: None, "pods": None}


def test_equal_news_are_not_written_again_later() -> None:
    view = KeepView(keep(replicas=2), refusal="full")
    after = replace(view, keep=stored(view.keep, view))
    assert isinstance(deciding.next_step(after, NOW + timedelta(minutes=5)), Seek)


def test_a_gang_draws_no_more_than_its_slots_there_take() -> None:
    assert views.drawn_by(user({0: "n1"}, {"n1": 4})) == {"n1": {GPU: 1, "pods": 1}}
    assert views.drawn_by(user({0: "n2"}, {"n1": 4})) == {}
    held = keep(slots=TWO, replicas=2)
    assert views.rest(held, [user({0: "n2"}, {"n1": 4})]) == held.shares()


def test_an_instant_may_be_written_in_small_letters_and_must_name_its_zone() -> None:
    def expiring(when: str) -> Custom:
        made = keep()
        spec = made.spec.model_copy(update={"expires": when})
        return msgspec.json.decode(raw(replace(made, spec=spec), 1), type=Custom)

    found = views.read(expiring("2030-01-01t00:00:00z"))
    assert found is not None
    assert found.expires == datetime(2030, 1, 1, tzinfo=UTC)
    for wrong in ("2030-01-01T00:00:00", "tomorrow"):
        assert views.read(expiring(wrong)) is None


def test_what_names_a_gang_is_the_ledgers_whatever_else_it_says() -> None:
    def written(spec: JsonObject) -> Custom:
        body: JsonObject = {"metadata": {"name": "x"}, "spec": spec}
        return msgspec.json.decode(msgspec.json.encode(body), type=Custom)

    owners: JsonObject = {"owners": [{"labelSelector": {}}]}
    assert views.is_by_a_person(written(owners))
    assert not views.is_by_a_person(written({"gang": {"name": "g", "uid": "u"}}))
    assert not views.is_by_a_person(written({**owners, "gang": {"name": "g", "uid": "u"}}))
    assert not views.is_by_a_person(written({}))
