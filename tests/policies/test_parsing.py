from collections.abc import Iterator
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from api.models import Model
from api.podcliqueset import PodCliqueSetSpec
from api.topology import ClusterTopologyBindingSpec
from policies import parsing
from policies.problems import Problem
from tests.policies.chaos import JSONS, KEYS
from tests.policies.drafts import POD


def manifest(spec: Json, name: Json = "llm") -> JsonObject:
    return {"metadata": {"name": name}, "spec": spec}


def with_clique(spec: JsonObject) -> JsonObject:
    return manifest({"template": {"cliques": [{"name": "a", "spec": {"podSpec": POD, **spec}}]}})


def told(raw: JsonObject) -> list[str]:
    return [str(problem) for problem in parsing.misfits(raw, PodCliqueSetSpec)]


def paths(raw: JsonObject) -> list[str]:
    return [problem.path for problem in parsing.misfits(raw, PodCliqueSetSpec)]


def test_a_good_manifest_fits() -> None:
    assert paths(with_clique({})) == []


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        pytest.param(manifest(None), "spec", id="no spec"),
        pytest.param(manifest([]), "spec", id="spec is a list"),
        pytest.param(manifest({}), "spec.template", id="no template"),
        pytest.param(manifest({"template": {}}), "spec.template.cliques", id="no cliques"),
        pytest.param(
            with_clique({"replicas": "3"}), "spec.template.cliques[0].spec.replicas", id="text"
        ),
        pytest.param(
            with_clique({"replicas": True}), "spec.template.cliques[0].spec.replicas", id="bool"
        ),
        pytest.param(
            with_clique({"replicas": -1}), "spec.template.cliques[0].spec.replicas", id="below zero"
        ),
        pytest.param(
            with_clique({"startsAfter": ["b", 4]}),
            "spec.template.cliques[0].spec.startsAfter[1]",
            id="number among names",
        ),
        pytest.param(
            with_clique({"podSpec": "pod"}), "spec.template.cliques[0].spec.podSpec", id="pod text"
        ),
        pytest.param(
            with_clique({"autoScalingConfig": {"maxReplicas": 1, "metrics": [{}, "x"]}}),
            "spec.template.cliques[0].spec.autoScalingConfig.metrics[1]",
            id="metric text",
        ),
        pytest.param(
            manifest({"template": {"cliques": [], "cliqueStartupType": "Sideways"}}),
            "spec.template.cliqueStartupType",
            id="unknown startup type",
        ),
        pytest.param({**with_clique({}), "metadata": {"name": 7}}, "metadata.name", id="name"),
        pytest.param({**with_clique({}), "metadata": "x"}, "metadata", id="metadata is text"),
        pytest.param(manifest({"replicas": 2**70}), "spec", id="number without bounds"),
        pytest.param(manifest({"x": "\ud800"}), "spec", id="half a character"),
        pytest.param(with_clique({"podSpec": {"x": "\ud800"}}), "spec", id="deep half a character"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(raw: JsonObject, path: str) -> None:
    assert paths(raw) == [path]


def test_every_misfit_is_named_at_once() -> None:
    clique: JsonObject = {"spec": {"replicas": "many"}}
    assert paths(manifest({"replicas": 0.5, "template": {"cliques": [clique]}})) == [
        "spec.replicas",
        "spec.template.cliques[0].name",
        "spec.template.cliques[0].spec.replicas",
        "spec.template.cliques[0].spec.podSpec",
    ]


def test_a_key_that_is_no_field_name_is_put_in_brackets() -> None:
    clique: JsonObject = {"name": "a", "labels": {"x.y/z": 1}, "spec": {"podSpec": POD}}
    assert paths(manifest({"template": {"cliques": [clique]}})) == [
        "spec.template.cliques[0].labels[x.y/z]"
    ]


def test_messages_speak_of_the_field() -> None:
    assert told(manifest({"replicas": "3", "template": {"cliques": 0}})) == [
        "spec.replicas: should be a valid integer",
        "spec.template.cliques: should be a valid array",
    ]
    assert told(manifest({})) == ["spec.template: is required"]


def test_each_kind_is_held_against_its_own_model() -> None:
    found = parsing.misfits(manifest({"levels": [{"domain": "A"}]}), ClusterTopologyBindingSpec)
    assert [problem.path for problem in found] == ["spec.levels[0].domain", "spec.levels[0].key"]


def test_misfits_come_after_what_is_most_telling_and_only_where_rules_are_silent() -> None:
    first, rest = Problem("a", "first"), Problem("b", "rest")
    misfits = [Problem("b", "misfit"), Problem("c", "misfit")]
    assert parsing.told_once([first], misfits, [rest]) == [first, misfits[1], rest]


def test_nesting_without_end_is_a_problem_and_no_crash() -> None:
    deep: Json = {}
    for _ in range(5_000):
        deep = {"x": deep}
    assert paths(with_clique({"podSpec": deep})) == ["spec"]
    assert paths(manifest(deep)) == ["spec"]


def bounds(schema: Json) -> Iterator[int]:
    """Every bound of a list or map in a schema, with a bound of none where it has none."""
    if isinstance(schema, list):
        yield from (bound for inner in schema for bound in bounds(inner))
    elif isinstance(schema, dict):
        for key, inner in schema.items():
            if key in ("maxItems", "maxProperties"):
                assert isinstance(inner, int)
                yield inner
            yield from bounds(inner)


@pytest.mark.parametrize("model", [PodCliqueSetSpec, ClusterTopologyBindingSpec])
def test_nothing_that_may_be_written_goes_unread(model: type[Model]) -> None:
    found = list(bounds(orjson.loads(orjson.dumps(model.model_json_schema()))))
    assert found
    assert max(found) < parsing.MOST_READ


def test_what_is_too_long_is_told_by_its_bound() -> None:
    labels: JsonObject = {f"k{i}": "v" for i in range(5_000)}
    clique: JsonObject = {
        "name": "a",
        "labels": labels,
        "spec": {"podSpec": POD, "startsAfter": ["b"] * 5_000},
    }
    assert told(manifest({"template": {"cliques": [clique]}})) == [
        "spec.template.cliques[0].labels: holds too much: at most 64 are taken",
        "spec.template.cliques[0].spec.startsAfter: holds too much: at most 64 are taken",
    ]


def test_what_is_opaque_to_the_models_is_what_kubernetes_has_schemas_for() -> None:
    schema = orjson.loads(orjson.dumps(PodCliqueSetSpec.model_json_schema(by_alias=True)))
    opaque: set[str] = set()
    for model in (schema, *schema["$defs"].values()):
        for name, field in cast("JsonObject", model.get("properties", {})).items():
            if "x-penstock-schema" in str(field):
                opaque.add(name)
    assert opaque == parsing.OPAQUE


@given(st.dictionaries(KEYS, JSONS, max_size=4) | JSONS.map(manifest))
def test_any_object_is_looked_at_but_never_raises(raw: JsonObject) -> None:
    for problem in parsing.misfits(raw, PodCliqueSetSpec):
        assert str(problem)
