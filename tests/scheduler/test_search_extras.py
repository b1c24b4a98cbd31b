"""Extras keep to what the gang requires, whatever cliques its minimum has."""

import dataclasses

from api import names
from scheduler import cycle
from scheduler.requests import Anchor, Closeness, GangRequest, Kin, Sibling, Spread, Want
from scheduler.snapshot import Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import node, racks
from tests.support.refusals import LEVELS, taken, wants

RACK = Closeness(names.RACK_KEY)


def nodes_of(snapshot: Snapshot, gang: GangRequest) -> list[str]:
    """Where the pods of the gang go."""
    return [each.node for p in cycle.plan(snapshot, [gang]).placements for each in p.placed]


def test_extras_of_another_clique_stay_in_the_rack_of_the_minimum() -> None:
    snapshot = build(racks(1, 1, 2, 2), taken({"n-0-0-1-0": 8}), LEVELS)
    gang = GangRequest("team", "g", wants("a", 1), wants("b", 2), near=RACK)
    rack = {name[:-2] for name in nodes_of(snapshot, gang)}
    assert len(rack) == 1


def test_extras_go_nowhere_if_the_level_that_is_required_is_not_there() -> None:
    snapshot = build(racks(1, 1, 1, 2), [], [Levels("flat", ("nobody",))])
    gang = GangRequest("team", "g", (), wants("a", 1), near=RACK)
    assert nodes_of(snapshot, gang) == []


def test_extras_go_nowhere_if_the_gangs_pods_are_in_no_domain_of_the_level() -> None:
    nodes = [node("bare"), *racks(1, 1, 1, 1)]
    gang = GangRequest("team", "g", (), wants("a", 1, 1), near=RACK)
    there = dataclasses.replace(gang, anchors=(Anchor("bare", "a"),))
    assert nodes_of(build(nodes, [], LEVELS), there) == []
    apart = dataclasses.replace(gang, anchors=(Anchor("n-0-0-0-0", "a"), Anchor("n-0-0-1-0", "a")))
    assert nodes_of(build(racks(1, 1, 2, 1), [], LEVELS), apart) == []


def test_extras_that_must_share_a_node_go_where_the_first_is() -> None:
    snapshot = build(racks(1, 1, 1, 2), taken({"n-0-0-0-0": 4}), LEVELS)
    host = Closeness(names.HOSTNAME_KEY)
    gang = GangRequest("team", "g", wants("a", 1, 4), wants("b", 3, 2), near=host)
    assert len(set(nodes_of(snapshot, gang))) == 1


def test_nobodys_extras_take_the_room_of_a_later_minimum() -> None:
    snapshot = build(racks(1, 1, 1, 3), [], LEVELS)
    first = GangRequest("team", "a", wants("a", 1), tuple(extra("a", i) for i in (1, 2)))
    second = GangRequest("team", "b", wants("b", 1), (extra("b", 1),))
    made = cycle.plan(snapshot, [second, first])
    pods = {p.gang.name: [each.want.index for each in p.placed] for p in made.placements}
    assert pods == {"a": [0, 1], "b": [0]}
    assert not made.refusals


def test_extras_alone_come_after_every_minimum() -> None:
    snapshot = build(racks(1, 1, 1, 1), [], LEVELS)
    growing = GangRequest("team", "a", (), (extra("a", 1),))
    made = cycle.plan(snapshot, [growing, GangRequest("team", "b", wants("b", 1))])
    assert [p.gang.name for p in made.placements] == ["b"]
    assert [refusal.gang.name for refusal in made.refusals] == ["a"]


def test_fragmentation_counts_what_extras_fill() -> None:
    snapshot = build(racks(1, 1, 1, 2), [], LEVELS)
    filling = GangRequest("team", "a", wants("a", 1), (extra("a", 1),))
    (placement,) = cycle.plan(snapshot, [filling]).placements
    assert placement.fragmentation == 0
    (placement,) = cycle.plan(snapshot, [dataclasses.replace(filling, extras=())]).placements
    assert placement.fragmentation > 0


def test_fragmentation_is_that_of_the_gang_not_of_its_extras() -> None:
    snapshot = build(racks(1, 1, 1, 3), [], LEVELS)
    some = GangRequest("team", "a", wants("a", 1), (extra("a", 1),))
    every = GangRequest("team", "a", wants("a", 2))
    (one,), (other,) = (cycle.plan(snapshot, [gang]).placements for gang in (some, every))
    assert one.fragmentation == other.fragmentation > 0


def test_extras_prefer_the_zone_that_is_preferred() -> None:
    snapshot = build(racks(3, 1, 1, 2), [], LEVELS)
    anchors = (Anchor("n-2-0-0-0", "a"),)
    gang = GangRequest("team", "a", (), (extra("a", 1),), anchors=anchors)
    (plain,) = nodes_of(snapshot, gang)
    assert plain.startswith("n-2")
    (drawn,) = nodes_of(snapshot, dataclasses.replace(gang, zone="z1"))
    assert drawn.startswith("n-1")
    full = taken({f"n-1-0-0-{i}": 8 for i in range(2)})
    (beside,) = nodes_of(
        build(racks(3, 1, 1, 2), full, LEVELS), dataclasses.replace(gang, zone="z1")
    )
    assert beside.startswith("n-2")


def test_extras_keep_apart_from_siblings_if_they_can() -> None:
    snapshot = build(racks(1, 1, 2, 2), taken({"n-0-0-0-0": 7}), LEVELS)
    gang = GangRequest("team", "a", (), wants("a", 1, 1), kin=Kin("a", "set"))
    assert nodes_of(snapshot, gang) == ["n-0-0-0-0"]
    spread = Spread(names.RACK_KEY, (Sibling("other", ("n-0-0-0-1",)),))
    (apart,) = nodes_of(snapshot, dataclasses.replace(gang, spread=(spread,)))
    assert apart.startswith("n-0-0-1")


def extra(clique: str, index: int) -> Want:
    (want,) = wants(clique, 1)
    return dataclasses.replace(want, index=index)
