"""Each way in which a gang can be refused is told from the others, with the nearest miss."""

import dataclasses

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Port, Toleration
from scheduler import cycle
from scheduler.answers import Cause, FreeRoom, Loosen, MoreNodes, NoFit, Uncordon, Widen
from scheduler.eligible import Constraints
from scheduler.refusing import refuse
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Kin, Sibling, Spread, Want
from scheduler.room import Room
from tests.support.clusters import node, pod, racks
from tests.support.refusals import GPU, Case, taken, wants

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RACK = Closeness(names.RACK_KEY)
KIN = Kin("g", "set")
BLOCK = Closeness(names.BLOCK_KEY)


def gang(*minimum: Want, **more: object) -> GangRequest:
    return dataclasses.replace(GangRequest("team", "g", minimum), **more)  # type: ignore[arg-type]


def beside(*nodes: str, min_domains: int = 1) -> tuple[Spread, ...]:
    there = (Sibling("other", nodes),)
    return (Spread(names.RACK_KEY, there, hard=True, min_domains=min_domains),)


def said(refusal: NoFit) -> tuple[Cause, str, str, str]:
    return refusal.cause, refusal.part, refusal.level, refusal.subject


def test_a_topology_nobody_knows() -> None:
    found = Case(gang(*wants("w", 1), topology="mesh"), racks(1, 1, 1, 1)).refused()
    assert said(found) == (Cause.TOPOLOGY, "", "", "mesh")


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("", {"near": Closeness("example.com/row")}),
        ("x", {"groups": (Group("x", ("w",), Closeness("example.com/row")),)}),
        ("", {"spread": (Spread("example.com/row", hard=True),)}),
    ],
)
def test_a_level_the_topology_does_not_have(part: str, more: dict[str, object]) -> None:
    found = Case(gang(*wants("w", 1), **more), racks(1, 1, 1, 1)).refused()
    assert said(found) == (Cause.LEVEL, part, "example.com/row", "")


def test_groups_that_cross() -> None:
    groups = (Group("x", ("a", "b"), RACK), Group("y", ("b", "c"), RACK))
    asked = (*wants("a", 1), *wants("b", 1), *wants("c", 1))
    found = Case(gang(*asked, groups=groups), racks(1, 1, 1, 9)).refused()
    assert said(found) == (Cause.NESTING, "y", "", "")


def test_a_resource_no_node_has() -> None:
    found = Case(gang(Want("w", 0, {"fpga.io/x": 1})), racks(1, 1, 1, 1)).refused()
    assert said(found) == (Cause.RESOURCE, "", "", "fpga.io/x")
    assert (found.needed, found.free) == ({"fpga.io/x": 1}, {"fpga.io/x": 0})


def test_a_pod_larger_than_any_node() -> None:
    found = Case(gang(*wants("w", 1, 16)), racks(1, 1, 1, 4)).refused()
    assert said(found) == (Cause.LARGE, "", "", GPU)
    assert found.nearest is not None
    assert (found.nearest.fits, found.remedies) == (0, ())


def test_a_pod_that_asks_for_more_than_any_one_node_has_together() -> None:
    nodes = [node("a", {"cpu": "4", GPU: "8"}), node("b", {"cpu": "64", GPU: "1"})]
    found = Case(gang(Want("w", 0, {"cpu": 16_000, GPU: 8})), nodes).refused()
    assert said(found) == (Cause.LARGE, "", "", "")


def test_filters_that_leave_too_few_nodes() -> None:
    nodes = [
        *racks(1, 1, 1, 2),
        node("off", spec={"unschedulable": True}),
        node("down", ready=False),
    ]
    found = Case(gang(*wants("w", 3)), nodes).refused()
    assert found.cause is Cause.FILTERS
    assert (found.usable, found.nodes, found.obstacles) == (2, 4, {"cordoned": 1, "not ready": 1})
    assert found.cliques[0].obstacles == found.obstacles
    assert found.remedies[0] == Uncordon(("off",))


def test_filters_are_counted_by_clique() -> None:
    nodes = [*racks(1, 1, 1, 2), node("big", labels={"disk": "ssd"})]
    choosy = Constraints(selector=(("disk", "ssd"),))
    found = Case(gang(*wants("a", 1), *wants("b", 2, constraints=choosy)), nodes).refused()
    assert found.cause is Cause.FILTERS
    assert [(c.clique, c.usable, c.room) for c in found.cliques] == [("a", 3, 3), ("b", 1, 1)]
    assert found.cliques[1].obstacles == {"not selected by the pods": 2}
    assert found.obstacles == {}


def test_not_enough_in_total() -> None:
    found = Case(gang(*wants("w", 6)), racks(1, 1, 5, 1)).refused()
    assert said(found) == (Cause.TOTAL, "", "", GPU)
    assert found.fitted == 5
    assert found.nearest is not None
    assert (found.nearest.domain, found.nearest.lacks) == ((), {GPU: 8})
    assert MoreNodes((), 1, "n-0-0-0-0") in found.remedies


def test_enough_in_total_but_not_on_single_nodes() -> None:
    holds = taken({f"n-0-0-{r}-0": 4 for r in range(4)})
    found = Case(gang(*wants("w", 1)), racks(1, 1, 4, 1), holds).refused()
    assert found.cause is Cause.NODES
    assert found.nearest is not None
    assert (found.nearest.lacks, found.nearest.left_out) == ({}, {"w": 1})
    assert found.remedies[0] == FreeRoom((), {GPU: 4}, {"n-0-0-0-0": {GPU: 4}})


def test_cliques_that_fit_each_but_not_together() -> None:
    asked = (*wants("a", 2, 5), *wants("b", 2, 3), *wants("c", 2, 2))
    found = Case(gang(*asked), racks(1, 1, 1, 2), taken({"n-0-0-0-0": 0})).refused()
    assert found.cause is Cause.TOTAL
    asked = (*wants("a", 2, 3), *wants("b", 2, 5))
    found = Case(gang(*asked), racks(1, 1, 1, 3), taken({"n-0-0-0-0": 4, "n-0-0-0-1": 4})).refused()
    assert found.cause is Cause.NODES
    assert found.fitted == 3


def test_not_enough_in_any_domain_of_the_required_level() -> None:
    holds = taken({"n-0-0-1-0": 8})
    found = Case(gang(*wants("w", 5), near=RACK), racks(1, 2, 2, 3), holds).refused()
    assert said(found) == (Cause.DOMAINS, "", names.RACK_KEY, "")
    assert found.nearest is not None
    assert found.nearest.domain == ("z0", "z0-b0", "z0-b0-r0")
    assert (found.nearest.fits, found.nearest.asked, found.nearest.lacks) == (3, 5, {GPU: 16})
    assert found.remedies[0] == Widen("", names.RACK_KEY, names.BLOCK_KEY, ("z0", "z0-b0"))
    levels = {report.level: report for report in found.levels}
    assert list(levels) == ["", *names_of_levels()]
    assert (levels[names.BLOCK_KEY].domains, levels[names.BLOCK_KEY].enough) == (2, 2)
    assert levels[names.RACK_KEY].required
    assert levels[names.RACK_KEY].stopped == {GPU: 4}
    best = levels[names.RACK_KEY].best
    assert [(domain.fits, domain.stopped) for domain in best] == [(3, GPU)] * 3


def names_of_levels() -> tuple[str, ...]:
    return names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY


def test_a_group_that_fits_no_domain_of_its_level() -> None:
    groups = (Group("x", ("a", "b"), RACK),)
    asked = (*wants("a", 2), *wants("b", 2), *wants("c", 1))
    found = Case(gang(*asked, near=BLOCK, groups=groups), racks(1, 2, 3, 3)).refused()
    assert said(found) == (Cause.GROUP, "x", names.RACK_KEY, "")
    assert found.nearest is not None
    assert (found.nearest.part, found.nearest.fits, found.nearest.asked) == ("x", 3, 4)
    assert Widen("x", names.RACK_KEY, names.BLOCK_KEY, ("z0", "z0-b0")) in found.remedies


def test_the_domain_of_the_gangs_own_pods_is_full() -> None:
    holds = taken({"n-0-0-0-0": 8, "n-0-0-0-1": 4})
    anchored = gang(*wants("w", 2, 4), near=RACK, anchors=(Anchor("n-0-0-0-0", "w"),))
    found = Case(anchored, racks(1, 1, 2, 2), holds).refused()
    assert said(found) == (Cause.ANCHORS, "", names.RACK_KEY, "")
    assert found.nearest is not None
    assert found.nearest.domain == ("z0", "z0-b0", "z0-b0-r0")
    assert (found.nearest.fits, found.nearest.lacks) == (1, {GPU: 4})
    rack = next(report for report in found.levels if report.required)
    assert rack.stopped == {GPU: 1, "anchors": 1}


def test_pods_of_the_base_gang_bind_nobody() -> None:
    holds = taken({"n-0-0-0-0": 8})
    drawn = gang(*wants("w", 3), near=RACK, anchors=(Anchor("n-0-0-0-0"),))
    assert Case(drawn, racks(1, 1, 2, 2), holds).refused().cause is Cause.DOMAINS


def test_the_gangs_own_pods_are_in_two_domains() -> None:
    anchors = (Anchor("n-0-0-0-0", "w"), Anchor("n-0-0-1-0", "w"))
    found = Case(gang(*wants("w", 1), near=RACK, anchors=anchors), racks(1, 1, 2, 2)).refused()
    assert said(found) == (Cause.APART, "", names.RACK_KEY, "")
    assert (found.nearest, found.remedies) == (None, ())


def test_siblings_have_every_domain_with_room() -> None:
    asked = gang(*wants("w", 2), near=RACK, spread=beside("n-0-0-1-0"), kin=KIN)
    holds = taken({"n-0-0-0-0": 8})
    found = Case(asked, racks(1, 1, 2, 2), holds).refused()
    assert said(found) == (Cause.SPREAD, "", names.RACK_KEY, "")
    assert found.nearest is not None
    assert found.nearest.domain == ("z0", "z0-b0", "z0-b0-r0")


def test_siblings_have_every_domain() -> None:
    spread = beside("n-0-0-0-0", "n-0-0-1-1", min_domains=3)
    found = Case(gang(*wants("w", 1), spread=spread, kin=KIN), racks(1, 1, 2, 2)).refused()
    assert found.cause is Cause.SPREAD


def test_of_two_levels_to_spread_over_the_one_that_bars_is_what_to_loosen() -> None:
    spread = (*beside("n-0-0-0-0", min_domains=3), Spread(names.BLOCK_KEY, hard=True))
    case = Case(gang(*wants("w", 2), near=RACK, spread=spread, kin=KIN), racks(1, 1, 1, 2))
    found = [each for each in case.refused().remedies if isinstance(each, Loosen)]
    assert found == [Loosen(names.RACK_KEY)]


def beside_each_other() -> Case:
    """Two groups want a rack of two nodes each, in one block, which has only one such rack."""
    groups = (Group("x", ("a",), RACK), Group("y", ("b",), RACK))
    asked = gang(*wants("a", 2), *wants("b", 2), near=BLOCK, groups=groups)
    nodes = [n for n in racks(1, 2, 2, 2) if n.metadata.name not in ("n-0-0-1-0", "n-0-1-1-0")]
    third = node("n-0-0-2-0", labels=nodes[0].metadata.labels | {names.RACK_KEY: "e"})
    return Case(asked, [*nodes, third])


def test_groups_that_fit_each_but_not_beside_each_other() -> None:
    case = beside_each_other()
    assert case.refused().cause is Cause.COMBINATION
    assert dataclasses.replace(case, nodes=case.nodes[:-1]).refused().cause is Cause.DOMAINS


def test_pods_that_must_be_farther_apart_than_there_is_room() -> None:
    selector: JsonObject = {"matchLabels": {"app": "x"}}
    term: JsonObject = {"topologyKey": names.RACK_KEY, "labelSelector": selector}
    spec: JsonObject = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    shy = Constraints.of(pod("p", spec=spec, metadata={"labels": {"app": "x"}}))
    found = Case(gang(*wants("w", 3, 1, shy)), racks(1, 1, 2, 2)).refused()
    assert (found.cause, found.remedies) == (Cause.COMPANY, ())


def test_a_search_that_ran_out_of_budget_says_so_where_bounds_leave_room() -> None:
    case = beside_each_other()
    found = refuse(Room(case.snapshot()), case.gang, exhausted=True, steps=7)
    assert (found.cause, found.exhausted, found.steps) == (Cause.BUDGET, True, 7)
    case = Case(gang(*wants("w", 3), near=RACK), racks(1, 1, 2, 2))
    found = refuse(Room(case.snapshot()), case.gang, exhausted=True, steps=7)
    assert (found.cause, found.exhausted) == (Cause.DOMAINS, True)


def test_of_extras_each_is_judged_alone() -> None:
    holds = taken({"n-0-0-0-0": 6, "n-0-0-0-1": 6})
    found = Case(gang(extras=wants("w", 3, 4)), racks(1, 1, 1, 2), holds).refused()
    assert found.cause is Cause.NODES
    assert (found.fitted, found.needed[GPU], found.cliques[0].asked) == (0, 12, 1)


def test_a_level_may_be_the_node_itself() -> None:
    together = Closeness(names.HOSTNAME_KEY)
    found = Case(gang(*wants("w", 3, 4), near=together), racks(1, 1, 2, 2)).refused()
    assert said(found) == (Cause.DOMAINS, "", names.HOSTNAME_KEY, "")
    assert found.nearest is not None
    assert found.nearest.domain == ("z0", "z0-b0", "z0-b0-r0", "n-0-0-0-0")
    assert found.remedies[0] == Widen(
        "", names.HOSTNAME_KEY, names.RACK_KEY, ("z0", "z0-b0", "z0-b0-r0")
    )


def test_pods_that_take_a_port_need_a_node_each() -> None:
    ports = Constraints(ports=(Port(host_port=80),))
    case = Case(gang(*wants("w", 3, 1, ports)), racks(1, 1, 1, 2))
    found = refuse(Room(case.snapshot()), case.gang)
    assert (found.cause, found.subject) == (Cause.TOTAL, "host port 80 (TCP)")
    assert found.fitted == 2
    assert found.needed["host port 80 (TCP)"] == 3
    assert found.free["host port 80 (TCP)"] == 2


def test_whoever_tolerates_a_cordon_is_not_told_to_lift_it() -> None:
    nodes = [node("off", spec={"unschedulable": True})]
    brave = Constraints(tolerations=(Toleration(operator="Exists"),))
    found = Case(gang(*wants("w", 2, constraints=brave)), nodes).refused()
    assert found.cause is Cause.TOTAL
    assert not any(isinstance(remedy, Uncordon) for remedy in found.remedies)


def test_an_overdrawn_node_must_be_freed_of_what_is_overdrawn_too() -> None:
    found = Case(gang(*wants("w", 1)), racks(1, 1, 1, 1), taken({"n-0-0-0-0": 10})).refused()
    assert FreeRoom((), {GPU: 10}, {"n-0-0-0-0": {GPU: 10}}) in found.remedies


def test_no_node_at_all() -> None:
    found = Case(gang(*wants("w", 1)), []).refused()
    assert found.cause is Cause.RESOURCE


def test_equal_questions_get_equal_answers_each_with_its_own_gang() -> None:
    full = [gang(*wants("w", 3), near=RACK, name=name) for name in ("a", "b")]
    other = gang(*wants("w", 4), near=RACK, name="c")
    snapshot = Case(other, racks(1, 1, 2, 2)).snapshot()
    found = cycle.plan(snapshot, [*full, other]).refusals
    assert [(r.gang.name, r.nearest and r.nearest.asked) for r in found] == [
        ("a", 3),
        ("b", 3),
        ("c", 4),
    ]
    assert found[1] == dataclasses.replace(found[0], gang=full[1])


def test_what_was_refused_is_looked_at_again_once_something_was_placed() -> None:
    asked = [gang(*wants("w", 3), near=RACK, name=name, born=name) for name in ("a", "c")]
    between = gang(*wants("w", 1), name="b", born="b")
    snapshot = Case(between, racks(1, 1, 2, 2)).snapshot()
    first, second = cycle.plan(snapshot, [*asked, between]).refusals
    assert sum(first.free.values()) > sum(second.free.values())


def test_a_group_whose_pods_are_in_another_block_than_the_gangs() -> None:
    groups = (Group("x", ("a",), RACK),)
    anchors = (Anchor("n-0-0-0-0", "a"), Anchor("n-0-1-0-0", "b"))
    asked = gang(*wants("a", 1), *wants("b", 1), near=BLOCK, groups=groups, anchors=anchors)
    found = Case(asked, racks(1, 2, 1, 2)).refused()
    assert said(found) == (Cause.APART, "", names.BLOCK_KEY, "")


def test_a_group_without_a_domain_where_the_gang_may_be_gets_no_nodes_there() -> None:
    groups = (Group("x", ("a",), RACK),)
    asked = gang(*wants("a", 1), *wants("b", 4), near=BLOCK, groups=groups)
    nodes = [node(f"n{i}", labels={names.BLOCK_KEY: "b0"}) for i in range(5)]
    far = node("far", labels={names.BLOCK_KEY: "b1", names.RACK_KEY: "r1"})
    found = Case(asked, [*nodes, far]).refused()
    assert found.cause is Cause.DOMAINS
    assert found.remedies == (Widen("", names.BLOCK_KEY, "", ()),)
    assert found.nearest is not None
    assert found.nearest.left_out == {"a": 1}


def test_so_many_pods_are_not_found_room_node_by_node() -> None:
    holds = taken({n.metadata.name: 4 for n in racks(1, 1, 1, 70)})
    found = Case(gang(*wants("w", 70)), racks(1, 1, 1, 70), holds).refused()
    assert [type(remedy) for remedy in found.remedies] == [MoreNodes]
    found = Case(gang(*wants("w", 60)), racks(1, 1, 1, 70), holds).refused()
    assert isinstance(found.remedies[0], FreeRoom)
    assert len(found.remedies[0].nodes) == 60


def test_a_group_needs_a_domain_of_its_level_also_where_the_gang_requires_a_narrower_one() -> None:
    groups = (Group("x", ("w",), BLOCK),)
    nodes = [node(f"n{i}", labels={names.RACK_KEY: "r"}) for i in range(3)]
    nodes.append(node("n9", labels={names.RACK_KEY: "r", names.BLOCK_KEY: "b"}))
    found = Case(gang(*wants("w", 3), near=RACK, groups=groups), nodes).refused()
    assert found.nearest is not None
    assert (found.cause, found.nearest.fits) == (Cause.FILTERS, 1)
    assert Case(gang(*wants("w", 3), near=RACK), nodes).answer().gang.near == RACK
