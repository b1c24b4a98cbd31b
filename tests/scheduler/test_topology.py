"""Domains are runs of nodes, and neighbours by number are neighbours."""

from collections.abc import Sequence
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from api.streams import Node
from scheduler import topology
from scheduler.snapshot import build
from scheduler.topology import Domain, Levels, Topology
from tests.support.clusters import node

LEVELS: Final = Levels("net", ("zone", "block", "rack"))


def names(nodes: Sequence[Node]) -> list[str]:
    return [each.metadata.name for each in build(nodes, [], [LEVELS]).nodes]


def test_nodes_are_ordered_by_the_numbers_in_their_names() -> None:
    mixed = ["node-10", "node-9", "node-1-10", "node-1-9", "node-1", "a", "node-01"]
    assert names([node(name) for name in mixed]) == [
        "a", "node-01", "node-1", "node-1-9", "node-1-10", "node-9", "node-10",
    ]  # fmt: skip


def test_domains_are_ordered_by_the_numbers_in_their_paths() -> None:
    nodes = [node(f"n{i}", labels={"zone": f"z{i}"}) for i in (10, 9, 1)]
    found = build(nodes, [], [LEVELS])
    assert [domain.path for domain in found.domains[1]] == [("z1",), ("z9",), ("z10",)]


def test_values_that_are_one_number_are_two_domains() -> None:
    nodes = [node(f"n{i}", labels={"zone": zone}) for i, zone in enumerate(["1", "01", "1", "01"])]
    found = build(nodes, [], [LEVELS])
    assert list(found.domains[1]) == [Domain(("01",), 0, 2), Domain(("1",), 2, 4)]


def test_a_node_without_a_label_in_the_middle_is_in_domains_around_it() -> None:
    def at(name: str, **labels: str) -> Node:
        return node(name, labels=labels)

    nodes = [
        at("a", zone="z", block="b", rack="r"),
        at("b", zone="z", rack="r"),
        at("c", zone="z", rack="r"),
        at("d", rack="r"),
        at("e", zone="z", block="b"),
        at("f"),
    ]
    found = build(nodes, [], [LEVELS])
    inside = {
        domain.path: {n.metadata.name for n in found.nodes[domain.start : domain.stop]}
        for domains in found.domains
        for domain in domains
    }
    assert inside == {
        (): set("abcdef"),
        ("z",): set("abce"),
        ("z", "b"): set("ae"),
        ("z", "b", "r"): {"a"},
        ("z", "", "r"): {"b", "c"},
        ("", "", "r"): {"d"},
    }


def test_a_level_nobody_is_labelled_with_is_left_out() -> None:
    found = build([node("a", labels={"rack": "r"})], [], [LEVELS])
    assert found.levels == ("rack",)
    assert found.topologies[0].depth_of("rack") == 1
    assert found.topologies[0].depth_of("zone") is None


def test_each_topology_brings_its_own_order_and_the_first_that_of_rows() -> None:
    nodes = [node(f"n{i}", labels={"zone": f"z{i % 2}", "row": f"r{i // 2}"}) for i in range(4)]
    found = build(nodes, [], [LEVELS, Levels("rows", ("row",))])
    assert [n.metadata.name for n in found.nodes] == ["n0", "n2", "n1", "n3"]
    assert found.topologies[0].order.tolist() == [0, 1, 2, 3]
    rows = found.topology("rows")
    assert rows is not None
    assert [found.nodes[row].metadata.name for row in rows.order] == ["n0", "n1", "n2", "n3"]
    assert [(d.path, d.start, d.stop) for d in rows.domains[1]] == [
        (("r0",), 0, 2),
        (("r1",), 2, 4),
    ]
    assert found.topology("none") is None
    assert found.topology("") is found.topologies[0]


LABELS: Final = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(["1", "01", "2", "10", ""]) for key in LEVELS.keys}
)


def holding(found: Topology, nodes: Sequence[Node]) -> None:
    """Each domain holds exactly the nodes whose path begins with its own."""
    for depth, domains in enumerate(found.domains):
        seen = set()
        for domain in domains:
            assert len(domain.path) == depth
            seen |= {*range(domain.start, domain.stop)}
            for position, row in enumerate(found.order):
                begins = topology.path(nodes[row], found.keys)[:depth] == domain.path
                assert begins == domain.holds([position])
        for position in {*range(len(nodes))} - seen:
            assert not topology.path(nodes[found.order[position]], found.keys)[depth - 1]


@given(st.lists(LABELS, max_size=12), st.permutations(LEVELS.keys))
@settings(deadline=None)
def test_domains_are_exactly_the_nodes_that_share_a_path(
    labels: list[dict[str, str]], keys: Sequence[str]
) -> None:
    nodes = [node(f"n-{i}", labels=each) for i, each in enumerate(labels)]
    found = build(nodes, [], [LEVELS, Levels("other", tuple(keys))])
    for each in found.topologies:
        assert sorted(each.order.tolist()) == [*range(len(nodes))]
        assert (each.position[each.order] == range(len(nodes))).all()
        holding(each, found.nodes)
