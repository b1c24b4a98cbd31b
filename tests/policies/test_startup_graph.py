from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.startup_graph import cycles

NAMES = st.sampled_from("abcdefgh")
GRAPHS = st.dictionaries(NAMES, st.lists(NAMES, max_size=5), max_size=8)


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"a": ["b"], "b": ["c"], "c": []}, [], id="chain"),
        pytest.param({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, [], id="diamond"),
        pytest.param({"a": ["ghost"]}, [], id="unknown name"),
        pytest.param({"a": ["a"]}, [("a",)], id="itself"),
        pytest.param(
            {"router": ["prefill"], "prefill": ["router"]}, [("router", "prefill")], id="two"
        ),
        pytest.param(
            {"a": [], "b": ["d"], "c": ["b"], "d": ["c"]}, [("b", "d", "c")], id="three of four"
        ),
        pytest.param(
            {"z": ["y"], "y": ["x"], "x": ["y"]}, [("y", "x")], id="tail is not of the cycle"
        ),
        pytest.param(
            {"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]},
            [("a", "b"), ("c", "d")],
            id="two cycles in one tree",
        ),
    ],
)
def test_cycles_are_named_from_the_first_declared(
    edges: dict[str, list[str]], found: list[tuple[str, ...]]
) -> None:
    assert cycles(edges) == found


@given(GRAPHS)
def test_a_cycle_is_found_exactly_when_no_order_exists(edges: dict[str, list[str]]) -> None:
    try:
        list(TopologicalSorter(edges).static_order())
        ordered = True
    except CycleError:
        ordered = False
    assert (not cycles(edges)) == ordered


@given(GRAPHS)
def test_every_cycle_is_one_and_no_two_share_a_name(edges: dict[str, list[str]]) -> None:
    found = cycles(edges)
    for cycle in found:
        for name, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert following in edges[name]
    names = [name for cycle in found for name in cycle]
    assert len(names) == len(set(names))


def test_depth_beyond_the_interpreters_stack_is_no_trouble() -> None:
    size = 50_000
    ring = {str(i): [str((i + 1) % size)] for i in range(size)}
    assert [len(cycle) for cycle in cycles(ring)] == [size]


def test_many_edges_back_cost_no_more_than_they_are() -> None:
    # A chain whose last name waits for all others, nearest first: naming each cycle in full
    # would take the square of its length.
    size = 20_000
    edges = {str(i): [str(i + 1)] for i in range(size)}
    edges[str(size)] = [str(i) for i in reversed(range(size))]
    assert cycles(edges) == [(str(size - 1), str(size))]
