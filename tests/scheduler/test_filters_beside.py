"""Filters that look at other pods decide as kube-scheduler does, one node at a time."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from api.streams import Pod
from scheduler.filters.classes import AFFINITY, APART, PORTS, SPREAD
from scheduler.filters.constraints import Constraints
from tests.support import filters_slowly as slowly
from tests.support.filters_drawing import Housed, changed, drawn_pod, housed

chances = st.integers(0, 2**40).map(Random)
drawn = settings(max_examples=100, deadline=None)


def excluded(cluster: Housed, coming: Pod) -> dict[str, list[bool]]:
    barriers = dict(cluster.masks().barriers(Constraints.of(coming)))
    nobody = [False] * len(cluster.nodes)
    return {
        name: [bool(each) for each in barriers.get(name, nobody)]
        for name in (PORTS, SPREAD, AFFINITY, APART)
    }


@drawn
@given(chances)
def test_each_filter_says_of_each_node_what_kube_scheduler_says(chance: Random) -> None:
    cluster, coming = housed(chance), drawn_pod(chance)
    found = excluded(cluster, coming)
    nodes, places = cluster.nodes, cluster.places
    for row, node in enumerate(nodes):
        assert found[PORTS][row] != slowly.ports_free(node, coming, places)
        assert found[AFFINITY][row] != slowly.near_enough(node, coming, nodes, places)
        assert found[APART][row] != slowly.far_enough(node, coming, nodes, places)
        assert found[SPREAD][row] != slowly.even_enough(node, coming, nodes, places)


@drawn
@given(chances)
def test_the_mask_is_what_no_filter_takes(chance: Random) -> None:
    masks, constraints = housed(chance).masks(), Constraints.of(drawn_pod(chance))
    mask = masks.mask(constraints)
    assert int(mask.sum()) + sum(masks.obstacles(constraints).values()) == len(mask)
    names, first = masks.reasons(constraints)
    assert [at < 0 for at in first] == list(mask)
    assert names == tuple(name for name, _ in masks.barriers(constraints))


@drawn
@given(chances)
def test_masks_of_a_later_instant_are_those_made_anew(chance: Random) -> None:
    cluster, constraints = housed(chance), Constraints.of(drawn_pod(chance))
    masks = cluster.masks()
    for _ in range(3):
        before = list(masks.mask(constraints))
        later = changed(chance, cluster)
        after = masks.after(later.nodes, later.residents)
        assert list(after.mask(constraints)) == list(later.masks().mask(constraints))
        assert list(masks.mask(constraints)) == before
        cluster, masks = later, after
