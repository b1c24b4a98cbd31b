from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from policies import pod_claims
from policies.answers import Allow, Code, Refuse
from policies.known import NOTHING, Snapshot
from policies.policy import BUILT_IN, Policy, TopologyPolicy
from tests.support.gangpods import GROVES, NETWORK, PLAIN, judged, pod

GANG: Final = names.GANG_LABEL
SIZE: Final = names.GANG_SIZE_LABEL
MINIMUM: Final = names.GANG_MINIMUM_LABEL
BINDING: Final = names.TOPOLOGY_LABEL
LEVEL: Final = names.TOPOLOGY_LEVEL_LABEL
ONE_NETWORK: Final = Snapshot(topologies={"dc": NETWORK})


def affinity(*terms: Json) -> JsonObject:
    required: JsonObject = {"nodeSelectorTerms": [*terms]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(GROVES, id="a PodGang"),
        pytest.param({GANG: "g", SIZE: "4"}, id="a size"),
        pytest.param({GANG: "g", MINIMUM: "2"}, id="a minimum"),
        pytest.param({GANG: "g", SIZE: "4", MINIMUM: "4"}, id="minimum and size"),
        pytest.param({GANG: "7.g-1", SIZE: "4"}, id="a name in parts"),
        pytest.param({GANG: "g", SIZE: "10000"}, id="the largest"),
        pytest.param({**GROVES, GANG: "llm-0"}, id="one gang named twice"),
        pytest.param({**GROVES, SIZE: "x", MINIMUM: "0"}, id="a PodGang says the size"),
    ],
)
def test_a_claim_that_can_be_honoured_is_let_in(labels: dict[str, str]) -> None:
    assert isinstance(judged(pod(labels)), Allow)


@pytest.mark.parametrize(
    ("labels", "path", "hint"),
    [
        pytest.param({GANG: "g"}, GANG, f"{SIZE} (all its pods) or {MINIMUM}", id="no size"),
        pytest.param({GANG: "", SIZE: "2"}, GANG, "must name the pod's gang", id="no name"),
        pytest.param({names.PODGANG_LABEL: ""}, names.PODGANG_LABEL, "must name", id="no PodGang"),
        pytest.param({GANG: "g", SIZE: "0"}, SIZE, "from 1 to 10000", id="zero"),
        pytest.param({GANG: "g", SIZE: "-1"}, SIZE, "got '-1'", id="negative"),
        pytest.param({GANG: "g", SIZE: "1.5"}, SIZE, "whole number", id="no whole number"),
        pytest.param({GANG: "g", SIZE: "٣"}, SIZE, "whole number", id="other digits"),
        pytest.param({GANG: "g", SIZE: "4\n"}, SIZE, "whole number", id="a line's end"),
        pytest.param({GANG: "g", SIZE: ""}, SIZE, "whole number", id="empty"),
        pytest.param({GANG: "g", SIZE: "10001"}, SIZE, "from 1 to 10000", id="too many"),
        pytest.param({GANG: "g", SIZE: "9" * 63}, SIZE, "from 1 to 10000", id="far too many"),
        pytest.param({GANG: "g", MINIMUM: "0"}, MINIMUM, "from 1 to 10000", id="minimum of zero"),
        pytest.param(
            {GANG: "g", SIZE: "4", MINIMUM: "5"}, MINIMUM, f"{SIZE} (4), got 5", id="over the size"
        ),
        pytest.param({**GROVES, GANG: "other"}, GANG, names.PODGANG_LABEL, id="two gangs"),
        pytest.param({GANG: "My_Gang", SIZE: "4"}, GANG, "a-z, 0-9", id="no name for an object"),
    ],
)
def test_a_claim_that_nobody_can_honour_is_refused(
    labels: dict[str, str], path: str, hint: str
) -> None:
    answer = judged(pod(labels))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    (problem,) = answer.problems
    assert problem.path == f"metadata.labels[{path}]"
    assert hint in str(problem)


def test_everything_wrong_is_said_at_once() -> None:
    bad = pod(
        {GANG: "", SIZE: "x", MINIMUM: "y"},
        {"nodeName": "n1", "schedulingGates": "z", **affinity({})},
    )
    answer = judged(bad)
    assert isinstance(answer, Refuse)
    assert len(answer.problems) == 6


@pytest.mark.parametrize("labels", [PLAIN, GROVES])
def test_a_gang_pod_on_a_node_is_refused_with_the_way_out(labels: dict[str, str]) -> None:
    answer = judged(pod(labels, {"nodeName": "n1"}))
    assert isinstance(answer, Refuse)
    assert "spec.nodeName: " in answer.message
    assert "leave nodeName out" in answer.message


EXPRESSION: Final[Json] = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([{}], id="one"),
        pytest.param([{}, {}], id="two"),
        pytest.param([{"matchExpressions": [], "matchFields": None}], id="empty lists"),
    ],
)
def test_affinity_that_can_never_name_a_node_is_refused(terms: list[Json]) -> None:
    answer = judged(pod(PLAIN, affinity(*terms)))
    assert isinstance(answer, Refuse)
    (problem,) = answer.problems
    assert problem.path.endswith("nodeSelectorTerms")
    assert "an empty term matches no node" in problem.message


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(affinity({}, {"matchExpressions": [EXPRESSION]}), id="one term can"),
        pytest.param(affinity({"matchFields": [EXPRESSION]}), id="by field"),
        pytest.param({"affinity": None}, id="none"),
        pytest.param({"affinity": {"nodeAffinity": {}}}, id="only wishes"),
        # The API server itself refuses this one, in its own words.
        pytest.param(affinity(), id="no term"),
    ],
)
def test_affinity_that_can_name_a_node_is_let_in(spec: JsonObject) -> None:
    assert isinstance(judged(pod(PLAIN, spec)), Allow)


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({"metadata": {"labels": PLAIN}}, "spec"),
        ({"metadata": {"labels": PLAIN}, "spec": "x"}, "spec"),
        (pod(PLAIN, {"schedulingGates": "x"}), "spec.schedulingGates"),
        (pod(PLAIN, {"readinessGates": {}}), "spec.readinessGates"),
    ],
)
def test_a_gang_pod_that_is_no_pod_is_refused(broken: JsonObject, path: str) -> None:
    answer = judged(broken)
    assert isinstance(answer, Refuse)
    assert [problem.path for problem in answer.problems] == [path]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"metadata": {"labels": {"app": "x"}}, "spec": {}}, id="another label"),
        pytest.param({"metadata": {"labels": {SIZE: "4"}}, "spec": {}}, id="only a size"),
        pytest.param({"metadata": {}, "spec": {}}, id="no labels"),
        pytest.param({"spec": {"nodeName": "n1"}}, id="no metadata"),
        pytest.param({"metadata": {"labels": ["x"]}, "spec": {}}, id="labels of no sense"),
        pytest.param({"metadata": {"labels": {GANG: 4}}, "spec": {}}, id="a label of no sense"),
        pytest.param({}, id="nothing"),
        pytest.param(pod(PLAIN, {"nodeName": "n1"}, mirror="abc"), id="a mirror of a static pod"),
    ],
)
def test_pods_of_no_gang_are_left_alone(other: JsonObject) -> None:
    assert judged(other) == Allow()


def test_whose_business_a_pod_is_can_be_told_however_badly_it_is_written() -> None:
    assert pod_claims.is_gang_pod({"metadata": {"labels": {**PLAIN}}})
    assert not pod_claims.is_gang_pod(pod(PLAIN, mirror="abc"))


def test_another_schedulers_gang_is_held_to_nothing_of_ours() -> None:
    labels = {GANG: "g", SIZE: "many", LEVEL: "row"}
    assert isinstance(judged(pod(labels, {"schedulerName": "volcano", "nodeName": "n"})), Allow)


@pytest.mark.parametrize(
    ("labels", "known"),
    [
        pytest.param({BINDING: "dc", LEVEL: "rack"}, ONE_NETWORK, id="both"),
        pytest.param({LEVEL: "rack"}, ONE_NETWORK, id="a level of the only one"),
        pytest.param({BINDING: "dc"}, ONE_NETWORK, id="no level"),
        pytest.param(
            {BINDING: "b", LEVEL: "zone"},
            Snapshot(topologies={"a": NETWORK, "b": NETWORK}),
            id="one of two",
        ),
    ],
)
def test_closeness_that_can_be_given_is_let_in(labels: dict[str, str], known: Snapshot) -> None:
    assert isinstance(judged(pod({**PLAIN, **labels}), known=known), Allow)


@pytest.mark.parametrize(
    ("labels", "known", "path", "hint"),
    [
        pytest.param(
            {BINDING: "xx", LEVEL: "rack"}, ONE_NETWORK, BINDING, "there are: dc", id="unknown"
        ),
        pytest.param({BINDING: "xx"}, NOTHING, BINDING, "there are: none", id="none there"),
        pytest.param({LEVEL: "row"}, ONE_NETWORK, LEVEL, "levels are: zone, rack", id="no level"),
        pytest.param({LEVEL: "rack"}, NOTHING, LEVEL, BINDING, id="a level of none"),
        pytest.param(
            {LEVEL: "rack"},
            Snapshot(topologies={"a": NETWORK, "b": NETWORK}),
            LEVEL,
            "one of: a, b",
            id="a level of two",
        ),
    ],
)
def test_closeness_that_nobody_can_give_is_refused(
    labels: dict[str, str], known: Snapshot, path: str, hint: str
) -> None:
    answer = judged(pod({**PLAIN, **labels}), known=known)
    assert isinstance(answer, Refuse)
    (problem,) = answer.problems
    assert problem.path == f"metadata.labels[{path}]"
    assert hint in problem.message
    # A PodGang says its own, so that what stands on its pods is nobody's business.
    assert isinstance(judged(pod({**GROVES, **labels}), known=known), Allow)


@pytest.mark.parametrize("label", [BINDING, LEVEL])
def test_closeness_is_refused_where_it_is_switched_off(label: str) -> None:
    policy = Policy(topology=TopologyPolicy(enabled=False))
    answer = judged(pod({**PLAIN, label: "dc"}), policy, ONE_NETWORK)
    assert isinstance(answer, Refuse)
    assert [problem.path for problem in answer.problems] == [f"metadata.labels[{label}]"]
    assert "switched off" in answer.message
    assert isinstance(judged(pod(PLAIN), policy, ONE_NETWORK), Allow)


def test_the_built_in_policy_takes_the_schedulers_that_grove_manifests_name() -> None:
    assert all(
        BUILT_IN.ours(n) for n in ("", "default-scheduler", "kai-scheduler", "grove-scheduler")
    )
    assert not BUILT_IN.ours("volcano")


def test_more_terms_than_are_looked_at_are_refused() -> None:
    # Looking at each of these would keep other pods waiting.
    assert isinstance(judged(pod(PLAIN, affinity(*({} for _ in range(2_000))))), Refuse)
