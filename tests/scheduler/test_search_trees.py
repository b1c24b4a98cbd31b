"""Gangs within gangs: what must lie in one domain does, at every level, and siblings make room."""

import dataclasses

import pytest

from api import names
from api.streams import Node
from scheduler import cycle
from scheduler.answers import Placement
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Want
from scheduler.settings import Settings
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import node, racks

KEYS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
LEVELS = [Levels("", KEYS)]
ZONE, BLOCK, RACK = KEYS
GPU = "nvidia.com/gpu"


def wants(clique: str, count: int, gpus: int = 8) -> tuple[Want, ...]:
    return tuple(Want(clique, i, {GPU: gpus, "pods": 1}) for i in range(count))


def group(name: str, required: str = "", preferred: str = "", cliques: str = "") -> Group:
    return Group(name, tuple(cliques.split()) or (name,), Closeness(required, preferred))


def gang(minimum: tuple[Want, ...], *groups: Group, **more: object) -> GangRequest:
    request = GangRequest("default", "g", minimum, groups=groups)
    return dataclasses.replace(request, **more)  # type: ignore[arg-type]


def stock(nodes: list[Node], used: dict[str, int] | None = None) -> Snapshot:
    return build(nodes, [Hold(name, {GPU: gpus}) for name, gpus in (used or {}).items()], LEVELS)


def domains(snapshot: Snapshot, request: GangRequest, depth: int = 3) -> dict[str, set[str]]:
    """Where the cliques of a placed gang are, by domain names of a depth."""
    (placement,) = cycle.plan(snapshot, [request]).placements
    return where(placement, depth)


def where(placement: Placement, depth: int = 3) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for placed in placement.placed:
        cell = "-".join(placed.node.split("-")[1 : depth + 1])
        found.setdefault(placed.want.clique, set()).add(cell)
    return found


def refused(snapshot: Snapshot, request: GangRequest) -> bool:
    return bool(cycle.plan(snapshot, [request]).refusals)


def test_each_group_gets_a_domain_of_its_level_within_that_of_the_gang() -> None:
    request = gang(
        wants("a", 2) + wants("b", 2),
        group("a", required=RACK),
        group("b", required=RACK),
        near=Closeness(required=BLOCK),
    )
    found = domains(stock(racks(1, 2, 2, 2)), request)
    assert len(found["a"]) == len(found["b"]) == 1
    assert found["a"] != found["b"]
    assert {cell[:3] for cell in found["a"] | found["b"]} in ({"0-0"}, {"0-1"})


def test_a_gang_is_refused_whose_groups_fit_but_not_in_one_block() -> None:
    used = {"n-0-0-1-0": 8, "n-0-1-1-0": 8}
    request = gang(
        wants("a", 2) + wants("b", 2),
        group("a", required=RACK),
        group("b", required=RACK),
        near=Closeness(required=BLOCK),
    )
    assert refused(stock(racks(1, 2, 2, 2), used), request)
    assert not refused(
        stock(racks(1, 2, 2, 2), used), dataclasses.replace(request, near=Closeness())
    )


def test_first_fit_would_put_the_small_sibling_where_only_the_large_one_fits() -> None:
    # One rack has room for three pods and the other for two; the smaller group comes first.
    request = gang(
        wants("a", 2) + wants("b", 3), group("a", required=RACK), group("b", required=RACK)
    )
    found = domains(stock(racks(1, 1, 2, 3), {"n-0-0-1-0": 8}), request)
    assert found == {"a": {"0-0-1"}, "b": {"0-0-0"}}


def test_kinds_that_fill_nodes_only_together_are_found_together() -> None:
    # 5 and 3 GPUs fill a node; two threes leave no room for a five.
    request = gang(wants("a", 3, gpus=3) + wants("b", 3, gpus=5), near=Closeness(required=RACK))
    found = domains(stock(racks(1, 1, 2, 3), {"n-0-0-0-0": 1}), request)
    assert found == {"a": {"0-0-1"}, "b": {"0-0-1"}}


def test_groups_nest_three_deep() -> None:
    request = gang(
        wants("a", 2) + wants("b", 2) + wants("c", 1),
        group("outer", required=BLOCK, cliques="a b"),
        group("a", required=RACK),
        group("pair", required=BLOCK, cliques="b"),
        near=Closeness(required=ZONE),
    )
    found = domains(stock(racks(2, 2, 2, 2), {"n-0-0-0-0": 8}), request)
    assert len(found["a"]) == 1
    assert len({cell[:3] for cell in found["a"] | found["b"]}) == 1
    assert len({cell[0] for cells in found.values() for cell in cells}) == 1


def test_pods_that_must_share_a_node_share_one() -> None:
    request = gang(
        wants("a", 2, gpus=2) + wants("b", 1, gpus=4),
        group("all", required=names.HOSTNAME_KEY, cliques="a b"),
    )
    found = domains(stock(racks(1, 1, 1, 2), {"n-0-0-0-0": 1}), request, depth=4)
    assert found == {"a": {"0-0-0-1"}, "b": {"0-0-0-1"}}
    assert refused(stock(racks(1, 1, 1, 2), {"n-0-0-0-0": 1, "n-0-0-0-1": 1}), request)


def test_a_level_that_the_topology_lacks_is_a_refusal_if_required_and_nothing_if_preferred() -> (
    None
):
    snapshot = stock(racks(1, 1, 1, 2))
    assert refused(snapshot, gang(wants("a", 1), near=Closeness(required="example.com/row")))
    assert not refused(snapshot, gang(wants("a", 1), near=Closeness(preferred="example.com/row")))
    assert refused(snapshot, gang(wants("a", 1), topology="other"))


def test_groups_that_cross_are_a_refusal() -> None:
    crossing = (group("one", cliques="a b"), group("two", cliques="b c"))
    request = gang(wants("a", 1) + wants("b", 1) + wants("c", 1), *crossing)
    assert refused(stock(racks(1, 1, 1, 4)), request)


def test_nodes_without_a_label_are_in_no_domain_of_that_level() -> None:
    loose = [node(f"loose-{i}", labels={ZONE: "z0", BLOCK: "z0-b0"}) for i in range(4)]
    request = gang(wants("a", 3))
    assert not refused(stock(loose), request)
    assert refused(stock(loose), dataclasses.replace(request, near=Closeness(required=RACK)))
    assert refused(stock(loose), gang(wants("a", 1), near=Closeness(required=RACK)))


def test_own_pods_bind_those_that_come_by_what_is_required() -> None:
    snapshot = stock(racks(1, 2, 2, 2), {"n-0-1-0-0": 8})
    grown = gang(wants("a", 1), near=Closeness(required=RACK), anchors=(Anchor("n-0-1-0-0", "a"),))
    assert domains(snapshot, grown) == {"a": {"0-1-0"}}
    full = stock(racks(1, 2, 2, 2), {"n-0-1-0-0": 8, "n-0-1-0-1": 1})
    assert refused(full, grown)
    apart = (Anchor("n-0-1-0-0", "a"), Anchor("n-0-0-0-0", "a"))
    assert refused(snapshot, dataclasses.replace(grown, anchors=apart))


def test_pods_of_the_base_gang_only_draw() -> None:
    snapshot = stock(racks(1, 2, 2, 2), {"n-0-1-0-0": 8, "n-0-1-0-1": 4})
    scaled = gang(wants("a", 1), near=Closeness(required=RACK), anchors=(Anchor("n-0-1-0-0"),))
    assert domains(snapshot, scaled) == {"a": {"0-1-1"}}


def test_own_pods_count_for_the_score_and_draw_what_is_asked_for() -> None:
    snapshot = stock(racks(1, 2, 2, 2), {"n-0-1-0-0": 8})
    made = cycle.plan(snapshot, [gang(wants("a", 1), anchors=(Anchor("n-0-1-0-0", "a"),))])
    assert where(made.placements[0]) == {"a": {"0-1-0"}}
    assert made.placements[0].score == 1.0


@pytest.mark.parametrize("clusters", [1, 2])
def test_a_preference_is_kept_where_that_finds_a_place_and_given_up_else(clusters: int) -> None:
    snapshot = stock(racks(1, clusters, 2, 2), {"n-0-0-0-0": 8, "n-0-0-1-0": 8})
    request = gang(wants("a", 2), group("a", preferred=RACK))
    found = domains(snapshot, request)
    assert len(found["a"]) == (1 if clusters == 2 else 2)


def test_the_preferred_zone_is_used_while_it_has_room() -> None:
    snapshot = stock(racks(2, 1, 1, 2))
    assert domains(snapshot, gang(wants("a", 2), zone="z1"), 1) == {"a": {"1"}}
    assert domains(snapshot, gang(wants("a", 3), zone="z1"), 1) == {"a": {"0", "1"}}
    assert domains(snapshot, gang(wants("a", 2), zone="nowhere"), 1) == {"a": {"0"}}


def test_each_gang_is_judged_by_its_own_topology() -> None:
    nodes = [
        node(f"n-{i}", labels={RACK: f"r{i // 2}", "example.com/ring": f"ring{i % 2}"})
        for i in range(4)
    ]
    levels = [Levels("", (RACK,)), Levels("rings", ("example.com/ring",))]
    request = gang(wants("a", 2), near=Closeness(required="example.com/ring"), topology="rings")
    (placement,) = cycle.plan(build(nodes, [], levels), [request]).placements
    assert {int(placed.node[-1]) % 2 for placed in placement.placed} in ({0}, {1})
    assert placement.domain in (("ring0",), ("ring1",))
    assert placement.score == 1.0


def test_extras_stay_within_what_is_required_and_go_near_the_gang() -> None:
    request = gang(
        wants("a", 1),
        near=Closeness(required=BLOCK),
        extras=tuple(Want("a", i, {GPU: 8, "pods": 1}) for i in range(1, 6)),
    )
    snapshot = stock(racks(1, 2, 2, 3), {f"n-0-{b}-{r}-0": 1 for b in (0, 1) for r in (0, 1)})
    (placement,) = cycle.plan(snapshot, [request]).placements
    assert len(placement.placed) == 4
    assert len(where(placement, 2)["a"]) == 1
    one, other, *_ = placement.placed
    assert one.node[:-2] == other.node[:-2]


def test_a_search_that_ends_with_its_budget_says_so() -> None:
    # Just enough, and only if fives and threes share nodes of eight.
    used = {"n-0-0-0-0": 1, "n-0-0-0-1": 1}
    cliques = [wants(f"c{i}", 2, gpus=1 + i) for i in range(5)]
    request = gang(sum(cliques, ()), near=Closeness(required=RACK))
    snapshot = stock(racks(1, 1, 1, 4), used)
    assert not refused(snapshot, request)
    (refusal,) = cycle.plan(snapshot, [request], Settings(steps=0)).refusals
    assert refusal.exhausted
    assert not cycle.plan(snapshot, [gang(wants("a", 9))], Settings(steps=0)).refusals[0].exhausted


def test_equal_questions_get_equal_answers_however_they_are_put() -> None:
    nodes = racks(2, 2, 2, 2)
    used = {"n-0-0-0-0": 3, "n-1-0-0-0": 3, "n-1-1-1-1": 5}
    minimum = wants("a", 3, gpus=4) + wants("b", 4, gpus=2)
    groups = (group("a", required=BLOCK), group("b", preferred=RACK))
    first = cycle.plan(stock(nodes, used), [gang(minimum, *groups)])
    turned = cycle.plan(
        stock(nodes[::-1], dict(reversed(used.items()))), [gang(minimum[::-1], *groups[::-1])]
    )
    assert sorted((p.want.clique, p.want.index, p.node) for p in first.placements[0].placed) == (
        sorted((p.want.clique, p.want.index, p.node) for p in turned.placements[0].placed)
    )
