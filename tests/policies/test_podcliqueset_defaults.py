import copy
import json
from typing import Final, cast

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from policies.podcliqueset_defaults import defaulted, holding
from tests.policies.chaos import JSONS, broken_sets, sets
from tests.policies.drafts import POD, clique, draft, edited, group

SERVICE: Final[JsonObject] = {"publishNotReadyAddresses": True}


def at(raw: Json, path: str) -> Json:
    for step in path.split("/"):
        raw = raw[int(step)] if isinstance(raw, list) else raw.get(step)  # type: ignore[union-attr]
    return raw


def filled(raw: JsonObject) -> JsonObject:
    """What the API server makes of the patch, which is also what the rules are held against."""
    before = copy.deepcopy(raw)
    done = defaulted(raw)
    # No copy: parts that are shared in it would be patched together.
    received = json.loads(json.dumps(raw))
    patched = cast("JsonObject", jsonpatch.apply_patch(received, list(done.patch)))
    assert patched == done.object
    assert raw == before
    assert defaulted(patched).patch == ()
    return patched


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/replicas", 0),
        ("spec/updateStrategy", None),
        ("spec/template/cliqueStartupType", "CliqueStartupTypeAnyOrder"),
        ("spec/template/terminationDelay", "4h"),
        ("spec/template/headlessServiceConfig", SERVICE),
        ("spec/template/cliques/0/spec/roleName", "a"),
        ("spec/template/cliques/0/spec/replicas", 1),
        ("spec/template/cliques/0/spec/minAvailable", 1),
        ("spec/template/cliques/0/spec/podSpec/restartPolicy", "Always"),
        ("spec/template/cliques/0/spec/podSpec/terminationGracePeriodSeconds", 30),
        ("spec/template/podCliqueScalingGroups/0/replicas", 1),
        ("spec/template/podCliqueScalingGroups/0/minAvailable", 1),
    ],
)
def test_what_is_left_out_is_filled_in(path: str, value: Json) -> None:
    raw: JsonObject = {
        "metadata": {"name": "llm"},
        "spec": {
            "template": {
                "cliques": [{"name": "a", "spec": {"podSpec": POD}}],
                "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["a"]}],
            }
        },
    }
    assert at(filled(raw), path) == value
    assert filled(raw)["metadata"] == {"name": "llm"}


@pytest.mark.parametrize("nothing", [None, 0])
def test_the_minimum_follows_the_replicas_as_filled_in(nothing: int | None) -> None:
    scaled: JsonObject = {"replicas": nothing, "autoScalingConfig": {"maxReplicas": 3}}
    spec = at(filled(draft(clique("a", counts=scaled))), "spec/template/cliques/0/spec")
    assert isinstance(spec, dict)
    assert (spec["replicas"], spec["minAvailable"]) == (1, 1)
    assert spec["autoScalingConfig"] == {"minReplicas": 1, "maxReplicas": 3}


def test_the_lowest_counts_are_the_replicas() -> None:
    counts: JsonObject = {"replicas": 4, "autoScalingConfig": {}}
    grouped = group("g", "a", counts={"replicas": 3, "scaleConfig": {"maxReplicas": 5}})
    done = filled(draft(clique("a", counts=counts), groups=(grouped,)))
    assert at(done, "spec/template/cliques/0/spec/minAvailable") == 4
    assert at(done, "spec/template/cliques/0/spec/autoScalingConfig/minReplicas") == 4
    assert at(done, "spec/template/podCliqueScalingGroups/0/minAvailable") == 1
    assert at(done, "spec/template/podCliqueScalingGroups/0/scaleConfig/minReplicas") == 3


def test_an_empty_strategy_and_service_are_filled_in_from_inside() -> None:
    raw = edited(draft(headlessServiceConfig={}), "spec/updateStrategy", {})
    assert at(filled(raw), "spec/updateStrategy") == {"type": "RollingRecreate"}
    assert at(filled(raw), "spec/template/headlessServiceConfig") == SERVICE


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/replicas", 3),
        ("spec/updateStrategy", {"type": "OnDelete"}),
        ("spec/template/cliqueStartupType", "CliqueStartupTypeInOrder"),
        ("spec/template/terminationDelay", "1m"),
        ("spec/template/headlessServiceConfig", {"publishNotReadyAddresses": False}),
        ("spec/template/cliques/0/spec/roleName", "role"),
        ("spec/template/cliques/0/spec/replicas", 7),
        ("spec/template/cliques/0/spec/minAvailable", 0),
        ("spec/template/cliques/0/spec/podSpec/restartPolicy", "Never"),
        ("spec/template/cliques/0/spec/podSpec/terminationGracePeriodSeconds", 0),
        ("spec/template/podCliqueScalingGroups/0/replicas", 0),
        ("spec/template/podCliqueScalingGroups/0/minAvailable", 0),
    ],
)
def test_what_is_written_stays(path: str, value: Json) -> None:
    raw = edited(draft(clique("a"), groups=(group("g", "a"),)), path, value)
    assert at(filled(raw), path) == value


@pytest.mark.parametrize("replicas", ["3", True, 1.5, -1, [], {}])
def test_a_count_of_another_kind_is_left_and_nothing_made_of_it(replicas: Json) -> None:
    scaling: JsonObject = {"maxReplicas": 3}
    raw = draft(clique("a", counts={"replicas": replicas, "autoScalingConfig": scaling}))
    spec = at(filled(raw), "spec/template/cliques/0/spec")
    assert isinstance(spec, dict)
    assert spec["replicas"] == replicas
    assert "minAvailable" not in spec
    assert spec["autoScalingConfig"] == scaling


@given(broken_sets())
def test_anything_anywhere_is_left_or_filled_in_but_never_raises(raw: JsonObject) -> None:
    filled(raw)


@given(sets())
def test_filling_in_a_second_time_changes_nothing(raw: JsonObject) -> None:
    filled(raw)


@given(st.dictionaries(st.text(max_size=5), JSONS, max_size=4))
def test_any_object_is_taken(raw: JsonObject) -> None:
    filled(raw)


@pytest.mark.parametrize(
    ("written", "held"),
    [
        (None, [names.SET_FINALIZER]),
        ([], [names.SET_FINALIZER]),
        (["example.com/mine"], ["example.com/mine", names.SET_FINALIZER]),
        ([names.SET_FINALIZER, "example.com/mine"], [names.SET_FINALIZER, "example.com/mine"]),
    ],
)
def test_a_new_set_is_held_by_its_finalizer_beside_those_of_others(
    written: Json, held: list[str]
) -> None:
    raw = edited(draft(clique("a")), "metadata/finalizers", written)
    patched = jsonpatch.apply_patch(raw, list(holding(raw)))
    assert at(patched, "metadata/finalizers") == held


@given(st.dictionaries(st.sampled_from(["metadata", "finalizers"]), JSONS))
def test_whatever_a_sets_metadata_are_holding_it_never_raises(metadata: JsonObject) -> None:
    whole: JsonObject = {"metadata": metadata}
    for raw in (metadata, whole):
        jsonpatch.apply_patch(copy.deepcopy(raw), list(holding(raw)))
