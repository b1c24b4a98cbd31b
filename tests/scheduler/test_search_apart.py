"""Replicas keep apart, evenly, whether they are asked for together or one after the other."""

from collections import Counter

import pytest

from api import names
from api.streams import Node
from scheduler import cycle
from scheduler.answers import Plan
from scheduler.requests import GangRequest, Spread, Want
from scheduler.snapshot import build
from scheduler.topology import Levels
from tests.support.clusters import node, racks

LEVELS = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
NEED = {"nvidia.com/gpu": 1, "pods": 1}
RACKS = racks(1, 1, 3, 2)


def replica(
    number: int, level: str = names.RACK_KEY, *taken: str, hard: bool = False
) -> GangRequest:
    name = f"demo-{number}"
    spread = Spread(level, taken, hard, "demo", name)
    return GangRequest("default", name, (Want("a", 0, NEED),), spread=spread, born=str(number))


def planned(nodes: list[Node], *asked: GangRequest) -> Plan:
    return cycle.plan(build(nodes, [], LEVELS), asked)


def rack_of(name: str) -> str:
    return name.rpartition("-")[0]


@pytest.mark.parametrize(("replicas", "most"), [(3, 1), (4, 2), (6, 2), (9, 3)], ids=str)
def test_replicas_of_one_plan_are_spread_evenly(replicas: int, most: int) -> None:
    made = planned(RACKS, *(replica(i) for i in range(replicas)))
    counts = Counter(rack_of(each.placed[0].node) for each in made.placements)
    assert sum(counts.values()) == replicas
    assert max(counts.values()) == most


def test_one_that_comes_later_goes_where_fewest_are() -> None:
    taken = ("n-0-0-0-0", "n-0-0-0-1", "n-0-0-1-0", "n-0-0-2-0", "n-0-0-2-0")
    made = planned(RACKS, replica(0, names.RACK_KEY, *taken))
    assert rack_of(made.placements[0].placed[0].node) == "n-0-0-1"


def test_single_nodes_are_spread_over_where_no_topology_lists_them() -> None:
    made = planned(RACKS, *(replica(i, names.HOSTNAME_KEY) for i in range(6)))
    assert len({each.placed[0].node for each in made.placements}) == 6


def test_domains_that_could_never_take_it_are_not_waited_for() -> None:
    labels = {names.ZONE_KEY: "z0", names.BLOCK_KEY: "z0-b0", names.RACK_KEY: "storage"}
    storage = node("storage", {"cpu": "8", "pods": "110"}, labels=labels)
    made = planned([*RACKS, storage], *(replica(i) for i in range(6)))
    counts = Counter(rack_of(each.placed[0].node) for each in made.placements)
    assert set(counts.values()) == {2}


def test_what_must_keep_apart_waits_when_every_domain_has_a_sibling() -> None:
    made = planned(RACKS, *(replica(i, hard=True) for i in range(4)))
    assert len({rack_of(each.placed[0].node) for each in made.placements}) == 3
    (refusal,) = made.refusals
    assert refusal.gang == replica(3, hard=True)
