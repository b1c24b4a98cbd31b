"""Who would find no place though nobody else were there is told from who finds none just now."""

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from api import names
from api.streams import Expression, Node, Taint
from scheduler import cycle, explain
from scheduler.answers import NoFit, Plan
from scheduler.eligible import Constraints
from scheduler.emptied import MOST, Emptied
from scheduler.filters.constraints import Others
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Kin, Sibling, Spread, Want
from scheduler.snapshot import Hold
from scheduler.stock import Stock
from scheduler.topology import Levels
from tests.support.clusters import node, racks
from tests.support.daemonsets import daemonset
from tests.support.refusals import GPU, LEVELS, Case, cordoned, taken, wants

RACK = Closeness(names.RACK_KEY)


def gang(*minimum: Want, **more: object) -> GangRequest:
    return dataclasses.replace(GangRequest("team", "g", minimum), **more)  # type: ignore[arg-type]


def judged(case: Case) -> NoFit:
    """Refuse the gang, and look at it again as if nobody were there."""
    refusal = case.refused()
    assert not refusal.never
    emptied = Emptied(tuple(case.nodes), tuple(LEVELS))
    (found,) = emptied.judged(Plan((), (refusal,))).refusals
    return found


def test_a_gang_that_others_leave_no_room_for_may_fit_later() -> None:
    nodes = racks(1, 1, 2, 2)
    found = judged(Case(gang(*wants("w", 4)), nodes, taken({"n-0-0-0-0": 8})))
    assert not found.never
    assert not explain.sentence(found).startswith("even")


def test_a_gang_larger_than_the_cluster_never_fits() -> None:
    found = judged(Case(gang(*wants("w", 5)), racks(1, 1, 2, 2), taken({"n-0-0-0-0": 8})))
    assert found.never
    assert explain.sentence(found).startswith(
        "even with every node empty, no room for all 5 pods of the minimum: "
        f"{GPU}: 40 needed, 32 free, 8 short"
    )
    assert explain.details(found)["never"] is True


def test_a_gang_larger_than_any_rack_never_fits() -> None:
    found = judged(Case(gang(*wants("w", 3), near=RACK), racks(1, 1, 2, 2)))
    assert found.never
    assert "even with every node empty, no rack has room" in explain.sentence(found)


def barred(made: Node, key: str) -> Node:
    spec = msgspec.structs.replace(made.spec, taints=(Taint(key, "NoSchedule"),))
    return msgspec.structs.replace(made, spec=spec)


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(cordoned, id="cordoned"),
        pytest.param(
            lambda made: node(made.metadata.name, labels=made.metadata.labels, ready=False),
            id="not ready",
        ),
        pytest.param(lambda made: barred(made, "node.kubernetes.io/unreachable"), id="unreachable"),
    ],
)
def test_nodes_that_may_come_back_count(away: Callable[[Node], Node]) -> None:
    nodes = [away(made) for made in racks(1, 1, 1, 2)]
    assert not judged(Case(gang(*wants("w", 2)), nodes)).never


def test_nodes_that_are_kept_for_others_do_not_count() -> None:
    nodes = [barred(made, "team.example/only") for made in racks(1, 1, 1, 2)]
    assert judged(Case(gang(*wants("w", 2)), nodes)).never


def test_where_the_gang_is_already_makes_no_difference() -> None:
    apart = (Anchor("n-0-0-0-0", "w"), Anchor("n-0-0-1-0", "w"))
    tied = gang(*wants("w", 2), near=RACK, anchors=apart)
    assert not judged(Case(tied, racks(1, 1, 2, 2))).never


def test_where_its_siblings_are_makes_no_difference() -> None:
    small, *large = racks(1, 1, 1, 1) + racks(1, 1, 2, 2)[2:]
    spread = (Spread(names.RACK_KEY, (Sibling("other", ("n-0-0-1-0",)),), hard=True),)
    asked = gang(*wants("w", 2), near=RACK, spread=spread, kin=Kin("g", "set"))
    assert not judged(Case(asked, [small, *large])).never


def test_a_search_that_ended_with_its_budget_proves_nothing() -> None:
    nodes = racks(1, 1, 2, 2)
    groups = (Group("x", ("a",), RACK), Group("y", ("b",), RACK))
    asked = gang(*wants("a", 2, gpus=5), *wants("b", 2, gpus=5), groups=groups)
    refusal = Case(
        asked, nodes, taken(dict.fromkeys([n.metadata.name for n in nodes], 8))
    ).refused()
    hurried = Emptied(tuple(nodes), tuple(LEVELS), steps=0).judged(Plan((), (refusal,)))
    assert not hurried.refusals[0].never


def test_pods_that_must_be_near_others_may_find_them_later() -> None:
    cache = (Expression("app", "In", ("cache",)),)
    near = Constraints(near=(Others(names.HOSTNAME_KEY, cache, ("team",)),), namespace="team")
    nodes = [node("n", labels={names.HOSTNAME_KEY: "n"})]
    assert not judged(Case(gang(*wants("w", 1, constraints=near)), nodes)).never


def test_pods_of_daemonsets_are_on_empty_nodes_too() -> None:
    agent = daemonset("agent")  # takes a processor and a disk
    nodes = (node("n", {"cpu": "2", "example.com/disk": "1"}),)
    asked = Want("w", 0, {"cpu": 2000})
    refusal = Case(gang(asked), nodes, [Hold("n", {"cpu": 500})]).refused()
    assert not Emptied(nodes, tuple(LEVELS)).judged(Plan((), (refusal,))).refusals[0].never
    assert Emptied(nodes, tuple(LEVELS), (agent,)).judged(Plan((), (refusal,))).refusals[0].never


def test_extras_alone_are_never_judged() -> None:
    refusal = Case(gang(extras=wants("w", 1, gpus=9)), racks(1, 1, 1, 1)).refused()
    emptied = Emptied(tuple(racks(1, 1, 1, 1)), tuple(LEVELS))
    assert emptied.judged(Plan((), (refusal,))).refusals == (refusal,)


def test_so_many_different_questions_are_looked_into_at_a_time_and_the_others_next() -> None:
    nodes = racks(1, 1, 1, 1)
    refusals = tuple(
        Case(gang(*wants("w", 1, gpus=9 + n)), nodes).refused() for n in range(MOST + 2)
    )
    emptied = Emptied(tuple(nodes), tuple(LEVELS))
    first = emptied.judged(Plan((), refusals)).refusals
    assert [found.never for found in first] == [True] * MOST + [False] * 2
    assert all(found.never for found in emptied.judged(Plan((), refusals)).refusals)


def test_a_stock_empties_anew_only_when_its_nodes_are_not_what_they_were() -> None:
    stock = Stock([Levels("", (names.RACK_KEY,))])
    stock.put_node(node("n"))
    before = stock.emptied()
    for hold in taken({"n": 4}):
        stock.put("somebody", hold)
    stock.put_node(node("n"))
    assert stock.emptied() is before
    changes: tuple[Callable[[], None], ...] = (
        lambda: stock.put_node(node("n", {"pods": "5"})),
        lambda: stock.put_node(node("m")),
        lambda: stock.put_node(node("m", labels={"a": "b"})),
        lambda: stock.drop_node("m"),
        lambda: stock.put_daemonset(daemonset("agent")),
        lambda: stock.arrange([Levels("", (names.ZONE_KEY,))]),
    )
    for change in changes:
        change()
        after = stock.emptied()
        assert after is not before
        before = after
    assert [made.metadata.name for made in before.nodes] == ["n"]
    assert cycle.plan(before.snapshot, [gang(*wants("w", 1, gpus=0))]).placements
