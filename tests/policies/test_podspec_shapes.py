from typing import Final, cast

import orjson
import pytest
from hypothesis import given

from api.jsons import Json, JsonObject
from policies import podspec_shapes
from policies.podspec_shapes import Shape
from tests.policies import drafts
from tests.policies.chaos import JSONS
from tests.policies.drafts import CLIQUES, POD, clique, draft
from tests.repo import checkout

SPEC: Final = f"{CLIQUES}[0].spec.podSpec"
SCHEMA: Final[JsonObject] = orjson.loads((checkout.ROOT / "api" / "kubernetes.json").read_bytes())

TYPES: Final = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def properties(schema: JsonObject) -> dict[str, JsonObject]:
    return cast("dict[str, JsonObject]", schema["properties"])


def schema_at(*fields: str) -> JsonObject:
    """The schema of what the lists of these names hold, one inside the other."""
    at = cast("JsonObject", SCHEMA["PodSpec"])
    for name in fields:
        at = cast("JsonObject", properties(at)[name]["items"])
    return at


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        (podspec_shapes.POD, ()),
        (podspec_shapes.CONTAINER, ("containers",)),
        (podspec_shapes.CONTAINER, ("initContainers",)),
        (podspec_shapes.VARIABLE, ("containers", "env")),
        (podspec_shapes.PORT, ("containers", "ports")),
        (podspec_shapes.MOUNT, ("containers", "volumeMounts")),
    ],
)
def test_shapes_are_what_the_api_server_publishes(shape: Shape, fields: tuple[str, ...]) -> None:
    schema = schema_at(*fields)
    assert dict(shape.fields) == {
        name: TYPES[str(each["type"])] for name, each in properties(schema).items()
    }
    required = cast("list[str]", schema.get("required") or [])
    # That a pod has containers is a rule of its own.
    assert {*shape.required} == {*required} - {"containers"}


@pytest.mark.parametrize(
    ("pod", "path", "words"),
    [
        ({"hostNetwork": "yes"}, "hostNetwork", "true or false"),
        ({"priority": "7"}, "priority", "a whole number"),
        ({"priority": 1.5}, "priority", "a whole number"),
        ({"priority": True}, "priority", "a whole number"),
        ({"serviceAccountName": 1}, "serviceAccountName", "a string"),
        ({"volumes": {}}, "volumes", "a list"),
        ({"affinity": []}, "affinity", "an object"),
        ({"containers": [{"image": "x"}]}, "containers[0].name", "is required"),
        ({"containers": [{"name": "c", "args": "x"}]}, "containers[0].args", "a list"),
        ({"containers": [{"name": "c"}, 4]}, "containers[1]", "an object"),
        ({"initContainers": [{"name": 4}]}, "initContainers[0].name", "a string"),
        (
            {"containers": [{"name": "c", "env": [{"name": "A", "value": 1}]}]},
            "containers[0].env[0].value",
            "a string",
        ),
        (
            {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
            "containers[0].ports[0].containerPort",
            "is required",
        ),
    ],
)
def test_fields_of_other_types_are_told_with_everything_else(
    pod: JsonObject, path: str, words: str
) -> None:
    raw = draft(clique("A", pod={**POD, **pod}))
    name, misfit = drafts.problems(raw)
    assert name.path == f"{CLIQUES}[0].name"
    assert misfit.path == f"{SPEC}.{path}"
    assert words in misfit.message


def test_good_fields_new_fields_and_fields_left_empty_pass() -> None:
    pod: JsonObject = {
        "containers": [{"name": "c", "ports": [{"containerPort": 80.0}], "env": None, "new": 1}],
        "volumes": None,
        "futureField": {"x": []},
    }
    assert not drafts.problems(draft(clique("a", pod=pod)))


@given(JSONS)
def test_anything_is_looked_at(value: Json) -> None:
    made: JsonObject = {"containers": [value], "initContainers": value, "nodeName": value}
    for problem in podspec_shapes.misfits("p", made, podspec_shapes.POD):
        assert str(problem)


@given(JSONS)
def test_the_quick_look_and_the_close_one_agree(value: Json) -> None:
    """On whatever stands where each field of a pod's spec, and of its containers, should."""
    for name in podspec_shapes.POD.fields:
        pod: JsonObject = {name: value}
        quick = list(podspec_shapes.pod_misfits("spec", pod))
        assert quick == list(podspec_shapes.misfits("spec", pod, podspec_shapes.POD)), pod
    for name in podspec_shapes.CONTAINER.fields:
        pod = {"containers": [{"name": "main", name: value}]}
        quick = list(podspec_shapes.pod_misfits("spec", pod))
        assert quick == list(podspec_shapes.misfits("spec", pod, podspec_shapes.POD)), pod
