"""The lifting patch pins every alternative, takes off our gate only, and can be applied once."""

from copy import deepcopy

import jsonpatch
import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from controller.gangs import pinning
from controller.gangs.views import pinned_node

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
EXPRESSION: JsonObject = {"key": "disk", "operator": "In", "values": ["ssd"]}
FIELD: JsonObject = {"key": "metadata.name", "operator": "NotIn", "values": ["bad"]}


def gated(affinity: Json, *others: str) -> JsonObject:
    gates: list[Json] = [{"name": name} for name in (*others, names.GATE)]
    spec: JsonObject = {"schedulingGates": gates, "containers": []}
    if affinity is not None:
        spec["affinity"] = affinity
    return {"metadata": {"name": "p", "uid": "u1"}, "spec": spec}


def lifted(raw: JsonObject) -> Pod:
    patch = pinning.lift(msgspec.convert(raw, Pod), "n7")
    return msgspec.convert(jsonpatch.apply_patch(deepcopy(raw), patch), Pod)


def terms(*each: Json) -> JsonObject:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(each)}}}


PREFERRED: JsonObject = {"preferredDuringSchedulingIgnoredDuringExecution": []}


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param(None, id="no affinity"),
        pytest.param({"podAffinity": {}}, id="affinity to pods only"),
        pytest.param({"nodeAffinity": PREFERRED}, id="preferences only"),
        pytest.param(terms({"matchExpressions": [EXPRESSION]}), id="an expression"),
        pytest.param(terms({"matchFields": [FIELD]}), id="a field"),
        pytest.param(
            terms({"matchExpressions": [EXPRESSION]}, {"matchFields": [FIELD]}, {}),
            id="alternatives, one of them empty",
        ),
    ],
)
def test_whatever_the_affinity_was_only_one_node_is_left(affinity: Json) -> None:
    after = lifted(gated(affinity))
    assert pinned_node(after) == "n7"
    assert after.gates == ()


def test_what_the_author_required_stays_in_front_as_the_api_server_demands() -> None:
    after = lifted(gated(terms({"matchExpressions": [EXPRESSION], "matchFields": [FIELD]})))
    assert after.spec.affinity is not None
    assert after.spec.affinity.node_affinity is not None
    assert after.spec.affinity.node_affinity.required is not None
    (term,) = after.spec.affinity.node_affinity.required.node_selector_terms
    assert [e.key for e in term.match_expressions] == ["disk"]
    assert [(e.operator, e.values) for e in term.match_fields] == [
        ("NotIn", ("bad",)), ("In", ("n7",)),
    ]  # fmt: skip


def test_gates_of_others_stay() -> None:
    assert lifted(gated(None, "quota.example/hold")).gates == ("quota.example/hold",)


def test_the_patch_fails_on_another_pod_and_on_a_lifted_one() -> None:
    raw = gated(None, "quota.example/hold")
    patch = pinning.lift(msgspec.convert(raw, Pod), "n7")
    namesake = deepcopy(raw)
    namesake["metadata"] = {"name": "p", "uid": "u2"}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(namesake, patch)
    once = jsonpatch.apply_patch(deepcopy(raw), patch)
    with pytest.raises((jsonpatch.JsonPatchTestFailed, jsonpatch.JsonPatchConflict)):
        jsonpatch.apply_patch(once, patch)
