"""Lost pods are placed anew together, and room is not kept for ever for whom others hold back."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api import names
from api.reservation import State
from api.streams import Pod, SchedulingGate
from controller.gangs import lacking
from controller.gangs.deciding import (
    Abandon,
    Close,
    Lift,
    Place,
    Trim,
    Wait,
    next_deadline,
    next_step,
)
from controller.gangs.views import GangView, Reservation
from tests.controller.test_gang_lifting import pinned, refused
from tests.controller.test_gang_moving import booked, see
from tests.support.clusters import node, pod
from tests.support.gangscene import KEY, Scene, encoded, scene
from tests.support.sets import NOW, gang, member, owned_by, reservation, slots_of, view

THREE = {("a", 0): "n0", ("a", 1): "n1", ("a", 2): "n2"}
GANG = gang({"a": (3, 3)})
OTHERS = "quota.example/hold"


def born(of: Pod, at: datetime = NOW) -> Pod:
    meta = msgspec.structs.replace(of.metadata, creation_timestamp=at)
    return msgspec.structs.replace(of, metadata=meta)


def bound(index: int) -> Pod:
    return member("a", index, gated=False, node=f"n{index}")


def held_by_others(index: int, at: datetime = NOW, *, ours: bool = True) -> Pod:
    gates = (SchedulingGate(OTHERS), *((SchedulingGate(names.GATE),) if ours else ()))
    made = born(member("a", index), at)
    return msgspec.structs.replace(
        made, spec=msgspec.structs.replace(made.spec, scheduling_gates=gates)
    )


def seen(pods: Sequence[Pod], kept: Reservation, *lost: str) -> GangView:
    return view(GANG, list(pods), kept, lost=frozenset(lost))


@pytest.mark.parametrize("state", [State.LIFTING, State.BOUND])
def test_who_lost_its_place_waits_a_moment_for_others_that_are_made_anew(state: State) -> None:
    """Where one more pod fits there may be no room for two."""
    kept = reservation(THREE, state)
    one = seen([bound(0), born(member("a", 1))], kept, "n1", "n2")
    step = next_step(one, NOW)
    assert step == Wait(names.REASON_WAITING_FOR_PODS, "a has 2 of 3 pods")
    until = NOW + lacking.TOGETHER
    assert next_deadline(one, NOW) == until
    both = seen([bound(0), born(member("a", 1)), born(member("a", 2))], kept, "n1", "n2")
    step = next_step(both, NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 1), ("a", 2)]
    step = next_step(one, until)
    assert isinstance(step, Place), "it does not wait for ever"
    assert slots_of(step.minimum) == [("a", 1)]


def test_who_lost_its_place_waits_for_pods_whose_nodes_are_gone() -> None:
    """They are deleted one by one, and the place of one alone may have no room for the others."""
    kept = reservation(THREE, State.BOUND)
    later = NOW + timedelta(seconds=3)
    pods = [born(member("a", 0), later), born(member("a", 1)), bound(2)]
    one = replace(seen(pods, kept, "n0", "n1"), stranded=frozenset({("a", 2)}))
    said = Wait(names.REASON_WAITING_FOR_PODS, "the nodes of some pods are gone: 1")
    assert next_step(one, later) == said
    assert next_deadline(one, later) == later + lacking.TOGETHER
    step = next_step(one, later + lacking.TOGETHER)
    assert isinstance(step, Place), "it does not wait for ever"
    gone = replace(one, members=one.members[:2], stranded=frozenset())
    step = next_step(gone, NOW + lacking.TOGETHER)
    assert step == Wait(names.REASON_WAITING_FOR_PODS, "a has 2 of 3 pods"), "the last one as well"
    back = next_step(replace(one, stranded=frozenset()), later)
    assert isinstance(back, Place), "nor when the node is there again"


def test_a_clock_that_is_far_behind_keeps_nobody_waiting() -> None:
    kept = reservation(THREE, State.BOUND)
    one = seen([bound(0), born(member("a", 1), NOW + timedelta(hours=1))], kept, "n1", "n2")
    assert isinstance(next_step(one, NOW), Place)


def test_who_keeps_its_slot_waits_for_nobody() -> None:
    kept = reservation(THREE, State.BOUND)
    step = next_step(seen([bound(0), born(member("a", 1))], kept, "n2"), NOW)
    assert isinstance(step, Lift)


LATE = NOW + lacking.FOR_OTHERS


def test_a_pod_that_others_hold_back_too_is_not_lifted_and_keeps_its_slot_for_a_while() -> None:
    kept = reservation(THREE, State.BOUND)
    whole = seen([bound(0), bound(1), held_by_others(2)], kept)
    step = next_step(whole, NOW)
    assert step == Wait(names.REASON_FOREIGN_GATES, f"other gates are on its pods: {OTHERS}")
    assert next_deadline(whole, NOW) == LATE
    assert next_step(whole, LATE) == Trim(kept, frozenset({("a", 2)}))
    without = reservation({k: v for k, v in THREE.items() if k != ("a", 2)}, State.BOUND)
    step = next_step(seen([bound(0), bound(1), held_by_others(2)], without), LATE)
    assert step == Wait(names.REASON_FOREIGN_GATES, f"other gates are on its pods: {OTHERS}")
    free = seen([bound(0), bound(1), born(member("a", 2))], without)
    assert isinstance(next_step(free, LATE), Place), "once they let go it is placed as any other"


def test_a_gang_that_is_starting_is_not_held_up_for_ever_by_others() -> None:
    kept = reservation(THREE, State.LIFTING)
    whole = seen([bound(0), bound(1), held_by_others(2)], kept)
    step = next_step(whole, NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_FOREIGN_GATES
    assert next_deadline(whole, NOW) == LATE
    given_up = Abandon(kept, f"other gates are on its pods: {OTHERS}")
    assert next_step(whole, LATE) == given_up
    unlocked = seen([bound(0), bound(1), held_by_others(2, ours=False)], kept)
    assert next_step(unlocked, LATE) == given_up, "nor by one that never had our gate"


def test_an_extra_that_others_hold_back_keeps_nobody_from_starting() -> None:
    kept = reservation(THREE, State.LIFTING)
    two = gang({"a": (2, 3)})
    whole = replace(seen([bound(0), bound(1), held_by_others(2)], kept), gang=two)
    assert next_step(whole, NOW) == Close(kept)
    assert next_step(whole, LATE) == Trim(kept, frozenset({("a", 2)}))


def look(s: Scene) -> GangView:
    found = s.world.view(KEY)
    assert found is not None
    return found


async def test_a_refused_pod_whose_node_takes_nobody_any_more_is_not_waited_for() -> None:
    async with scene() as (s, _, _):
        see(s, refused(pinned("a-0", owned_by("a"))), booked("n1", "1", State.LIFTING, 4))
        assert look(s).stranded == frozenset()
        s.nodes.observe(encoded(node("n1", ready=False), 7))
        assert look(s).stranded == {("a", 0)}
        s.pods.observe(encoded(pinned("a-0", owned_by("a")), 8))
        assert look(s).stranded == frozenset(), "nobody has tried it yet"


async def test_a_bound_pod_whose_node_is_gone_is_known_to_be_lost() -> None:
    async with scene() as (s, _, _):
        there = member("a", 0, gated=False, node="n1")
        see(s, there, booked("n1", "1", State.BOUND, 4))
        assert look(s).stranded == frozenset()
        s.nodes.observe(encoded(node("n1", ready=False), 7))
        assert look(s).stranded == frozenset(), "its containers may go on"
        s.pods.observe(encoded(member("a", 0, gated=False, node="gone"), 8))
        assert look(s).stranded == {("a", 0)}


async def test_a_successor_goes_elsewhere_where_kube_scheduler_gave_its_room_to_another() -> None:
    """It preempted the pod before, and nominated the one that it did this for."""
    eight = {"nvidia.com/gpu": "8"}
    async with scene() as (s, _, _):
        see(s, member("a", 0), booked("n1", "8", State.BOUND, 4))
        assert isinstance(next_step(look(s), NOW), Lift)
        going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        victim = pod("a-9", eight, spec={"nodeName": "n1"}, metadata=going)
        s.pods.observe(encoded(victim, 6))
        assert isinstance(next_step(look(s), NOW), Lift), "it leaves its room to its successor"
        s.pods.observe(encoded(pod("urgent", eight, status={"nominatedNodeName": "n1"}), 7))
        step = next_step(look(s), NOW)
        assert isinstance(step, Place)
        assert slots_of(step.minimum) == [("a", 0)]
