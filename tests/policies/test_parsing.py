from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies import parsing
from policies.parsing import ParsedSet, Unreadable

POD: Final[JsonObject] = {"containers": [{"name": "main"}]}
SCALARS: Final = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
)
KEYS: Final = st.text(max_size=5) | st.sampled_from(
    ["metadata", "name", "spec", "template", "cliques", "podSpec", "replicas", "startsAfter"]
)
JSONS: Final = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


def manifest(spec: Json, name: Json = "llm") -> JsonObject:
    return {"metadata": {"name": name}, "spec": spec}


def with_clique(spec: JsonObject) -> JsonObject:
    return manifest({"template": {"cliques": [{"name": "a", "spec": {"podSpec": POD, **spec}}]}})


def paths(raw: JsonObject) -> list[str]:
    parsed = parsing.podcliqueset(raw)
    assert isinstance(parsed, Unreadable), parsed
    return [problem.path for problem in parsed.problems]


def test_a_good_manifest_is_read_with_its_defaults() -> None:
    parsed = parsing.podcliqueset(with_clique({}))
    assert isinstance(parsed, ParsedSet)
    assert parsed.name == "llm"
    assert parsed.spec.template.cliques[0].spec.replicas == 1


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
            manifest({"template": {"cliques": [], "cliqueStartupType": "Sideways"}}),
            "spec.template.cliqueStartupType",
            id="unknown startup type",
        ),
        pytest.param(manifest({}, name=7), "metadata.name", id="name is a number"),
        pytest.param({"metadata": "x", "spec": {}}, "metadata", id="metadata is text"),
        pytest.param(manifest({"replicas": 2**70}), "spec", id="number without bounds"),
        pytest.param(manifest({"x": "\ud800"}), "spec", id="half a character"),
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
    parsed = parsing.podcliqueset(manifest({"replicas": "3", "template": {"cliques": 0}}))
    assert isinstance(parsed, Unreadable)
    assert [str(problem) for problem in parsed.problems] == [
        "spec.replicas: should be a valid integer",
        "spec.template.cliques: should be a valid array",
    ]
    missing = parsing.podcliqueset(manifest({}))
    assert isinstance(missing, Unreadable)
    assert str(missing.problems[0]) == "spec.template: is required"


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"generateName": "llm-"}, "llm-xxxxx"),
        ({"name": "", "generateName": "llm-"}, "llm-xxxxx"),
        ({"generateName": 4}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_a_name_yet_to_be_generated_counts_with_its_tail(metadata: Json, name: str) -> None:
    parsed = parsing.podcliqueset({**with_clique({}), "metadata": metadata})
    assert isinstance(parsed, ParsedSet)
    assert parsed.name == name


def test_nesting_without_end_is_a_problem_and_no_crash() -> None:
    deep: Json = {}
    for _ in range(5_000):
        deep = {"x": deep}
    assert paths(with_clique({"podSpec": deep})) == ["spec"]
    assert paths(manifest(deep)) == ["spec"]


@given(st.dictionaries(KEYS, JSONS, max_size=4) | JSONS.map(manifest))
def test_any_object_is_read_or_refused_but_never_raises(raw: JsonObject) -> None:
    parsed = parsing.podcliqueset(raw)
    if isinstance(parsed, Unreadable):
        assert parsed.problems
        assert all(str(problem) for problem in parsed.problems)
