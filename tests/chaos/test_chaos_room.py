"""The checker finds room given away twice, and gangs that stay partly bound."""

import pytest

from tests.chaos.audit_final import MARK_FAULT, MARK_HEALED
from tests.chaos.script import (
    FIRST,
    MAKER,
    Script,
    begun_gang,
    found,
    half_bound,
    rules,
    verdict,
    whole_gang,
)

# Room.


def test_two_slots_on_one_full_node_are_found() -> None:
    script = begun_gang()
    script.reserve("n0", "n0", state="Lifting", bind_by=45)
    assert [rule for rule, _ in found(script)] == ["room"]
    assert "nvidia.com/gpu 16 of 8" in found(script)[0][1]


def test_a_slot_and_the_pod_on_it_count_once() -> None:
    assert rules(whole_gang()) == []


def test_a_lifted_pod_beside_another_slot_is_found() -> None:
    script = begun_gang()
    script.lift(0, "n1")
    assert rules(script) == ["ledger", "room"]


def test_a_pod_bound_where_there_is_no_room_is_found() -> None:
    script = whole_gang()
    script.stranger("big", 4, "n0")
    assert rules(script) == ["room"]
    assert "bound alone" in found(script)[0][1]


def test_room_that_a_stranger_takes_while_it_is_held_is_counted_and_not_blamed() -> None:
    script = begun_gang()
    script.stranger("thief", 4, "n0")
    assert found(script) == []
    assert verdict(script).figures["stolen"] == 1


def test_a_slot_written_onto_room_that_a_stranger_has_for_long_is_found() -> None:
    script = begun_gang()
    script.stranger("thief", 4, "n2")
    script.later(10)
    script.reserve("n0", "n2", state="Lifting", bind_by=45)
    assert "used by g-0 with strangers there since 10 s" in found(script)[0][1]


def test_a_lift_onto_room_that_a_stranger_has_for_long_is_found() -> None:
    script = begun_gang()
    script.stranger("thief", 4, "n0")
    script.later(10)
    script.lift(0, "n0")
    assert rules(script) == ["room"]


def test_room_of_a_pod_that_is_gone_can_be_used_again() -> None:
    script = whole_gang()
    script.delete(0, MAKER)
    script.drop("pods", "p0", "kubelet")
    script.reserve("n2", "n1", state="Bound")
    script.stranger("next", 8, "n0")
    assert found(script) == []


def test_a_pod_whose_end_a_killed_api_server_did_not_write_down_takes_no_room() -> None:
    script = whole_gang()
    script.reserve("n2", "n1", state="Bound")
    line = len(script.lines)
    script.drop("pods", "p0", "kubelet")
    del script.lines[line]
    script.restart()
    script.stranger("next", 8, "n0")
    assert found(script) == []


# Gangs that are partly bound.


def test_a_gang_that_stays_partly_bound_is_found() -> None:
    script = half_bound()
    script.later(120)
    script.mark("the-end")
    assert rules(script) == ["whole"]


def test_a_gang_that_was_partly_bound_for_too_long_is_found_though_it_is_whole_now() -> None:
    script = half_bound()
    script.later(120)
    script.bind("p1", "n1")
    assert rules(script) == ["whole"]


@pytest.mark.parametrize("seconds", [1.0, 90.0])
def test_a_gang_may_be_partly_bound_until_its_deadline(seconds: float) -> None:
    script = half_bound()
    script.later(seconds)
    script.bind("p1", "n1")
    assert found(script) == []


def test_a_deadline_that_is_put_off_counts() -> None:
    script = half_bound()
    script.reserve("n0", "n1", state="Lifting", bind_by=200)
    script.later(120)
    script.bind("p1", "n1")
    assert found(script) == []


def test_a_gang_that_is_not_taken_back_though_it_is_rolled_back_is_found() -> None:
    script = half_bound()
    script.reserve("n0", "n1", state="RolledBack")
    script.later(61)
    script.mark("the-end")
    assert rules(script) == ["whole"]


def test_pods_whose_turn_has_not_come_make_no_gang_partly_bound() -> None:
    script = Script()
    script.lead(FIRST)
    script.gang()
    script.pod(0)
    script.pod(1, blocked=True)
    script.reserve("n0", "n1", state="Lifting", bind_by=45)
    script.lift(0, "n0")
    script.bind("p0", "n0")
    script.later(300)
    script.mark("the-end")
    assert found(script) == []


def test_a_gang_that_was_whole_may_lose_a_pod_for_long() -> None:
    script = whole_gang()
    script.delete(0, MAKER)
    script.later(300)
    script.mark("the-end")
    assert found(script) == []


def test_nobody_is_late_while_a_fault_lasts() -> None:
    script = half_bound()
    script.mark(f"{MARK_FAULT}-0")
    script.later(120)
    script.mark(f"{MARK_HEALED}-0")
    script.bind("p1", "n1")
    assert found(script) == []
