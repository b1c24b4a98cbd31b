"""What holds for a stock that follows events: nothing of what came and went is left in it."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from scheduler import cycle
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.stock import Stock
from tests.bench import quality_engine, quality_tally
from tests.bench.quality_cases import Case, Need
from tests.bench.quality_drawing import KINDS, drawn

chance = st.randoms(use_true_random=False)
kinds = st.sampled_from(sorted(set(KINDS)))
slow: Final = list(HealthCheck)
quick: Final = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]
few: Final = (
    settings.get_profile(settings.get_current_profile_name()).max_examples // 6
)  # more with the long profile
SOME: Final[Sequence[Need]] = ({"cpu": 3}, {"memory": 70, "pods": 1}, {"nvidia.com/gpu": 2})


def stocked(case: Case) -> Stock:
    stock = Stock(quality_engine.levels(case))
    for node in quality_engine.stock(case).nodes:
        stock.put_node(node)
    for each in case.nodes:
        for number, need in enumerate(each.held):
            stock.put((each.name, number), Hold(each.name, quality_engine.amounts(need)))
    return stock


def assert_equal(found: Snapshot, wanted: Snapshot) -> None:
    nodes_alike = found.nodes == wanted.nodes
    assert nodes_alike
    assert found.resources == wanted.resources
    assert found.free.tobytes() == wanted.free.tobytes()
    assert found.capacity.tobytes() == wanted.capacity.tobytes()
    for one, other in zip(found.topologies, wanted.topologies, strict=True):
        assert (one.name, one.keys, one.domains) == (other.name, other.keys, other.domains)
        assert one.order.tobytes() == other.order.tobytes()
        assert one.position.tobytes() == other.position.tobytes()


def moves(dice: Random, case: Case, stock: Stock) -> tuple[list[Callable[[], None]], list[Hold]]:
    """Put some things and take others away; give what takes each back, and what is held more."""
    back: list[Callable[[], None]] = []
    more: list[Hold] = []
    for number in range(dice.randint(1, 8)):
        node = dice.choice(case.nodes)
        hold = Hold(node.name, quality_engine.amounts(dice.choice(SOME)))
        stock.put(number, hold)
        more.append(hold)
        back.append(lambda n=number: stock.drop(n))  # type: ignore[misc]
        if dice.random() < 0.3:
            stock.snapshot()
    return back, more


@settings(max_examples=few, deadline=None, suppress_health_check=slow, phases=quick)
@given(chance, kinds)
def test_what_is_put_and_dropped_again_leaves_no_bit_behind(dice: Random, kind: str) -> None:
    case = drawn(dice, kind)
    note(quality_tally.shown(case))
    stock = stocked(case)
    begun = stock.snapshot()
    free = begun.free.copy()
    first = cycle.plan(begun, [quality_engine.request(case)])
    back, more = moves(dice, case, stock)
    held = [Hold(n.name, quality_engine.amounts(need)) for n in case.nodes for need in n.held]
    assert_equal(stock.snapshot(), build(begun.nodes, [*held, *more], quality_engine.levels(case)))
    assert begun.free.tobytes() == free.tobytes()
    for take_back in dice.sample(back, len(back)):
        take_back()
    assert_equal(stock.snapshot(), quality_engine.stock(case))
    alike = cycle.plan(stock.snapshot(), [quality_engine.request(case)]) == first
    assert alike


@settings(max_examples=few, deadline=None, suppress_health_check=slow, phases=quick)
@given(chance, kinds)
def test_nodes_that_go_and_come_back_find_everything_as_it_was(dice: Random, kind: str) -> None:
    case = drawn(dice, kind)
    stock = stocked(case)
    begun = stock.snapshot()
    gone = dice.sample(begun.nodes, dice.randint(1, len(begun.nodes)))
    for node in gone:
        stock.drop_node(node.metadata.name)
    left = [each for each in case.nodes if each.name not in {n.metadata.name for n in gone}]
    assert_equal(
        stock.snapshot(),
        quality_engine.stock(msgspec.structs.replace(case, nodes=tuple(left))),
    )
    for node in dice.sample(gone, len(gone)):
        stock.put_node(node)
    assert_equal(stock.snapshot(), begun)
    asked = [quality_engine.request(case)]
    alike = cycle.plan(stock.snapshot(), asked) == cycle.plan(begun, asked)
    assert alike


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_a_stock_and_a_build_make_the_same_snapshot(kind: str) -> None:
    dice = Random(f"stock {kind}")  # noqa: S311 - draws questions, guards no secret
    for _ in range(5):
        case = drawn(dice, kind)
        assert_equal(stocked(case).snapshot(), quality_engine.stock(case))
