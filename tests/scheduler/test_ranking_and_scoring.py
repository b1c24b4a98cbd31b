"""Who gets which node, how near together that is, and what it breaks into."""

import pytest

from api import names
from scheduler import cycle, scoring
from scheduler.cells import layout
from scheduler.ordering import by_priority_then_age, ordered
from scheduler.requests import Closeness, GangRequest, Group, Want
from scheduler.room import Room
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import node, racks

KEYS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
GPU = "nvidia.com/gpu"


def stock(*holds: Hold) -> Snapshot:
    return build(racks(2, 2, 2, 2), holds, [Levels("", KEYS)])


def wants(clique: str, count: int, gpus: int) -> tuple[Want, ...]:
    return tuple(Want(clique, i, {GPU: gpus, "pods": 1}) for i in range(count))


@pytest.mark.parametrize(
    ("positions", "score"),
    [
        ([], 1.0),
        ([3], 1.0),
        ([0, 0, 0], 1.0),
        ([0, 1], 1.0),
        ([0, 2], 2 / 3),
        ([0, 4], 1 / 3),
        ([0, 8], 0.0),
        ([0, 1, 8], 1 / 3),
    ],
)
def test_the_score_is_the_mean_share_of_levels_over_pairs(
    positions: list[int], score: float
) -> None:
    assert scoring.score(layout(stock().topologies[0]), positions) == pytest.approx(score)


def test_without_levels_only_being_on_one_node_counts() -> None:
    where = layout(build([node("a"), node("b")], [], [Levels("", ())]).topologies[0])
    assert scoring.score(where, [0, 0]) == 1.0
    assert scoring.score(where, [0, 1]) == 0.0


def fragmentation(snapshot: Snapshot, used: dict[int, int]) -> float:
    room = Room(snapshot)
    where = room.layout(snapshot.topologies[0])
    return scoring.fragmentation(where, room.totals(where), used)


def test_what_is_used_up_or_was_in_use_is_not_broken() -> None:
    assert fragmentation(stock(), {0: 1}) == 1.0
    assert fragmentation(stock(), {0: 8, 1: 8}) == pytest.approx((3 + 2) / 6)
    assert fragmentation(stock(), dict.fromkeys(range(8), 8)) == 0.0
    assert fragmentation(stock(Hold("n-0-0-0-1", {GPU: 1})), {0: 1}) == 0.0
    assert fragmentation(stock(Hold("n-0-0-0-1", {GPU: 1})), {2: 1}) == pytest.approx(1 / 6)
    assert fragmentation(stock(), {0: 0}) == 0.0


def test_free_domains_are_left_whole_while_others_will_do() -> None:
    snapshot = stock(Hold("n-1-1-0-0", {GPU: 2}))
    request = GangRequest("default", "g", wants("a", 3, 4))
    (placement,) = cycle.plan(snapshot, [request]).placements
    assert placement.domain == ("z1", "z1-b1", "z1-b1-r0")
    assert placement.fragmentation == 0.0


def test_consecutive_ranks_are_neighbours() -> None:
    request = GangRequest("default", "g", wants("a", 6, 4)[::-1] + wants("b", 2, 4))
    (placement,) = cycle.plan(stock(), [request]).placements
    ranks = {(p.want.clique, p.want.index): p.node for p in placement.placed}
    nodes = [ranks["a", i] for i in range(6)]
    assert nodes == sorted(nodes)
    assert len(set(nodes)) == 3


def test_of_groups_that_are_alike_the_first_gets_the_first_domain() -> None:
    cliques = [f"g{i}-{part}" for i in range(3) for part in "ab"]
    groups = tuple(
        Group(f"g{i}", (f"g{i}-a", f"g{i}-b"), Closeness(names.RACK_KEY)) for i in range(3)
    )
    minimum = sum([wants(clique, 1, 8) for clique in cliques], ())
    request = GangRequest("default", "g", minimum, groups=groups)
    (placement,) = cycle.plan(stock(), [request]).placements
    found = {p.want.clique: p.node[:-2] for p in placement.placed}
    assert all(found[f"g{i}-a"] == found[f"g{i}-b"] for i in range(3))
    homes = [found[f"g{i}-a"] for i in range(3)]
    assert homes == sorted(set(homes))


def test_gangs_go_by_priority_then_age_then_name() -> None:
    gangs = [
        GangRequest("b", "late", (), priority=1, born="2026-02"),
        GangRequest("b", "old", (), priority=1, born="2026-01"),
        GangRequest("a", "old", (), priority=1, born="2026-01"),
        GangRequest("a", "urgent", (), priority=2, born="2026-03"),
    ]
    for given in (gangs, gangs[::-1]):
        found = [(g.namespace, g.name) for g in ordered(given, by_priority_then_age)]
        assert found == [("a", "urgent"), ("a", "old"), ("b", "old"), ("b", "late")]


def test_any_other_order_may_be_asked_for() -> None:
    need = {GPU: 8, "pods": 1}
    gangs = [
        GangRequest("default", name, tuple(Want("a", i, need) for i in range(10)), priority=rank)
        for name, rank in (("first", 1), ("second", 0))
    ]
    assert cycle.plan(stock(), gangs).placements[0].gang.name == "first"
    turned = cycle.plan(stock(), gangs, order=lambda gang: (gang.priority,))
    assert turned.placements[0].gang.name == "second"
