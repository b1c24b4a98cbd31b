from collections.abc import Sequence
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from api import names, quantities
from api.capacity import Capacity
from api.streams import Node
from scheduler.tally import Levels, Tally
from tests.support.clusters import node, racks

BUILT_IN: Final[Levels] = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
GPU: Final = "nvidia.com/gpu"


def told(nodes: Sequence[Node], *topologies: Levels) -> Capacity:
    tally = Tally(topologies or [BUILT_IN])
    for each in nodes:
        tally.put(each)
    return tally.capacity()


def test_an_empty_cluster_holds_nothing() -> None:
    assert told([]) == Capacity()


def test_the_largest_node_and_domains_are_told_by_resource() -> None:
    found = told([*racks(2, 2, 3, 4), node("big", {"cpu": "500m", GPU: "16"})])
    gibibyte = 2**30
    assert found.node == {"cpu": 96_000, "memory": 768 * gibibyte, GPU: 16, "pods": 110}
    gpus = {key: most[GPU] for key, most in found.domains.items()}
    assert gpus == {names.ZONE_KEY: 192, names.BLOCK_KEY: 96, names.RACK_KEY: 32}


def test_racks_of_one_name_in_two_blocks_are_two_racks() -> None:
    labels = [{names.BLOCK_KEY: block, names.RACK_KEY: "1"} for block in ("a", "a", "b")]
    nodes = [node(f"n{i}", {GPU: "8"}, labels=each) for i, each in enumerate(labels)]
    assert told(nodes).domains[names.RACK_KEY] == {GPU: 16}


def test_a_node_without_a_levels_label_is_in_no_domain_of_it() -> None:
    nodes = [node("a", {GPU: "8"}, labels={names.RACK_KEY: "1"}), node("b", {GPU: "8"})]
    assert told(nodes).domains == {names.RACK_KEY: {GPU: 8}}


def test_a_level_in_two_topologies_counts_where_it_is_larger() -> None:
    labels = [{"room": room, "row": "1"} for room in ("a", "b")]
    nodes = [node(f"n{i}", {GPU: "8"}, labels=each) for i, each in enumerate(labels)]
    assert told(nodes, ("room", "row")).domains["row"] == {GPU: 8}
    assert told(nodes, ("room", "row"), ("row",)).domains["row"] == {GPU: 16}


def test_only_what_decides_is_a_change() -> None:
    tally = Tally([BUILT_IN])
    labels = {names.RACK_KEY: "1"}
    assert tally.put(node("a", {GPU: "8"}, labels=labels))
    assert not tally.put(node("a", {GPU: "8"}, labels={**labels, "team": "x"}, ready=False))
    assert tally.put(node("a", {GPU: "9"}, labels=labels))
    assert tally.put(node("a", {GPU: "9"}, labels={names.RACK_KEY: "2"}))
    assert tally.drop("a")
    assert not tally.drop("a")
    assert tally.capacity() == Capacity()


def test_amounts_that_cannot_be_read_count_as_nothing() -> None:
    assert told([node("a", {GPU: "many"}), node("b", {GPU: "1"})]).node == {GPU: 1}


ROOMS: Final = st.sampled_from(["", "a", "b"])
NODES: Final = st.builds(
    lambda name, room, row, gpus: node(
        name,
        {GPU: str(gpus), "cpu": "4"},
        labels={key: value for key, value in (("room", room), ("row", row)) if value},
    ),
    st.sampled_from("abcdef"),
    ROOMS,
    ROOMS,
    st.integers(0, 9),
)
TOPOLOGIES: Final = (("room", "row"), ("row",))


def by_hand(nodes: Sequence[Node], topologies: Sequence[Levels]) -> Capacity:
    """The same by adding everything up."""
    largest: dict[str, int] = {}
    for each in nodes:
        amounts = quantities.amounts(each.status.allocatable)
        largest = {**quantities.larger(largest, amounts)}
    domains: dict[str, dict[str, int]] = {}
    for levels in topologies:
        for depth in range(1, len(levels) + 1):
            sums: dict[tuple[str, ...], dict[str, int]] = {}
            for each in nodes:
                path = tuple(each.metadata.labels.get(key, "") for key in levels[:depth])
                if path[-1]:
                    amounts = quantities.amounts(each.status.allocatable)
                    sums[path] = quantities.plus(sums.get(path, {}), amounts)
            for total in sums.values():
                key = levels[depth - 1]
                domains[key] = quantities.larger(domains.get(key, {}), total)
    positive = {key: {r: n for r, n in most.items() if n} for key, most in domains.items()}
    return Capacity({r: n for r, n in largest.items() if n}, positive)


@given(st.lists(NODES | st.sampled_from("abcdef"), max_size=30))
def test_whatever_comes_changes_and_goes_the_tally_is_what_adding_up_gives(
    events: list[Node | str],
) -> None:
    tally = Tally(TOPOLOGIES[:1])
    there: dict[str, Node] = {}
    for event in events:
        if isinstance(event, str):
            tally.drop(event)
            there.pop(event, None)
        else:
            tally.put(event)
            there[event.metadata.name] = event
    assert tally.capacity() == by_hand([*there.values()], TOPOLOGIES[:1])
    assert tally.retold(TOPOLOGIES).capacity() == by_hand([*there.values()], TOPOLOGIES)
