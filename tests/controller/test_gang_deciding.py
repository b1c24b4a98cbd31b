"""A gang needs one thing at a time, and nothing is lifted that is not wholly reserved."""

import dataclasses
from collections.abc import Mapping
from datetime import timedelta

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.reservation import ReservationSpec, State
from api.streams import Pod, SchedulingGate
from controller.gangs import booking
from controller.gangs.deciding import (
    Begin,
    Close,
    Expire,
    Lift,
    Place,
    Trim,
    Wait,
    next_step,
)
from controller.gangs.standing import Standing
from controller.gangs.views import members_of, pinned_node
from tests.support.clusters import pod
from tests.support.sets import NOW, gang, member, pod_clique, reservation, slots_of, view

LATER = NOW + timedelta(seconds=60)
GANG = gang({"a": (2, 2), "b": (1, 2)})
PODS = [member("a", 0), member("a", 1), member("b", 0), member("b", 1)]
WHOLE = {("a", 0): "n0", ("a", 1): "n1", ("b", 0): "n2", ("b", 1): "n2"}


def test_a_gang_waits_until_every_clique_has_its_minimum_of_pods() -> None:
    step = next_step(view(GANG, PODS[1:]), NOW)
    assert step == Wait(names.REASON_WAITING_FOR_PODS, "a has 1 of 2 pods")


def test_a_gang_waits_until_its_maker_says_it_is_complete() -> None:
    unfinished = gang({"a": (2, 2), "b": (1, 2)}, initialized=False)
    step = next_step(view(unfinished, PODS[:-1]), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_WAITING_FOR_PODS


def test_a_gang_whose_pods_are_all_there_waits_for_nobody_to_say_so() -> None:
    unfinished = gang({"a": (2, 2), "b": (1, 2)}, initialized=False)
    seen = view(unfinished, PODS)
    assert isinstance(next_step(seen, NOW), Place)
    # Of one that is not made for a set nobody knows how many are still to be referred to.
    assert isinstance(next_step(dataclasses.replace(seen, cliques={}), NOW), Wait)


def test_a_scaled_gang_waits_for_its_base() -> None:
    step = next_step(view(GANG, PODS, base_started=False), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_WAITING_FOR_BASE


def test_gates_of_others_are_waited_for_and_named() -> None:
    gates = (SchedulingGate(names.GATE), SchedulingGate("quota.example/hold"))
    held = msgspec.structs.replace(
        PODS[0], spec=msgspec.structs.replace(PODS[0].spec, scheduling_gates=gates)
    )
    step = next_step(view(GANG, [held, *PODS[1:]]), NOW)
    assert step == Wait(
        names.REASON_FOREIGN_GATES, "other gates are on its pods: quota.example/hold"
    )


def test_room_is_asked_for_the_minimum_first_and_the_rest_as_extras() -> None:
    step = next_step(view(GANG, PODS), NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 0), ("a", 1), ("b", 0)]
    assert slots_of(step.extras) == [("b", 1)]


def test_a_held_reservation_is_begun_before_anything_is_lifted() -> None:
    held = reservation(WHOLE, State.HELD, LATER)
    assert next_step(view(GANG, PODS, held), NOW) == Begin(held)


def test_a_held_reservation_expires_at_its_deadline() -> None:
    held = reservation(WHOLE, State.HELD, NOW)
    assert next_step(view(GANG, PODS, held), NOW) == Expire(held)


def test_a_held_reservation_whose_node_was_lost_is_given_up() -> None:
    held = reservation(WHOLE, State.HELD, LATER)
    assert next_step(view(GANG, PODS, held, lost=frozenset({"n1"})), NOW) == Expire(held)


def test_once_begun_the_deadline_counts_no_more_and_every_slot_is_lifted() -> None:
    begun = reservation(WHOLE, State.LIFTING, NOW)
    half = [member("a", 0, gated=False), member("a", 1, gated=False, node="n1"), *PODS[2:]]
    step = next_step(view(GANG, half, begun), NOW + timedelta(days=1))
    assert isinstance(step, Lift)
    assert [(m.slot, node) for m, node in step.lifts] == [(("b", 0), "n2"), (("b", 1), "n2")]


def test_nothing_is_lifted_onto_a_lost_node_but_placed_anew() -> None:
    begun = reservation(WHOLE, State.LIFTING, NOW)
    lost = frozenset({"n0", "n2"})
    step = next_step(view(GANG, PODS, begun, lost=lost), NOW)
    assert isinstance(step, Lift)
    assert [(m.slot, node) for m, node in step.lifts] == [(("a", 1), "n1")]
    lifted = [PODS[0], member("a", 1, gated=False), *PODS[2:]]
    step = next_step(view(GANG, lifted, begun, lost=lost), NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 0), ("b", 0)]
    assert slots_of(step.extras) == [("b", 1)]


def bound() -> list[Pod]:
    return [member(clique, i, gated=False, node=WHOLE[clique, i]) for clique, i in WHOLE]


def test_a_reservation_is_closed_when_all_its_pods_are_bound() -> None:
    begun = reservation(WHOLE, State.LIFTING, NOW)
    waiting = [*bound()[:3], member("b", 1, gated=False)]
    step = next_step(view(GANG, waiting, begun), NOW)
    assert step == Wait(names.REASON_LIFTING, "1 lifted pods are not bound yet")
    assert next_step(view(GANG, bound(), begun), NOW) == Close(begun)
    closed = reservation(WHOLE, State.BOUND, NOW)
    assert next_step(view(GANG, bound(), closed), NOW) == Wait(names.REASON_BOUND)


def test_a_begun_gang_lifts_the_rest_though_one_of_its_pods_is_gone() -> None:
    begun = reservation(WHOLE, State.LIFTING, NOW)
    step = next_step(view(GANG, PODS[1:], begun), NOW)
    assert isinstance(step, Lift)
    assert [m.slot for m, _ in step.lifts] == [("a", 1), ("b", 0), ("b", 1)]
    step = next_step(view(GANG, bound()[1:], begun), NOW)
    assert step == Wait(names.REASON_WAITING_FOR_PODS, "a has 1 of 2 pods")


def test_a_held_reservation_expires_also_while_the_gang_waits_for_something() -> None:
    held = reservation(WHOLE, State.HELD, NOW)
    assert next_step(view(GANG, PODS[1:], held), NOW) == Expire(held)
    assert next_step(view(GANG, PODS, held, base_started=False), NOW) == Expire(held)


def test_slots_beyond_what_the_gang_refers_to_are_taken_out_once_it_is_bound() -> None:
    more = {**WHOLE, ("b", 2): "n3"}
    closed = reservation(more, State.BOUND, NOW)
    assert next_step(view(GANG, bound(), closed), NOW) == Trim(closed, frozenset({("b", 2)}))
    patch = booking.trimmed(closed, {("b", 2)}, Standing(0.5))
    assert patch["metadata"] == {"resourceVersion": "7"}
    left = ReservationSpec.model_validate({**closed.spec.model_dump(), **_spec(patch)})
    assert {(g.name, s.index): s.node for g in left.groups for s in g.slots} == WHOLE


def _spec(patch: JsonObject) -> JsonObject:
    spec = patch["spec"]
    assert isinstance(spec, dict)
    return spec


def test_released_pods_without_a_reservation_are_not_called_bound() -> None:
    loose = [member(clique, i, gated=False) for clique, i in WHOLE]
    step = next_step(view(GANG, loose), NOW)
    assert step == Wait(names.REASON_LIFTING, "4 lifted pods are not bound yet")


def test_a_replacement_takes_the_slot_of_its_predecessor() -> None:
    closed = reservation(WHOLE, State.BOUND, NOW)
    step = next_step(view(GANG, [member("a", 0), *bound()[1:]], closed), NOW)
    assert isinstance(step, Lift)
    assert [(m.slot, node) for m, node in step.lifts] == [(("a", 0), "n0")]


def test_extras_without_a_slot_are_placed_once_the_gang_is_bound() -> None:
    closed = reservation({k: v for k, v in WHOLE.items() if k != ("b", 1)}, State.BOUND, NOW)
    step = next_step(view(GANG, [*bound()[:3], member("b", 1)], closed), NOW)
    assert isinstance(step, Place)
    assert (step.minimum, slots_of(step.extras)) == ((), [("b", 1)])


def test_a_pod_that_another_owner_controls_is_no_member_whatever_it_claims() -> None:
    stranger = pod("a-0", spec={"hostname": "a-0"})
    found = members_of(GANG, {("default", "a-0"): stranger}, {"a": pod_clique("a", 2)})
    assert found == ()


@pytest.mark.parametrize(("phase", "members"), [("Succeeded", 1), ("Failed", 0)])
def test_a_pod_that_failed_is_no_member_and_one_that_is_done_is(phase: str, members: int) -> None:
    ended = msgspec.structs.replace(
        PODS[0], status=msgspec.structs.replace(PODS[0].status, phase=phase)
    )
    found = members_of(GANG, {("default", "a-0"): ended}, {"a": pod_clique("a", 2)})
    assert len(found) == members


def test_a_pin_is_what_every_term_agrees_on() -> None:
    def affine(*terms: Mapping[str, object]) -> str:
        required = {"nodeSelectorTerms": list(terms)}
        raw = {
            "metadata": {"name": "p"},
            "spec": {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
                }
            },
        }
        return pinned_node(msgspec.convert(raw, Pod))

    to_n1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    to_n2 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    loose = {"matchExpressions": [{"key": "x", "operator": "Exists"}]}
    assert affine(to_n1) == "n1"
    assert affine(to_n1, to_n1) == "n1"
    assert affine(to_n1, to_n2) == ""
    assert affine(to_n1, loose) == ""
    assert affine(to_n1, {}) == "n1"
    assert pinned_node(pod("p")) == ""
