from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lab.errors import LabError
from penstock.lab.topology import Level, Topology, parse_topology

ZONE, BLOCK, RACK = (f"topology.kubernetes.io/{level}" for level in ("zone", "block", "rack"))


def test_counts_are_per_domain_of_the_level_above() -> None:
    topology = parse_topology("zone=2,block=2,rack=5")
    assert topology.leaves == 20
    seen = [topology.labels(leaf) for leaf in range(20)]
    assert len({labels[ZONE] for labels in seen}) == 2
    assert len({labels[BLOCK] for labels in seen}) == 4
    assert len({labels[RACK] for labels in seen}) == 20


def test_values_name_the_whole_path() -> None:
    topology = parse_topology("zone=2,block=2,rack=5")
    assert topology.labels(13) == {
        ZONE: "zone-1",
        BLOCK: "zone-1-block-0",
        RACK: "zone-1-block-0-rack-3",
    }


def test_a_level_may_be_a_label_of_its_own() -> None:
    topology = parse_topology("example.com/hall=1,row=2")
    assert topology.labels(1) == {
        "example.com/hall": "hall-0",
        "topology.kubernetes.io/row": "hall-0-row-1",
    }


def test_no_level_is_a_flat_network() -> None:
    assert parse_topology("").labels(0) == {}
    assert parse_topology("").leaf_of(7, 9) == 0


@given(counts=st.lists(st.integers(1, 6), min_size=1, max_size=3), nodes=st.integers(1, 300))
def test_nodes_are_spread_evenly_and_in_order(counts: list[int], nodes: int) -> None:
    topology = Topology(tuple(Level(f"l{i}", count) for i, count in enumerate(counts)))
    leaves = [topology.leaf_of(node, nodes) for node in range(nodes)]
    assert leaves == sorted(leaves)
    sizes = Counter(leaves)
    filled = [sizes[leaf] for leaf in range(topology.leaves)]
    assert max(filled) - min(filled) <= 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("zone", "'zone' is not LEVEL=COUNT", id="no count"),
        pytest.param("zone=0", "'zone=0'", id="none"),
        pytest.param("zone=-1", "'zone=-1'", id="negative"),
        pytest.param("zone=²", "'zone=²'", id="no plain digit"),
        pytest.param("Zone=1", "'Zone=1'", id="capital letter"),
        pytest.param("rack=2,rack=3", "names a level twice", id="twice"),
        pytest.param("rack=2,topology.kubernetes.io/rack=3", "twice", id="twice by label"),
        pytest.param(f"{'a' * 40}=2,{'b' * 40}=2", "longer than 63", id="too long"),
    ],
)
def test_a_bad_topology_is_refused_with_the_part_named(text: str, complaint: str) -> None:
    with pytest.raises(LabError) as refused:
        parse_topology(text)
    assert complaint in str(refused.value)
    assert "--topology" in str(refused.value)
