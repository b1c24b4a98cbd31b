"""What is said of all nodes at once is what is said of each of them."""

from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from api.streams import Expression, Node, NodeSelector, Pod, Term, Toleration
from scheduler.eligible import NOT_READY, VOLUMES, Constraints, obstacle
from scheduler.filters.constraints import Claimed
from scheduler.filters.masks import Masks
from tests.support import filters_slowly as slowly
from tests.support.clusters import node, pod
from tests.support.parity_drawing import Target, drawn_case, drawn_node

chances = st.integers(0, 2**40).map(Random)
drawn = settings(max_examples=100, deadline=None)


def odd_nodes(chance: Random, count: int) -> list[Node]:
    """Nodes as they are made for the comparison with kube-scheduler; some are not ready."""
    found = []
    for odd in (drawn_node(chance, i) for i in range(count)):
        labels = {"kubernetes.io/hostname": odd.name, **odd.labels}
        ready = chance.random() < 0.9
        found.append(node(odd.name, odd.offer, labels=labels, spec=odd.spec, ready=ready))
    return found


def odd_pod(chance: Random, nodes: list[Node]) -> Pod:
    target = Target(chance.choice(nodes), {}, ["missing"])
    return msgspec.convert(drawn_case(chance, "p", target, pin=chance.random() < 0.5).body, Pod)


@drawn
@given(chances)
def test_a_mask_says_of_each_node_what_is_said_of_it_alone(chance: Random) -> None:
    nodes = odd_nodes(chance, 12)
    masks = Masks(nodes)
    for _ in range(4):
        coming = odd_pod(chance, nodes)
        constraints = Constraints.of(coming)
        alone = [slowly.taken_alone(each, coming) and each.ready for each in nodes]
        assert [not obstacle(each, constraints) for each in nodes] == alone
        # Nobody is there, so no filter that looks at others has anything to say.
        assert list(masks.mask(constraints)) == alone


@drawn
@given(chances)
def test_obstacles_are_counted_by_the_first_that_stands_in_the_way(chance: Random) -> None:
    nodes = odd_nodes(chance, 12)
    constraints = Constraints.of(odd_pod(chance, nodes))
    told = [obstacle(each, constraints) for each in nodes]
    counts = {reason: told.count(reason) for reason in dict.fromkeys(told) if reason}
    assert dict(Masks(nodes).obstacles(constraints)) == counts


@drawn
@given(chances)
def test_masks_follow_changed_nodes(chance: Random) -> None:
    nodes = odd_nodes(chance, 8)
    asked = [Constraints.of(odd_pod(chance, nodes)) for _ in range(3)]
    masks = Masks(nodes)
    for _ in range(3):
        for constraints in asked:
            masks.mask(constraints)
        fresh = odd_nodes(chance, 8)
        nodes = [
            new if chance.random() < 0.3 else old for old, new in zip(nodes, fresh, strict=True)
        ]
        masks = masks.after(nodes, [()] * len(nodes))
        for constraints in asked:
            assert list(masks.mask(constraints)) == list(Masks(nodes).mask(constraints))


def test_an_answer_is_given_again_until_a_node_changes() -> None:
    nodes = [node(f"n{i}") for i in range(3)]
    masks = Masks(nodes)
    first = masks.mask(Constraints())
    renewed = [node("n0"), *nodes[1:]]
    assert masks.mask(Constraints()) is first
    assert masks.after(renewed, [()] * 3).mask(Constraints()) is first
    cordoned = [node("n0", spec={"unschedulable": True}), *nodes[1:]]
    assert list(masks.after(cordoned, [()] * 3).mask(Constraints())) == [False, True, True]
    gone = [*nodes[:2], node("n2", ready=False)]
    assert list(masks.after(gone, [()] * 3).mask(Constraints())) == [True, True, False]
    assert list(first) == [True, True, True]


def test_what_is_given_out_cannot_be_written() -> None:
    masks = Masks([node("a")])
    for constraints in (Constraints(), Constraints.of(pod("p", spec=PORT))):
        with pytest.raises(ValueError, match="read-only"):
            masks.mask(constraints)[0] = False


PORT: JsonObject = {"containers": [{"name": "x", "ports": [{"hostPort": 80}]}]}


def test_masks_of_no_nodes_are_empty() -> None:
    masks = Masks([])
    assert masks.mask(Constraints()).shape == (0,)
    assert masks.obstacles(Constraints()) == {}


def test_pods_of_a_clique_share_their_constraints_and_gangs_their_masks() -> None:
    def gang_pod(gang: str, index: int) -> Pod:
        labels: JsonObject = {
            "grove.io/podgang": gang,
            "grove.io/podclique-pod-index": str(index),
        }
        return pod(
            f"{gang}-{index}", metadata={"labels": labels}, spec={"nodeSelector": {"a": "b"}}
        )

    one, two = Constraints.of(gang_pod("g", 0)), Constraints.of(gang_pod("g", 1))
    other = Constraints.of(gang_pod("h", 0))
    assert one is two
    assert one != other
    masks = Masks([node("a", labels={"a": "b"})])
    assert masks.settled(one) is masks.settled(other)
    assert masks.mask(one) is masks.mask(other)


def test_labels_that_pods_are_told_apart_by_stay_where_the_pod_asks_for_them() -> None:
    index = "grove.io/podclique-pod-index"
    term: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {index: "0"}}}
    affinity: Json = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    read = Constraints.of(pod("p", metadata={"labels": {index: "0"}}, spec={"affinity": affinity}))
    assert read.label_map == {index: "0"}


def test_a_selector_of_a_volume_is_an_obstacle_of_its_own() -> None:
    near = NodeSelector((Term((Expression("disk", "Exists"),)),))
    bound = Constraints.of(pod("p"), Claimed((near,)))
    nodes = [node("a", labels={"disk": "x"}), node("b"), node("c", ready=False)]
    assert dict(Masks(nodes).obstacles(bound)) == {NOT_READY: 1, VOLUMES: 1}
    assert [obstacle(each, bound) for each in nodes] == ["", VOLUMES, NOT_READY]


def test_numbers_are_compared_as_go_reads_them() -> None:
    above = Constraints(required=NodeSelector((Term((Expression("n", "Gt", ("6",)),)),)))
    values = ["7", "007", "1_0", " 9", "9223372036854775807", "9223372036854775808", "+9", "٩"]
    nodes = [node(f"n{i}", labels={"n": value}) for i, value in enumerate(values)]
    taken = [value for value, ok in zip(values, Masks(nodes).mask(above), strict=True) if ok]
    assert taken == ["7", "007", "9223372036854775807"]


def test_a_toleration_that_compares_numbers_tolerates_nothing() -> None:
    dear = node("a", spec={"taints": [{"key": "cost", "value": "5", "effect": "NoSchedule"}]})
    below = Constraints(tolerations=(Toleration("cost", "Lt", "9", "NoSchedule"),))
    same = Constraints(tolerations=(Toleration("cost", "Lt", "5", "NoSchedule"),))
    assert not np.array([Masks([dear]).mask(each) for each in (below, same)]).any()
