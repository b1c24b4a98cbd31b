"""Replicas keep apart, evenly, whether they are asked for together or one after the other."""

from collections import Counter
from dataclasses import replace

import pytest

from api import names
from api.streams import Expression, Node
from scheduler import cycle
from scheduler.answers import Cause, Plan
from scheduler.eligible import Constraints
from scheduler.requests import Anchor, Closeness, GangRequest, Kin, Sibling, Spread, Want
from scheduler.snapshot import Hold, build
from scheduler.topology import Levels
from tests.support.clusters import node, pod, racks

LEVELS = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
NEED = {"nvidia.com/gpu": 1, "pods": 1}
RACKS = racks(1, 1, 3, 2)


def replica(
    number: int, level: str = names.RACK_KEY, *taken: str, hard: bool = False
) -> GangRequest:
    there = tuple(Sibling(f"there-{i}", (node,)) for i, node in enumerate(taken))
    return asking(number, Spread(level, there, hard))


def asking(number: int, *spread: Spread, pods: int = 1, **labels: str) -> GangRequest:
    name = f"demo-{number}"
    wants = tuple(Want("a", i, NEED) for i in range(pods))
    kin = Kin(name, "demo", tuple(sorted(labels.items())))
    return GangRequest("default", name, wants, spread=spread, kin=kin, born=str(number))


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


def full(*racks_taken: int, gpus: int = 8) -> list[Hold]:
    return [Hold(f"n-0-0-{r}-{i}", {"nvidia.com/gpu": gpus}) for r in racks_taken for i in (0, 1)]


@pytest.mark.parametrize(("replicas", "each"), [(3, [1, 1, 1]), (4, [1, 1, 2]), (7, [2, 2, 3])])
def test_what_must_keep_apart_is_spread_as_evenly_as_that_goes(
    replicas: int, each: list[int]
) -> None:
    made = planned(RACKS, *(replica(i, hard=True) for i in range(replicas)))
    counts = Counter(rack_of(each.placed[0].node) for each in made.placements)
    assert sorted(counts.values()) == each


@pytest.mark.parametrize(("skew", "placed"), [(1, 2), (2, 4), (3, 6)])
def test_no_domain_has_more_than_the_skew_above_one_that_is_full(skew: int, placed: int) -> None:
    asked = [asking(i, Spread(names.RACK_KEY, hard=True, skew=skew)) for i in range(9)]
    made = cycle.plan(build(RACKS, full(0), LEVELS), asked)
    counts = Counter(rack_of(each.placed[0].node) for each in made.placements)
    assert (sum(counts.values()), max(counts.values())) == (placed, skew)
    assert {refusal.cause for refusal in made.refusals} == {Cause.SPREAD}


def test_a_domain_that_lacks_the_label_is_none_and_takes_none() -> None:
    bare = node("bare", {"nvidia.com/gpu": "8", "pods": "110"})
    asked = [replica(i, hard=True) for i in range(4)]
    made = cycle.plan(build([*RACKS, bare], full(0, 1, 2), LEVELS), asked)
    assert made.placements == ()
    made = planned([*RACKS, bare], *asked)
    assert len({rack_of(each.placed[0].node) for each in made.placements}) == 3


def test_a_domain_too_small_for_the_gang_does_not_count() -> None:
    labels = {names.ZONE_KEY: "z0", names.BLOCK_KEY: "z0-b0", names.RACK_KEY: "storage"}
    storage = node("storage", {"cpu": "8", "pods": "110"}, labels=labels)
    made = planned([*RACKS, storage], *(replica(i, hard=True) for i in range(6)))
    assert len(made.placements) == 6


def test_several_levels_hold_together() -> None:
    nodes = racks(1, 2, 2, 1)
    spread = Spread(names.BLOCK_KEY, hard=True), Spread(names.RACK_KEY, hard=True)
    made = planned(nodes, *(asking(i, *spread) for i in range(4)))
    assert len({each.placed[0].node for each in made.placements}) == 4
    blocks = [each.placed[0].node.split("-")[2] for each in made.placements]
    assert blocks[0] != blocks[1]
    # With its other rack full, a block stays one behind, and then so does the other.
    holds = [Hold("n-0-0-1-0", {"nvidia.com/gpu": 8})]
    made = cycle.plan(build(nodes, holds, LEVELS), [asking(i, *spread) for i in range(4)])
    assert len(made.placements) == 3


def test_several_levels_that_are_liked_are_all_heeded() -> None:
    spread = Spread(names.BLOCK_KEY), Spread(names.HOSTNAME_KEY)
    made = planned(racks(1, 2, 1, 2), *(asking(i, *spread) for i in range(4)))
    assert len({each.placed[0].node for each in made.placements}) == 4
    first, second = (each.placed[0].node.split("-")[2] for each in made.placements[:2])
    assert first != second


def test_one_that_asks_for_nothing_counts_for_those_that_select_it() -> None:
    """On nodes by themselves, of which only one has room for both."""
    nodes = racks(1, 1, 1, 2)
    chat = (Expression("app", "In", ("chat",)),)
    spread = Spread(names.HOSTNAME_KEY, hard=True, among=chat)
    holds = [Hold("n-0-0-0-1", {"nvidia.com/gpu": 8})]
    silent, shy = asking(0, app="chat"), asking(1, spread, app="chat")
    made = cycle.plan(build(nodes, holds, LEVELS), [silent, shy])
    assert [each.gang.name for each in made.placements] == ["demo-0"]
    made = cycle.plan(build(nodes, [], LEVELS), [silent, shy])
    assert len({each.placed[0].node for each in made.placements}) == 2
    stranger = asking(0, app="web")
    assert len(cycle.plan(build(nodes, holds, LEVELS), [stranger, shy]).placements) == 2


def test_with_fewer_domains_than_must_be_each_takes_no_more_than_the_skew() -> None:
    spread = Spread(names.RACK_KEY, hard=True, min_domains=4)
    made = planned(RACKS, *(asking(i, spread) for i in range(4)))
    assert len(made.placements) == 3


@pytest.mark.parametrize(("by_affinity", "placed"), [(True, 4), (False, 2)])
def test_domains_that_its_pods_do_not_select_count_only_if_asked(
    *, by_affinity: bool, placed: int
) -> None:
    chosen = Constraints.of(pod("p", spec={"nodeSelector": {"fast": "yes"}}))
    nodes = [
        node(n.metadata.name, labels={**n.metadata.labels, "fast": "yes" if i > 1 else "no"})
        for i, n in enumerate(RACKS)
    ]
    spread = Spread(names.RACK_KEY, hard=True, by_affinity=by_affinity)
    asked = [replace(asking(i, spread), minimum=(Want("a", 0, NEED, chosen),)) for i in range(4)]
    assert len(planned(nodes, *asked).placements) == placed


def test_a_gang_of_several_pods_counts_once_in_each_domain() -> None:
    """Not once for each of its nodes."""
    there = (Sibling("there", ("n-0-0-0-0", "n-0-0-0-1")), Sibling("other", ("n-0-0-1-0",)))
    spread = Spread(names.RACK_KEY, there, hard=True, skew=2)
    made = cycle.plan(build(RACKS, full(1, 2), LEVELS), [asking(0, spread)])
    assert len(made.placements) == 1


def test_what_comes_later_goes_where_its_replica_is_however_many_are_there_by_now() -> None:
    there = tuple(Sibling(f"other-{i}", ("n-0-0-0-0",)) for i in range(3))
    spread = Spread(names.RACK_KEY, (*there, Sibling("demo-0", ("n-0-0-0-1",))), hard=True)
    grown = replace(
        asking(0, spread),
        near=Closeness(names.RACK_KEY),
        anchors=(Anchor("n-0-0-0-1", "a"),),
        minimum=(Want("a", 1, NEED),),
    )
    (made,) = planned(RACKS, grown).placements
    assert rack_of(made.placed[0].node) == "n-0-0-0"
    scaled = replace(grown, anchors=(), near=Closeness(), name="demo-0-g-0")
    assert len(cycle.plan(build(RACKS, full(1, 2), LEVELS), [scaled]).placements) == 1
    stranger = replace(scaled, kin=Kin("demo-1", "demo"))
    assert cycle.plan(build(RACKS, full(1, 2), LEVELS), [stranger]).placements == ()
