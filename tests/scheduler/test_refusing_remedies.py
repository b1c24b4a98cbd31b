"""What is said to unblock a gang does unblock it, and the nearest miss is the nearest."""

import dataclasses
from collections import Counter
from random import Random

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from api import names
from scheduler.answers import FreeRoom, NoFit, Placement, Remedy
from scheduler.requests import Closeness, GangRequest, Group, Kin, Sibling, Spread
from tests.support.clusters import racks
from tests.support.refusals import GPU, KEYS, Case, cordoned, remedied, taken, wants

LEVELS = ("", *KEYS)
MOST = 100
chance = st.randoms(use_true_random=False)
drawn = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def case_of(dice: Random) -> Case:
    """A small cluster, mostly too full, and a gang that is mostly too large for it."""
    zones, blocks, rack_count, each = (dice.randint(1, 2) for _ in range(4))
    off = dice.choice([0.0, 0.0, 0.3])
    nodes = [
        cordoned(node, off=dice.random() < off)
        for node in racks(zones, blocks, rack_count, each + 1)
    ]
    full = {node.metadata.name: dice.choice([0, 0, 2, 4, 6, 8]) for node in nodes}
    cliques = [f"c{i}" for i in range(dice.randint(1, 3))]
    groups = []
    if len(cliques) > 1 and dice.random() < 0.5:
        groups.append(Group("x", tuple(cliques[:2]), Closeness(dice.choice(LEVELS))))
    if dice.random() < 0.3:
        groups.append(Group("y", ("c0",), Closeness(dice.choice([*KEYS, names.HOSTNAME_KEY]))))
    here = dice.choice(nodes).metadata.name
    gang = GangRequest(
        "team",
        "g",
        tuple(w for c in cliques for w in wants(c, dice.randint(1, 5), dice.choice([1, 2, 4, 8]))),
        near=Closeness(dice.choice(LEVELS)),
        groups=tuple(groups),
        spread=_spread(dice, here) if dice.random() < 0.3 else (),
        kin=Kin("g", "set"),
    )
    return Case(gang, nodes, taken(full))


def _spread(dice: Random, here: str) -> tuple[Spread, ...]:
    keys = dice.sample(KEYS, dice.randint(1, 2))
    return tuple(Spread(key, (Sibling("other", (here,)),), hard=True) for key in keys)


def failing(case: Case) -> list[Remedy]:
    """Remedies that were carried out and did not help."""
    refusal = case.answer()
    if not isinstance(refusal, NoFit):
        return []
    note(f"{case.gang} {refusal.remedies}")
    answers = [(remedy, remedied(case, remedy).answer()) for remedy in refusal.remedies]
    return [
        remedy for remedy, answer in answers if isinstance(answer, NoFit) and not answer.exhausted
    ]


@drawn
@given(chance)
def test_every_remedy_unblocks_the_gang(dice: Random) -> None:
    assert failing(case_of(dice)) == []


def test_remedies_of_every_kind_are_found_among_many_gangs() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(MOST):
        answer = case_of(Random(seed)).answer()  # noqa: S311 - for drawing cases only
        if isinstance(answer, NoFit):
            kinds.update({type(remedy).__name__ for remedy in answer.remedies})
    assert set(kinds) == {"AskFewer", "FreeRoom", "Loosen", "MoreNodes", "Uncordon", "Widen"}


def test_room_is_freed_where_the_least_must_go_and_of_equal_nodes_on_the_first() -> None:
    nodes = racks(1, 1, 10, 20)
    full = {node.metadata.name: 8 for node in nodes} | {"n-0-0-5-3": 7, "n-0-0-8-0": 7}
    refusal = Case(GangRequest("team", "g", wants("w", 3, 2)), nodes, taken(full)).refused()
    freed = [remedy for remedy in refusal.remedies if isinstance(remedy, FreeRoom)]
    assert [each.nodes for each in freed] == [
        {"n-0-0-0-0": {GPU: 2}, "n-0-0-5-3": {GPU: 1}, "n-0-0-8-0": {GPU: 1}}
    ]


@drawn
@given(chance)
def test_the_nearest_miss_of_pods_that_are_alike_is_the_domain_that_takes_most(
    dice: Random,
) -> None:
    case = case_of(dice)
    level = dice.choice(LEVELS)
    asked = wants("w", dice.randint(1, 12), dice.choice([2, 4, 8]))
    gang = dataclasses.replace(case.gang, minimum=asked, near=Closeness(level), groups=())
    case = dataclasses.replace(case, gang=dataclasses.replace(gang, spread=()))
    refusal = case.answer()
    if not isinstance(refusal, NoFit):
        return
    room = counted(case, level, asked[0].need[GPU])
    assert refusal.nearest is not None
    assert refusal.nearest.fits == max(room.values())
    assert refusal.nearest.fits == room[refusal.nearest.domain]
    free = free_of(case, level, refusal.nearest.domain)
    short = max(0, len(asked) * asked[0].need[GPU] - free)
    assert refusal.nearest.lacks.get(GPU, 0) == short


def counted(case: Case, level: str, gpus: int) -> Counter[tuple[str, ...]]:
    """How many such pods each domain takes, one node at a time."""
    room: Counter[tuple[str, ...]] = Counter()
    held = {hold.node: hold.need[GPU] for hold in case.holds}
    for node in case.nodes:
        usable = not node.spec.unschedulable
        room[path(node.metadata.labels, level)] += (8 - held[node.metadata.name]) // gpus * usable
    return room


def free_of(case: Case, level: str, domain: tuple[str, ...]) -> int:
    held = {hold.node: hold.need[GPU] for hold in case.holds}
    return sum(
        8 - held[node.metadata.name]
        for node in case.nodes
        if path(node.metadata.labels, level) == domain and not node.spec.unschedulable
    )


def path(labels: dict[str, str], level: str) -> tuple[str, ...]:
    keys = KEYS[: KEYS.index(level) + 1] if level else ()
    return tuple(labels[key] for key in keys)


@drawn
@given(chance)
def test_a_refusal_is_the_same_for_the_same_question(dice: Random) -> None:
    case = case_of(dice)
    nodes, holds = list(case.nodes), list(case.holds)
    dice.shuffle(nodes)
    dice.shuffle(holds)
    one, other = case.answer(), dataclasses.replace(case, nodes=nodes, holds=holds).answer()
    assert one == other


def test_what_is_placed_needs_no_remedy() -> None:
    case = Case(GangRequest("team", "g", wants("w", 1)), racks(1, 1, 1, 1))
    assert isinstance(case.answer(), Placement)
