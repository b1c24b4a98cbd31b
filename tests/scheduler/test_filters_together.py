"""Pods of one plan: what no order of binding lets through is found before anybody is pinned."""

from itertools import permutations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from scheduler.filters.classes import AFFINITY, APART, PORTS, SPREAD
from scheduler.filters.constraints import Constraints
from scheduler.filters.masks import Masks
from scheduler.filters.together import conflict, exclusive_keys
from scheduler.residents import of_pod
from tests.support import filters_slowly as slowly
from tests.support.clusters import node, pod
from tests.support.filters_drawing import Housed, drawn_pod, housed

chances = st.integers(0, 2**40).map(Random)
drawn = settings(max_examples=100, deadline=None)

Plan = list[tuple[int, Pod]]


def drawn_plan(chance: Random, cluster: Housed, *, spread: bool) -> Plan:
    """Up to four pods, each on a node that it may have by itself."""
    masks = cluster.masks()
    few = [drawn_pod(chance, spread=spread) for _ in range(2)]
    pods = [chance.choice(few) for _ in range(chance.randint(1, 4))]
    wanted = [Constraints.of(each) for each in pods]
    plan: Plan = []
    for each, constraints in zip(pods, wanted, strict=True):
        allowed = masks.mask(masks.settled(constraints, wanted))
        rows = [row for row, ok in enumerate(allowed) if ok]
        if rows:
            plan.append((chance.choice(rows), each))
    return plan


def judged(cluster: Housed, plan: Plan, before: Plan | None = None) -> str:
    ours, theirs = (
        [(row, Constraints.of(each)) for row, each in seated] for seated in (plan, before or [])
    )
    return conflict(cluster.masks(), ours, theirs)


def can_be_bound(cluster: Housed, plan: Plan) -> bool:
    """Whether kube-scheduler would bind all of them in some order, each on its node."""
    return any(_bound(cluster, order) for order in permutations(plan))


def _bound(cluster: Housed, order: tuple[tuple[int, Pod], ...]) -> bool:
    nodes = cluster.nodes
    places = {name: list(there) for name, there in cluster.places.items()}
    for row, each in order:
        here = nodes[row]
        if not (
            slowly.ports_free(here, each, places)
            and slowly.near_enough(here, each, nodes, places)
            and slowly.far_enough(here, each, nodes, places)
            and slowly.even_enough(here, each, nodes, places)
        ):
            return False
        places[here.metadata.name].append(each)
    return True


@drawn
@given(chances)
def test_where_nothing_is_found_there_is_an_order_that_binds_all(chance: Random) -> None:
    cluster = housed(chance)
    plan = drawn_plan(chance, cluster, spread=chance.random() < 0.5)
    if not judged(cluster, plan):
        assert can_be_bound(cluster, plan)


@drawn
@given(chances)
def test_clashes_of_ports_and_of_who_shuns_whom_stand_in_every_order(chance: Random) -> None:
    cluster = housed(chance)
    plan = drawn_plan(chance, cluster, spread=False)
    if judged(cluster, plan) in (PORTS, APART):
        assert not can_be_bound(cluster, plan)


@drawn
@given(chances)
def test_pods_that_the_plan_has_placed_before_count_like_residents(chance: Random) -> None:
    cluster = housed(chance)
    plan = drawn_plan(chance, cluster, spread=False)
    cut = chance.randint(0, len(plan))
    first, second = plan[:cut], plan[cut:]
    if (
        not judged(cluster, first)
        and can_be_bound(cluster, first)
        and not judged(cluster, second, first)
    ):
        assert can_be_bound(cluster, plan)


def shunning(key: str, app: str) -> JsonObject:
    term: Json = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def of_app(app: str, **spec: Json) -> Constraints:
    return Constraints.of(pod(f"p-{app}", metadata={"labels": {"app": app}}, spec=spec))


def port(number: int, address: str = "") -> Json:
    return [{"name": "x", "ports": [{"hostPort": number, "hostIP": address}]}]


def test_pods_that_take_a_port_or_shun_their_own_kind_have_keys_that_a_node_has_once() -> None:
    one, other = of_app("a", containers=port(80)), of_app("b", containers=port(80, "10.0.0.1"))
    assert exclusive_keys(one) == exclusive_keys(other) == (("TCP", 80),)
    alone = of_app("a", affinity=shunning(names.HOSTNAME_KEY, "a"))
    assert len(exclusive_keys(alone)) == 1
    assert exclusive_keys(of_app("a", affinity=shunning(names.HOSTNAME_KEY, "b"))) == ()
    assert exclusive_keys(of_app("a", affinity=shunning("zone", "a"))) == ()
    assert exclusive_keys(of_app("a")) == ()


def test_a_first_pod_may_be_near_nobody_and_its_mates_must_be_near_it() -> None:
    term: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    near: Json = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = of_app("a", affinity=near)
    masks = Masks([node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)])
    assert list(masks.mask(pods)) == [True] * 4
    assert conflict(masks, [(0, pods)]) == ""
    assert conflict(masks, [(0, pods), (2, pods), (2, pods)]) == ""
    assert conflict(masks, [(0, pods), (1, pods)]) == AFFINITY
    assert conflict(masks, [(0, pods)], [(2, pods)]) == ""
    assert conflict(masks, [(1, pods)], [(2, pods)]) == AFFINITY


def test_what_must_be_near_mates_may_go_anywhere_until_they_have_their_place() -> None:
    term: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "b"}}}
    near: Json = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    follower, leader = of_app("a", affinity=near), of_app("b")
    masks = Masks([node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"}), node("n2")])
    assert list(masks.mask(follower)) == [False] * 3
    assert list(masks.mask(masks.settled(follower, [leader]))) == [True, True, False]
    assert conflict(masks, [(0, follower), (0, leader)]) == ""
    assert conflict(masks, [(0, follower), (1, leader)]) == AFFINITY


def test_a_plan_must_end_even() -> None:
    constraint: Json = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    pods = of_app("a", topologySpreadConstraints=[constraint])
    masks = Masks([node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)])
    assert conflict(masks, [(0, pods), (1, pods), (2, pods)]) == ""
    assert conflict(masks, [(0, pods), (2, pods)]) == SPREAD


def test_a_pinned_pod_counts_only_its_own_node_so_least_domains_must_be_met_there() -> None:
    constraint: JsonObject = {
        "topologyKey": names.HOSTNAME_KEY,
        "maxSkew": 1,
        "minDomains": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    there = (of_pod(pod("p", metadata={"labels": {"app": "a"}})),)
    nodes = [node(f"n{i}", labels={names.HOSTNAME_KEY: f"n{i}"}) for i in range(2)]
    masks = Masks(nodes, (there, there))
    assert list(masks.mask(of_app("a", topologySpreadConstraints=[constraint]))) == [False, False]
    everywhere = {**constraint, "nodeAffinityPolicy": "Ignore"}
    assert list(masks.mask(of_app("a", topologySpreadConstraints=[everywhere]))) == [True, True]
    few = {**constraint, "minDomains": None}
    assert list(masks.mask(of_app("a", topologySpreadConstraints=[few]))) == [True, True]
