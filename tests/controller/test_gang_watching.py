"""Lifted pods that are not bound are taken back, singly or with their gang, and not for nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from api import names
from api.objects import timestamp
from api.reservation import ReservationSpec, ReservationStatus, State
from api.streams import Condition, Pod
from controller.gangs import booking, watching
from controller.gangs.deciding import (
    Abandon,
    Close,
    Evict,
    Extend,
    Lift,
    Place,
    Repair,
    Trim,
    Wait,
    abandoned,
    has_started,
    next_deadline,
    next_step,
)
from controller.gangs.standing import Standing
from controller.gangs.views import GangView, Member, Reservation
from scheduler.answers import Placed, Placement
from scheduler.requests import GangRequest, Want
from tests.support.sets import NOW, gang, member, reservation, slots_of, view

TWO = {("a", 0): "n0", ("a", 1): "n1"}
GANG = gang({"a": (2, 2)})
LATE = NOW + timedelta(minutes=5)
NO_ROOM = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu"


def saying(pod: Pod, reason: str, message: str = "") -> Pod:
    said = Condition("PodScheduled", "False", reason, message)
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, conditions=(said,))
    )


def stuck(index: int) -> Pod:
    return saying(member("a", index, gated=False), "Unschedulable", NO_ROOM)


def bound(index: int) -> Pod:
    return member("a", index, gated=False, node=f"n{index}")


def begun(
    slots: dict[tuple[str, int], str] = TWO, state: State = State.LIFTING, **spec: int
) -> Reservation:
    made = reservation(slots, state, bind_by=NOW)
    more = made.spec.model_copy(update=spec)
    status = made.status.model_copy(update={"attempt": more.attempt})
    return Reservation(made.metadata, more, status)


def seen(
    pods: Sequence[Pod], booked: Reservation, stranded: frozenset[tuple[str, int]] = frozenset()
) -> GangView:
    return replace(view(GANG, list(pods), booked), stranded=stranded)


def test_the_slot_of_a_pod_that_is_refused_goes_first_and_then_the_pod() -> None:
    """Whoever came in its place would be lifted onto the same node otherwise."""
    booked = begun()
    step = next_step(seen([bound(0), stuck(1)], booked), NOW)
    assert isinstance(step, Repair)
    assert (step.slots, step.refusals.pods) == (frozenset({("a", 1)}), 1)
    patch = booking.repaired(booked, step.slots, Standing(1.0), step.refusals)
    left = ReservationSpec.model_validate({**booked.spec.model_dump(), **_spec(patch)})
    assert left.repairs == 1
    assert [(g.name, s.index) for g in left.groups for s in g.slots] == [("a", 0)]
    after = begun({("a", 0): "n0"}, repairs=1)
    step = next_step(seen([bound(0), stuck(1)], after), NOW)
    assert isinstance(step, Evict)
    assert slots_of(step.members) == [("a", 1)]
    step = next_step(seen([bound(0), member("a", 1)], after), NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 1)]


def _spec(patch: object) -> dict[str, object]:
    assert isinstance(patch, dict)
    return dict(patch["spec"])


def test_who_still_has_time_is_waited_for() -> None:
    booked = reservation(TWO, State.LIFTING, bind_by=NOW + timedelta(seconds=1))
    step = next_step(seen([bound(0), stuck(1)], booked), NOW)
    assert step == Wait(names.REASON_LIFTING, "1 lifted pods are not bound yet")


@pytest.mark.parametrize("reason", ["", "SchedulingGated"])
def test_who_was_never_tried_is_waited_for_since_kube_scheduler_may_be_away(reason: str) -> None:
    pod = member("a", 1, gated=False)
    silent = saying(pod, reason) if reason else pod
    assert isinstance(next_step(seen([bound(0), silent], begun()), LATE), Wait)


def test_a_pod_whose_node_is_gone_is_not_waited_for() -> None:
    booked = reservation(TWO, State.LIFTING)
    lost = seen([bound(0), member("a", 1, gated=False)], booked, stranded=frozenset({("a", 1)}))
    assert next_step(lost, NOW) == Repair(booked, frozenset({("a", 1)}))


def test_a_pod_that_nobody_would_make_again_is_never_taken_back() -> None:
    """A pod of a plain gang may have been made by hand."""
    alone = msgspec.structs.replace(stuck(1).metadata, owner_references=())
    pod = msgspec.structs.replace(stuck(1), metadata=alone)
    assert not watching.comes_again(pod)
    assert watching.comes_again(stuck(1))


def test_a_gang_in_which_too_many_pods_fail_is_rolled_back_in_kube_schedulers_words() -> None:
    booked = begun(repairs=watching.MOST_REPAIRS)
    step = next_step(seen([bound(0), stuck(1)], booked), NOW)
    assert step == Abandon(booked, f"a-1 was not bound: {NO_ROOM}")
    closed = begun(state=State.BOUND, repairs=watching.MOST_REPAIRS)
    step = next_step(seen([bound(0), stuck(1)], closed), NOW)
    assert isinstance(step, Repair), "a gang that has started is never rolled back"


def test_nodes_that_vanish_do_not_speak_against_a_gang_however_many() -> None:
    wide = {("a", i): f"n{i}" for i in range(20)}
    booked = reservation(wide, State.LIFTING)
    pods = [member("a", i, gated=False) for i in range(20)]
    seen_now = view(gang({"a": (20, 20)}), pods, booked)
    step = next_step(replace(seen_now, stranded=frozenset(wide)), NOW)
    assert step == Repair(booked, frozenset(wide)), "a whole rack, say"


def test_a_begun_gang_without_another_place_is_given_up_after_a_while() -> None:
    booked = begun({("a", 0): "n0"})
    whole = seen([bound(0), member("a", 1)], booked)
    place = next_step(whole, NOW)
    assert abandoned(whole, place, watching.GRACE_SECONDS - 1) is None
    given_up = abandoned(whole, place, watching.GRACE_SECONDS)
    assert given_up == Abandon(booked, "1 of its pods lost their place and there is no other")
    started = seen([bound(0), member("a", 1)], begun({("a", 0): "n0"}, State.BOUND))
    assert abandoned(started, next_step(started, NOW), 1e6) is None


def rolled_back(slots: dict[tuple[str, int], str], retry_at: str = "") -> Reservation:
    made = begun(slots, State.ROLLED_BACK)
    said = {"retry_at": retry_at, "message": "a-1 was not bound: no room"}
    return Reservation(made.metadata, made.spec, made.status.model_copy(update=said))


def test_a_gang_that_is_rolled_back_loses_its_lifted_pods_then_its_slots_and_waits() -> None:
    booked = rolled_back(TWO, timestamp(LATE))
    step = next_step(seen([bound(0), stuck(1)], booked), NOW)
    assert isinstance(step, Evict)
    assert slots_of(step.members) == [("a", 0), ("a", 1)]
    gated = [member("a", 0), member("a", 1)]
    assert next_step(seen(gated, booked), NOW) == Trim(booked, frozenset(TWO))
    empty = rolled_back({}, timestamp(LATE))
    step = next_step(seen(gated, empty), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_ROLLED_BACK
    assert step.message == f"a-1 was not bound: no room; it is tried again at {timestamp(LATE)}"
    assert not has_started(seen(gated, empty))
    step = next_step(seen(gated, empty), LATE)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 0), ("a", 1)]


def test_with_the_write_of_another_try_the_reservation_is_held_again() -> None:
    booked = rolled_back({})
    want = Want("a", 0, {"nvidia.com/gpu": 1, "pods": 1})
    asked = GangRequest("default", "demo-0", (want,))
    placement = Placement(asked, (Placed(want, "n9"),), (), 1.0)
    terms = booking.Terms(NOW, timedelta(seconds=60), 5)
    patch = booking.renewed(booked, placement, Standing(1.0), terms)
    assert patch["metadata"] == {"resourceVersion": "7"}
    spec = ReservationSpec.model_validate({**booked.spec.model_dump(), **_spec(patch)})
    again = Reservation(booked.metadata, spec, booked.status)
    assert (spec.attempt, spec.repairs, spec.generation) == (1, 0, 5)
    assert again.state is State.HELD
    assert booked.state is State.ROLLED_BACK
    assert Reservation(booked.metadata, spec, ReservationStatus(attempt=1)).state is State.HELD


def test_pauses_grow_and_end_growing() -> None:
    pauses = [watching.pause(attempt) for attempt in range(20)]
    assert pauses[:3] == [timedelta(seconds=s) for s in (10, 20, 40)]
    assert pauses[-1] == watching.LONGEST_PAUSE


def test_time_to_be_bound_is_given_before_a_pod_is_lifted() -> None:
    short = reservation(TWO, State.LIFTING, bind_by=NOW + timedelta(seconds=5))
    gated = [member("a", 0), member("a", 1)]
    assert next_step(seen(gated, short), NOW) == Extend(short)
    assert isinstance(next_step(seen(gated, reservation(TWO, State.LIFTING)), NOW), Lift)


def test_pods_that_nobody_has_given_time_are_given_some() -> None:
    """Such as those that an older version has lifted."""
    old = reservation(TWO, State.BOUND, bind_by=None)
    assert next_step(seen([bound(0), stuck(1)], old), LATE) == Extend(old)
    assert next_step(seen([bound(0), bound(1)], old), LATE) == Wait(names.REASON_BOUND)


def test_a_pod_that_is_done_keeps_its_place_in_a_gang_that_is_still_starting() -> None:
    done = msgspec.structs.replace(
        bound(0), status=msgspec.structs.replace(bound(0).status, phase="Succeeded")
    )
    booked = reservation(TWO, State.LIFTING)
    assert next_step(seen([done, bound(1)], booked), NOW) == Close(booked)
    failed = msgspec.structs.replace(
        done, status=msgspec.structs.replace(done.status, phase="Failed")
    )
    assert isinstance(next_step(seen([failed, bound(1)], booked), NOW), Wait)


def test_who_was_refused_is_given_no_more_time_by_those_that_are_still_to_be_lifted() -> None:
    """Or a gang whose other pods stand in line would never take any back."""
    three = {**TWO, ("a", 2): "n2"}
    soon = reservation(three, State.LIFTING, bind_by=NOW + timedelta(seconds=5))
    pods = [bound(0), stuck(1), member("a", 2)]
    booked = gang({"a": (3, 3)})
    step = next_step(view(booked, pods, soon), NOW)
    assert step == Wait(names.REASON_LIFTING, "1 lifted pods are not bound yet")
    late = NOW + timedelta(seconds=5)
    step = next_step(view(booked, pods, soon), late)
    assert isinstance(step, Repair)
    assert (step.slots, step.refusals.pods) == (frozenset({("a", 1)}), 1)
    untried = [bound(0), member("a", 1, gated=False), member("a", 2)]
    assert next_step(view(booked, untried, soon), NOW) == Extend(soon)


def test_whoever_nobody_would_make_again_does_not_keep_others_from_being_lifted() -> None:
    alone = msgspec.structs.replace(stuck(1).metadata, owner_references=())
    pods = (Member(("a", 0), member("a", 0)), Member(("a", 1), msgspec.structs.replace(
        stuck(1), metadata=alone
    )))  # fmt: skip
    soon = reservation(TWO, State.LIFTING, bind_by=NOW + timedelta(seconds=5))
    assert next_step(replace(view(GANG, [], soon), members=pods), NOW) == Extend(soon)


def test_no_deadline_that_has_passed_is_waited_for() -> None:
    """Who waits for room after a roll-back would be looked at every second."""
    waiting = seen([bound(0), stuck(1)], reservation(TWO, State.LIFTING, bind_by=LATE))
    assert next_deadline(waiting, NOW) == LATE
    assert next_deadline(waiting, LATE) is None
    again = seen([member("a", 0), member("a", 1)], rolled_back({}, timestamp(LATE)))
    assert next_deadline(again, NOW) == LATE
    assert next_deadline(again, LATE + timedelta(seconds=1)) is None
    held = seen([member("a", 0), member("a", 1)], reservation(TWO, State.HELD, LATE))
    assert next_deadline(held, NOW) == LATE
    assert next_deadline(seen([bound(0)], reservation(TWO, State.BOUND)), NOW) is None


def test_a_pod_that_was_set_free_is_never_taken_back() -> None:
    """It may run by now, without its gang and where nobody planned it."""
    free = {names.RELEASED_ANNOTATION: timestamp(NOW)}
    pod = stuck(1)
    pod = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, annotations=free)
    )
    assert isinstance(next_step(seen([bound(0), stuck(1)], begun()), NOW), Repair)
    assert isinstance(next_step(seen([bound(0), pod], begun()), NOW), Wait)
    step = next_step(seen([pod], rolled_back(TWO, timestamp(LATE))), NOW)
    assert step == Trim(rolled_back(TWO, timestamp(LATE)), frozenset(TWO))
