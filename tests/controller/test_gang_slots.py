"""Slots may have holes, and a slot whose node is lost moves, but only while its pod is gated."""

import pytest

from api.reservation import ReservationSpec, State
from api.streams import Pod
from controller.gangs import asking, booking
from controller.gangs.deciding import Lift, Place, Trim, Wait, next_step
from controller.gangs.standing import Standing
from scheduler.answers import Placed, Placement
from scheduler.requests import Anchor, GangRequest, Want
from tests.support.sets import NOW, gang, member, reservation, slots_of, view
from tests.support.stockrooms import taken

FIVE = {("a", i): f"n{i}" for i in range(5)}


def bound(*indices: int) -> list[Pod]:
    return [member("a", i, gated=False, node=f"n{i}") for i in indices]


@pytest.mark.parametrize(
    ("refers_to", "there", "stale"),
    [
        pytest.param((1, 2, 3), (1, 2, 3), {0, 4}, id="any may have gone"),
        pytest.param((0, 1, 4), (0, 4), {2, 3}, id="the lowest is kept for one that comes"),
        pytest.param((0, 1, 2, 3, 4), (4,), set(), id="all come again"),
        pytest.param((), (), {0, 1, 2, 3, 4}, id="scaled to nothing"),
        pytest.param((3, 4), (3, 4), {0, 1, 2}, id="an occupied slot is never taken"),
    ],
)
def test_as_many_empty_slots_are_kept_as_pods_are_still_to_come(
    refers_to: tuple[int, ...], there: tuple[int, ...], stale: set[int]
) -> None:
    closed = reservation(FIVE, State.BOUND)
    seen = view(gang({"a": (1, refers_to)}), bound(*there), closed)
    assert seen.stale_slots() == {("a", index) for index in stale}


def test_the_slot_of_one_that_went_is_given_up_though_another_pod_needs_a_slot() -> None:
    """Else that pod might wait for room which its own gang keeps for nobody."""
    closed = reservation({("a", 0): "n0", ("a", 2): "n2"}, State.BOUND)
    seen = view(gang({"a": (1, (1, 2))}), [member("a", 1), *bound(2)], closed)
    assert next_step(seen, NOW) == Trim(closed, frozenset({("a", 0)}))


def test_a_replaced_pod_whose_node_was_lost_is_placed_near_the_others() -> None:
    closed = reservation(FIVE, State.BOUND)
    pods = [*bound(0, 1, 2, 3), member("a", 4)]
    whole = gang({"a": (5, 5)})
    assert isinstance(next_step(view(whole, pods, closed), NOW), Lift)
    seen = view(whole, pods, closed, lost=frozenset({"n4"}))
    step = next_step(seen, NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 4)]
    assert asking.request(seen, step).anchors == tuple(Anchor(f"n{i}", "a") for i in range(4))


def test_a_slot_that_moves_is_written_once_with_its_new_node() -> None:
    closed = reservation(FIVE, State.BOUND)
    want = Want("a", 4, {"nvidia.com/gpu": 1, "pods": 1})
    asked = GangRequest("default", "demo-0", (want,))
    patch = booking.grown(closed, Placement(asked, (Placed(want, "n9"),), (), 1.0), Standing(1.0))
    spec = patch["spec"]
    assert isinstance(spec, dict)
    left = ReservationSpec.model_validate({**closed.spec.model_dump(), **spec})
    nodes = {(g.name, s.index): s.node for g in left.groups for s in g.slots}
    assert nodes == FIVE | {("a", 4): "n9"}
    assert sum(len(g.slots) for g in left.groups) == 5


def test_a_pod_bound_elsewhere_than_its_slot_counts_beside_it() -> None:
    """The next pod of that slot is lifted onto its node without being asked again."""
    stray = member("a", 0, gated=False, node="n7")
    seen = view(gang({"a": (1, 1)}), [stray], reservation({("a", 0): "n0"}, State.BOUND))
    assert taken({("default", "a-0"): stray}, [seen]) == ["n0", "n7"]


def test_a_bound_gang_without_anything_to_do_rests() -> None:
    closed = reservation(FIVE, State.BOUND)
    step = next_step(view(gang({"a": (5, 5)}), bound(0, 1, 2, 3, 4), closed), NOW)
    assert step == Wait("AllPodsBound")
