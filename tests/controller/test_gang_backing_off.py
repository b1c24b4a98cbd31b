"""What is tried in vain is tried ever later, and whose base gang was taken back is not started."""

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api import names
from api.objects import timestamp
from api.reservation import Refused, ReservationSpec, State
from api.streams import Affinity, Expression, NodeAffinity, NodeSelector, Pod, Term
from controller.gangs import asking, booking, watching
from controller.gangs.deciding import (
    Abandon,
    Begin,
    Close,
    Evict,
    Expire,
    Lift,
    Place,
    Repair,
    Step,
    Wait,
    next_deadline,
    next_step,
)
from controller.gangs.standing import Standing
from controller.gangs.views import GangView, Reservation
from scheduler.answers import Placed, Placement
from scheduler.eligible import NOT_SELECTED, obstacle
from scheduler.requests import GangRequest, Want
from tests.controller.test_gang_moving import booked, see
from tests.controller.test_gang_watching import (
    NO_ROOM,
    TWO,
    begun,
    bound,
    rolled_back,
    seen,
    stuck,
)
from tests.support.clusters import node
from tests.support.gangscene import gang_of, scene
from tests.support.sets import NOW, member, reservation, slots_of

LATER = NOW + timedelta(seconds=60)
GATED = [member("a", 0), member("a", 1)]


def patched(booked: Reservation, patch: object) -> Reservation:
    assert isinstance(patch, dict)
    spec = ReservationSpec.model_validate(
        {**booked.spec.model_dump(by_alias=True), **patch["spec"]}
    )
    return replace(booked, spec=spec)


def repaired(booked: Reservation, step: Step) -> Reservation:
    assert isinstance(step, Repair)
    patch = booking.repaired(booked, step.slots, Standing(1.0), step.refusals)
    return patched(booked, patch)


def again(booked: Reservation) -> Reservation:
    """The reservation once the lost slot was found anew."""
    want = Want("a", 1, {"nvidia.com/gpu": 1, "pods": 1})
    asked = GangRequest("default", "demo-0", (want,))
    placement = Placement(asked, (Placed(want, "n1"),), (), 1.0)
    return patched(booked, booking.grown(booked, placement, Standing(1.0)))


def tries(first: Reservation, times: int) -> list[float]:
    """How many seconds go by, each time, from a repair until the pod is placed once more."""
    booked, now, waits = first, NOW, []
    for _ in range(times):
        booked = repaired(booked, next_step(seen([bound(0), stuck(1)], booked), now))
        whole = seen([bound(0), member("a", 1)], booked)
        until = now
        while not isinstance(next_step(whole, until), Place):
            due = next_deadline(whole, until)
            assert due is not None, "or it is never looked at again"
            until = due
        waits.append((until - now).total_seconds())
        booked, now = again(booked), until + timedelta(seconds=50)
    return waits


def test_what_kube_scheduler_refuses_again_and_again_of_a_gang_that_runs_comes_ever_later() -> None:
    assert tries(begun(state=State.BOUND), 4) == [0, 10, 20, 40]
    assert tries(begun(state=State.BOUND), 9)[-1] == watching.LONGEST_PAUSE.total_seconds()


@pytest.mark.parametrize("state", [State.LIFTING, State.BOUND])
def test_what_was_refused_on_a_node_goes_to_another_first(state: State) -> None:
    """Whatever was in the way there, the engine does not see it."""
    booked = repaired(
        begun(state=state), next_step(seen([bound(0), stuck(1)], begun(state=state)), NOW)
    )
    whole = seen([bound(0), member("a", 1)], booked)
    step = next_step(whole, NOW)
    assert isinstance(step, Place)
    assert step.avoid == {"n1"}
    (want,) = asking.request(whole, step).minimum
    assert obstacle(node("n1"), want.constraints) == NOT_SELECTED
    assert obstacle(node("n9"), want.constraints) == ""
    assert want.constraints.required is not None
    (term,) = want.constraints.required.node_selector_terms
    assert len(term.match_fields) == 1, "and says so once"
    due = next_deadline(whole, NOW)
    assert due == NOW + watching.ELSEWHERE
    step = next_step(whole, due)
    assert isinstance(step, Place)
    assert step.avoid == frozenset(), "there may be no other"


def test_who_may_use_few_nodes_may_use_no_others_when_one_is_avoided() -> None:
    pod = member("a", 1)
    labelled = Term(match_expressions=(Expression("kind", "In", ("h100",)),))
    only = NodeAffinity(required=NodeSelector((labelled, Term())))
    spec = msgspec.structs.replace(pod.spec, affinity=Affinity(node_affinity=only))
    whole = seen([bound(0), msgspec.structs.replace(pod, spec=spec)], begun({("a", 0): "n0"}))
    step = next_step(whole, NOW)
    assert isinstance(step, Place)
    (want,) = asking.request(whole, replace(step, avoid=frozenset({"n1", "n2"}))).minimum
    fits = [
        name
        for name, kind in (("n1", "h100"), ("n2", "h100"), ("n3", "h100"), ("n4", "a100"))
        if not obstacle(node(name, labels={"kind": kind}), want.constraints)
    ]
    assert fits == ["n3"]


def bound_and_refused(times: int, at: datetime = NOW) -> Reservation:
    booked = begun({("a", 0): "n0"}, State.BOUND)
    said = Refused(times=times, at=timestamp(at), message=f"a-1 was not bound: {NO_ROOM}")
    return replace(booked, spec=booked.spec.model_copy(update={"refused": said}))


def test_a_refusal_long_after_another_is_a_first_one() -> None:
    booked = again(bound_and_refused(5))
    step = next_step(seen([bound(0), stuck(1)], booked), NOW + watching.FORGOTTEN)
    assert isinstance(step, Repair)
    assert step.refusals.remembered is not None
    assert step.refusals.remembered.times == 1
    soon = next_step(seen([bound(0), stuck(1)], booked), LATER)
    assert isinstance(soon, Repair)
    assert soon.refusals.remembered is not None
    assert soon.refusals.remembered.times == 6


def test_while_it_is_not_tried_it_is_said_why() -> None:
    booked = bound_and_refused(2)
    step = next_step(seen([bound(0), member("a", 1)], booked), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_REFUSED
    until = NOW + watching.FIRST_PAUSE
    assert step.message == f"a-1 was not bound: {NO_ROOM}; it is tried again at {timestamp(until)}"


def test_a_pod_whose_node_is_lost_does_not_wait_for_those_that_were_refused() -> None:
    booked = bound_and_refused(4)
    whole = replace(seen([member("a", 0), member("a", 1)], booked), lost=frozenset({"n0"}))
    step = next_step(whole, NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 0)]


def test_a_try_that_came_to_nothing_before_any_lift_is_remembered() -> None:
    """Its reservation says how often it was tried; only its slots are given back."""
    before = rolled_back({})
    want = Want("a", 0, {"nvidia.com/gpu": 1, "pods": 1})
    placement = Placement(GangRequest("default", "demo-0", (want,)), (Placed(want, "n9"),), (), 1.0)
    terms = booking.Terms(NOW, timedelta(seconds=60), 5)
    held = patched(before, booking.renewed(before, placement, Standing(1.0), terms))
    assert (held.state, held.spec.attempt) == (State.HELD, 1)
    assert next_step(seen(GATED, held), NOW) == Begin(held)
    assert next_step(seen(GATED, held), LATER) == Expire(held)
    empty = patched(held, booking.trimmed(held, frozenset({("a", 0)}), Standing(1.0)))
    assert (empty.state, empty.size) == (State.HELD, 0)
    assert isinstance(next_step(seen(GATED, empty), LATER), Place)
    once_more = patched(empty, booking.renewed(empty, placement, Standing(1.0), terms))
    assert (once_more.state, once_more.spec.attempt) == (State.HELD, 1), "it is the same try"


def down(pods: list[Pod], booked: Reservation) -> GangView:
    """A scaled gang whose base gang was rolled back."""
    return replace(seen(pods, booked), base_started=False, base_down=True)


def test_room_that_a_scaled_gang_holds_is_given_back_when_its_base_is_rolled_back() -> None:
    held = reservation(TWO, State.HELD, LATER)
    assert next_step(down(GATED, held), NOW) == Expire(held)
    assert isinstance(next_step(replace(down(GATED, held), base_down=False), NOW), Wait)


def test_a_scaled_gang_that_has_not_started_is_rolled_back_with_its_base() -> None:
    lifting = reservation(TWO, State.LIFTING)
    for pods in (GATED, [bound(0), member("a", 1)], [bound(0), member("a", 1, gated=False)]):
        step = next_step(down(pods, lifting), NOW)
        assert step == Abandon(lifting, "its base gang was rolled back")
    after = rolled_back(TWO)
    assert isinstance(next_step(down([bound(0), stuck(1)], after), NOW), Evict)
    gone = rolled_back({})
    step = next_step(down(GATED, gone), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_WAITING_FOR_BASE


def test_a_scaled_gang_that_runs_stays_and_nothing_of_it_is_started_meanwhile() -> None:
    """To take it back would lose what it does, and give its base nothing that is sure to help."""
    lifting = reservation(TWO, State.LIFTING)
    assert next_step(down([bound(0), bound(1)], lifting), NOW) == Close(lifting)
    closed = reservation(TWO, State.BOUND)
    assert next_step(down([bound(0), bound(1)], closed), NOW) == Wait(names.REASON_BOUND)
    step = next_step(down([bound(0), member("a", 1)], closed), NOW)
    assert step == Wait(names.REASON_WAITING_FOR_BASE, "its base gang was rolled back")
    back = replace(down([bound(0), member("a", 1)], closed), base_down=False)
    assert isinstance(next_step(back, NOW), Lift)


@pytest.mark.parametrize(
    ("state", "is_down"),
    [(State.HELD, True), (State.LIFTING, False), (State.BOUND, False), (State.ROLLED_BACK, True)],
)
async def test_what_has_become_of_its_base_is_read_from_the_ledger(
    state: State, *, is_down: bool
) -> None:
    async with scene() as (s, _, _):
        see(s, member("a", 0), booked("n1", "1", state, 4))
        scaled = gang_of("demo-0-x-0", [], 6)
        assert isinstance(scaled["metadata"], dict)
        scaled["metadata"]["labels"] = {names.BASE_PODGANG_LABEL: "demo-0"}
        s.gangs.observe(msgspec.json.encode(scaled))
        found = s.world.view(("default", "demo-0-x-0"))
        assert found is not None
        assert found.base_down is is_down
