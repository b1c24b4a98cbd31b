import copy
from typing import Final, cast

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from policies import gating
from policies.problems import Problem

OURS: Final[JsonObject] = {"name": names.GATE}


def pod(
    gates: Json = None, label: str = names.GANG_LABEL, spec: JsonObject | None = None
) -> JsonObject:
    made: JsonObject = {"containers": [{"name": "main"}], **(spec or {})}
    if gates is not None:
        made["schedulingGates"] = gates
    return {"metadata": {"name": "p", "labels": {label: "llm-0"}}, "spec": made}


def after(before: JsonObject) -> JsonObject:
    """What the API server makes of the answer."""
    patch = gating.gate_pod(before)
    assert isinstance(patch, list), patch
    return cast("JsonObject", jsonpatch.apply_patch(copy.deepcopy(before), patch))


def gates_of(of: JsonObject) -> Json:
    spec = of["spec"]
    assert isinstance(spec, dict)
    return spec.get("schedulingGates")


@pytest.mark.parametrize("label", [names.GANG_LABEL, names.PODGANG_LABEL])
@pytest.mark.parametrize(
    ("gates", "then"),
    [
        pytest.param(None, [OURS], id="no list"),
        pytest.param([], [OURS], id="empty list"),
        pytest.param([{"name": "quota"}], [{"name": "quota"}, OURS], id="after a foreign gate"),
        pytest.param([OURS, {"name": "quota"}], [OURS, {"name": "quota"}], id="ours is there"),
    ],
)
def test_a_gang_pod_gets_the_gate_after_those_it_has(label: str, gates: Json, then: Json) -> None:
    assert gates_of(after(pod(gates, label))) == then


def test_a_null_list_counts_as_none() -> None:
    before = pod(spec={"schedulingGates": None})
    assert gates_of(after(before)) == [OURS]


def test_an_empty_gang_label_is_a_claim_too() -> None:
    before = pod()
    before["metadata"] = {"labels": {names.GANG_LABEL: ""}}
    assert gates_of(after(before)) == [OURS]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"metadata": {"labels": {"app": "x"}}, "spec": {}}, id="another label"),
        pytest.param({"metadata": {}, "spec": {}}, id="no labels"),
        pytest.param({"spec": {"nodeName": "n1"}}, id="no metadata"),
        pytest.param({"metadata": {"labels": ["x"]}, "spec": {}}, id="labels of no sense"),
        pytest.param({}, id="nothing"),
    ],
)
def test_pods_of_no_gang_are_left_alone(other: JsonObject) -> None:
    assert gating.gate_pod(other) == []


def test_a_mirror_of_a_static_pod_is_left_alone() -> None:
    mirror = pod(spec={"nodeName": "n1"})
    mirror["metadata"] = {
        "labels": {names.GANG_LABEL: "g"},
        "annotations": {"kubernetes.io/config.mirror": "abc"},
    }
    assert gating.gate_pod(mirror) == []


def test_a_gang_pod_on_a_node_is_refused_with_the_way_out() -> None:
    problem = gating.gate_pod(pod(spec={"nodeName": "n1"}))
    assert isinstance(problem, Problem)
    assert problem.path == "spec.nodeName"
    assert "leave nodeName out" in problem.message


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({"metadata": {"labels": {names.GANG_LABEL: "g"}}}, "spec"),
        ({"metadata": {"labels": {names.GANG_LABEL: "g"}}, "spec": "x"}, "spec"),
        (pod("gates"), "spec.schedulingGates"),
    ],
)
def test_a_gang_pod_that_is_no_pod_is_a_problem(broken: JsonObject, path: str) -> None:
    problem = gating.gate_pod(broken)
    assert isinstance(problem, Problem)
    assert problem.path == path


GATES: Final = st.none() | st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["a", "b", names.GATE, "penstock.dev/gang2"])}),
    max_size=5,
)


@given(GATES)
def test_gating_adds_ours_once_and_takes_nothing_away(gates: Json) -> None:
    before = pod(gates)
    once = after(before)
    assert gating.gate_pod(once) == []
    kept, now = gates_of(before) or [], gates_of(once)
    assert isinstance(kept, list)
    assert isinstance(now, list)
    assert OURS in now
    assert now[: len(kept)] == kept
    assert len(now) == len(kept) + (OURS not in kept)
    # Nothing but the gates has changed.
    assert {**cast("JsonObject", once["spec"]), "schedulingGates": None} == {
        **cast("JsonObject", before["spec"]),
        "schedulingGates": None,
    }
    assert once["metadata"] == before["metadata"]
