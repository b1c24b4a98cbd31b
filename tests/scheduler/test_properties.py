"""What holds for every plan, whatever the cluster and the gangs; counterexamples shrink.

Plans are judged from the plain data of a case, apart from the engine's own invariants.
"""

import dataclasses
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from scheduler import cycle
from scheduler.answers import Plan
from scheduler.requests import GangRequest
from scheduler.settings import DEFAULTS, Settings
from scheduler.snapshot import Hold, Snapshot, build
from tests.bench import quality_engine, quality_gangs, quality_judging, quality_tally
from tests.bench.quality_cases import Case
from tests.bench.quality_drawing import KINDS, draw, drawn
from tests.bench.quality_engine import Answer, ask
from tests.bench.quality_trials import with_more_room
from tests.support import minding
from tests.support.minding import Judge, Minds

LONG = 1_500
FEWER = Settings(steps=2_000)  # of gangs that mind much, most cannot be placed
# Each of the many throws it takes to draw a cluster may become simpler when a property fails.
chance = st.randoms(use_true_random=False)
kinds = st.sampled_from(sorted(set(KINDS)))
Property: TypeAlias = Callable[[Random, str], None]


def batch(dice: Random, kind: str) -> list[Case]:
    """Gangs that ask for room in one cluster, which is drawn to fit the first of them."""
    first = drawn(dice, kind)
    plain = msgspec.structs.replace(first, kind="uniform")
    made = [first, *(quality_gangs.drawn(dice, plain) for _ in range(dice.randint(1, 3)))]
    for case in made:
        note(quality_tally.shown(case))
    return made


def mindful(dice: Random, cases: list[Case]) -> list[Minds]:
    """What the pods of each gang mind beside room."""
    made = [minding.drawn(dice, case, f"gang{i}") for i, case in enumerate(cases)]
    for each in made:
        note(str(each))
    return made


def requests(cases: list[Case], minds: Sequence[Minds] = ()) -> list[GangRequest]:
    plain = [
        dataclasses.replace(quality_engine.request(case, f"gang{i}"), priority=-i)
        for i, case in enumerate(cases)
    ]
    if not minds:
        return plain
    return [each.added(request) for each, request in zip(minds, plain, strict=True)]


def plan(cases: list[Case], minds: Sequence[Minds] = ()) -> Plan:
    steps = FEWER if minds else DEFAULTS
    return cycle.plan(quality_engine.stock(cases[0]), requests(cases, minds), steps)


def told(made: Plan) -> list[str]:
    """Say what a plan says; whole plans take too long to be compared word by word."""
    lines = [f"{refusal.gang.name} refused, {refusal.exhausted}" for refusal in made.refusals]
    for placement in made.placements:
        where = [f"{p.want.clique}/{p.want.index} on {p.node}" for p in placement.placed]
        judged = f"{placement.score:.6f}, {placement.fragmentation:.6f}"
        lines.append(f"{placement.gang.name} {judged}: {', '.join(where)}")
    return sorted(lines)


def spent(case: Case, answer: Answer) -> Case:
    """The cluster after this gang has got its room."""
    needs = {clique.name: clique.need for clique in case.cliques}
    nodes = []
    for node in case.nodes:
        mine = tuple(needs[put.clique] for put in answer.puts if put.node == node.name)
        nodes.append(msgspec.structs.replace(node, held=(*node.held, *mine)))
    return msgspec.structs.replace(case, nodes=tuple(nodes))


def a_batch_is_whole_within_bounds_and_as_required_in_every_gang(dice: Random, kind: str) -> None:
    cases = batch(dice, kind)
    minds = mindful(dice, cases) if dice.random() < 0.7 else []
    made, judge = plan(cases, minds), Judge()
    assert len(made.placements) + len(made.refusals) == len(cases)
    by_name = {f"gang{i}": case for i, case in enumerate(cases)}
    minds_of = {each.name: each for each in minds}
    nodes = cases[0].nodes
    for placement in made.placements:
        case = msgspec.structs.replace(by_name[placement.gang.name], nodes=nodes)
        answer = quality_engine.read(placement)
        assert quality_judging.problems(case, answer.puts) == []
        assert placement.score == pytest.approx(quality_judging.score(case, answer.puts))
        if minds:
            assert judge.problems(case, minds_of[placement.gang.name], answer.puts) == []
        assert 0 <= placement.fragmentation <= 1
        nodes = spent(case, answer).nodes


def a_plan_does_not_depend_on_the_order_things_are_listed_in(dice: Random, kind: str) -> None:
    cases = batch(dice, kind)
    minds = mindful(dice, cases)
    shuffled = []
    for case in cases:
        nodes = [
            msgspec.structs.replace(node, held=tuple(dice.sample(node.held, len(node.held))))
            for node in dice.sample(cases[0].nodes, len(cases[0].nodes))
        ]
        groups = tuple(dice.sample(case.groups, len(case.groups)))
        shuffled.append(msgspec.structs.replace(case, nodes=tuple(nodes), groups=groups))
    asked = requests(shuffled, minds)
    again = cycle.plan(quality_engine.stock(shuffled[0]), dice.sample(asked, len(asked)), FEWER)
    made = plan(cases, minds)
    assert told(again) == told(made)


def a_refused_gang_leaves_the_room_as_it_was(dice: Random, kind: str) -> None:
    cases = batch(dice, kind)
    minds = mindful(dice, cases)
    made = plan(cases, minds)
    refused = {refusal.gang.name for refusal in made.refusals}
    asked = [request for request in requests(cases, minds) if request.name not in refused]
    without = cycle.plan(quality_engine.stock(cases[0]), asked, FEWER)
    assert told(without) == [line for line in told(made) if "refused" not in line]


def a_snapshot_that_was_planned_on_is_as_good_as_new(dice: Random, kind: str) -> None:
    cases = batch(dice, kind)
    minds = mindful(dice, cases)
    used = quality_engine.stock(cases[0])
    before = used.free.copy()
    first = cycle.plan(used, requests(cases, minds), FEWER)
    cycle.plan(used, requests(cases[::-1], minds[::-1]), FEWER)
    assert (used.free == before).all()
    again, fresh = cycle.plan(used, requests(cases, minds), FEWER), plan(cases, minds)
    assert told(again) == told(first) == told(fresh)
    every_word = again == first == fresh  # of the refusals too
    assert every_word


def taking_a_plan_back_restores_the_room_bit_for_bit(dice: Random, kind: str) -> None:
    cases = batch(dice, kind)
    empty = quality_engine.stock(cases[0])
    holds = [
        Hold(placed.node, placed.want.need)
        for placement in plan(cases).placements
        for placed in placement.placed
    ]
    back = [Hold(h.node, {name: -amount for name, amount in h.need.items()}) for h in holds]
    assert same(with_holds(cases[0], [*holds, *dice.sample(back, len(back))]), empty)
    assert not holds or not same(with_holds(cases[0], holds), empty)


def with_holds(case: Case, holds: list[Hold]) -> Snapshot:
    before = [Hold(n.name, quality_engine.amounts(hold)) for n in case.nodes for hold in n.held]
    nodes = quality_engine.stock(case).nodes
    return build(nodes, [*before, *holds], quality_engine.levels(case))


def same(one: Snapshot, other: Snapshot) -> bool:
    return one.free.tobytes() == other.free.tobytes() and one.resources == other.resources


def minima_of_one_batch_are_what_they_would_be_one_after_another_without_extras(
    dice: Random, kind: str
) -> None:
    cases = batch(dice, kind)
    holds: list[Hold] = []
    alone: list[str] = []
    for request in requests(cases):
        bare = dataclasses.replace(request, extras=())
        found = cycle.plan(with_holds(cases[0], holds), [bare])
        alone += minima(found)
        holds += [Hold(p.node, p.want.need) for made in found.placements for p in made.placed]
    assert minima(plan(cases)) == sorted(alone)


def minima(made: Plan) -> list[str]:
    lines = [f"{refusal.gang.name} refused, {refusal.exhausted}" for refusal in made.refusals]
    for placement in made.placements:
        asked = {(want.clique, want.index) for want in placement.gang.minimum}
        lines += [
            f"{placement.gang.name}: {p.want.clique}/{p.want.index} on {p.node}"
            for p in placement.placed
            if (p.want.clique, p.want.index) in asked
        ]
    return sorted(lines)


def what_is_refused_before_its_budget_ended_is_refused_with_any_other(
    dice: Random, kind: str
) -> None:
    case = drawn(dice, kind)
    note(quality_tally.shown(case))
    tight = Settings(steps=dice.choice((10, 100, 1_000)))
    found = cycle.plan(quality_engine.stock(case), requests([case]), tight)
    if found.refusals and not found.refusals[0].exhausted:
        assert not ask(case).placed


def more_room_never_makes_a_gang_unplaceable(dice: Random, kind: str) -> None:
    case = drawn(dice, kind)
    note(quality_tally.shown(case))
    if ask(case).placed:
        for wider in with_more_room(case):
            found = ask(wider)
            assert found.placed or found.exhausted


PROPERTIES: Final[tuple[Property, ...]] = (
    a_batch_is_whole_within_bounds_and_as_required_in_every_gang,
    a_plan_does_not_depend_on_the_order_things_are_listed_in,
    a_refused_gang_leaves_the_room_as_it_was,
    a_snapshot_that_was_planned_on_is_as_good_as_new,
    taking_a_plan_back_restores_the_room_bit_for_bit,
    minima_of_one_batch_are_what_they_would_be_one_after_another_without_extras,
    what_is_refused_before_its_budget_ended_is_refused_with_any_other,
    more_room_never_makes_a_gang_unplaceable,
)
named = pytest.mark.parametrize("holds", PROPERTIES, ids=[each.__name__ for each in PROPERTIES])
slow = list(HealthCheck)
# To make a counterexample simpler takes minutes; the long run does it.
quick = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]


@named
@settings(max_examples=3, deadline=None, suppress_health_check=slow, phases=quick)
@given(chance, kinds)
def test_whatever_is_asked(holds: Property, dice: Random, kind: str) -> None:
    holds(dice, kind)


@pytest.mark.long
@named
@settings(max_examples=150, deadline=None, suppress_health_check=slow)
@given(chance, kinds)
def test_whatever_is_asked_many_times(holds: Property, dice: Random, kind: str) -> None:
    holds(dice, kind)


@pytest.mark.long
def test_more_room_makes_a_gang_unplaceable_in_no_more_than_one_of_200_for_lack_of_steps() -> None:
    answers = [
        ask(wider)
        for number in range(LONG)
        if ask(case := draw(11, number)).placed
        for wider in with_more_room(case)
    ]
    refused = [answer for answer in answers if not answer.placed]
    assert all(answer.exhausted for answer in refused)
    assert len(refused) <= 0.005 * len(answers)
    assert len(answers) > LONG
