"""Extras keep to what the gang requires, whatever cliques its minimum has."""

import dataclasses

from api import names
from scheduler import cycle
from scheduler.requests import Anchor, Closeness, GangRequest
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
