"""Kubernetes' own types in the dialect of definitions, from documents as an API server has them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from api import openapi
from api.jsons import Json, JsonObject

ROOT = Path(__file__).parents[2]
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
PORT = "io.k8s.api.core.v1.ContainerPort"
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


def reference(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


def document(properties: JsonObject, **more: Json) -> JsonObject:
    """An API server's document in which a pod has these fields, and other types none."""
    schemas: JsonObject = {name: {"type": "object"} for name in openapi.TYPES.values()}
    schemas[openapi.TYPES["PodSpec"]] = {
        "type": "object",
        "description": "a pod",
        "properties": properties,
        "required": ["kind"],
    }
    return {"components": {"schemas": schemas | more}}


TEXT: JsonObject = {"type": "string", "maxLength": openapi.LONGEST_TEXT}


def pod(properties: JsonObject, **more: Json) -> JsonObject:
    """What becomes of a pod's fields."""
    schema = openapi.extract([document(properties, **more)])["PodSpec"]
    return cast("JsonObject", schema["properties"])


def test_what_a_field_refers_to_takes_its_place_and_its_empty_default_goes() -> None:
    field: JsonObject = {"allOf": [reference("Inner")], "default": {}, "description": "in"}
    inner: JsonObject = {
        "type": "object",
        "properties": {"name": {"type": "string", "default": ""}},
    }
    assert pod({"inner": field}, Inner=inner) == {
        "inner": {"type": "object", "properties": {"name": TEXT}}
    }


def test_a_map_is_bounded_as_well() -> None:
    labels: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
    assert pod({"labels": labels})["labels"] == {
        "type": "object",
        "additionalProperties": TEXT,
        "maxProperties": openapi.MOST_ITEMS,
    }


def test_a_quantity_may_be_a_number_or_a_string_of_its_form() -> None:
    found = pod({"memory": reference(QUANTITY)})
    assert found["memory"] == {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}


QUANTITY_PATTERN = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$"
)


def ports(*keys: str, required: tuple[str, ...] = ()) -> JsonObject:
    port: JsonObject = {
        "type": "object",
        "required": list(required),
        "properties": {
            "number": {"type": "integer", "format": "int32", "default": 0},
            "protocol": {"type": "string", "default": "TCP"},
        },
    }
    field: JsonObject = {
        "type": "array",
        "items": {"allOf": [reference(PORT)], "default": {}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "x-kubernetes-patch-merge-key": keys[0],
    }
    return pod({"ports": field}, **{PORT: port})


def test_a_key_of_a_list_that_may_be_left_out_keeps_its_default() -> None:
    found = ports("number", "protocol", required=("number",))
    assert found["ports"] == {
        "type": "array",
        "maxItems": openapi.MOST_ITEMS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["number", "protocol"],
        "items": {
            "type": "object",
            "required": ["number"],
            "properties": {
                "number": {"type": "integer", "format": "int32"},
                "protocol": {**TEXT, "default": "TCP"},
            },
        },
    }


def test_a_default_that_no_key_needs_goes() -> None:
    element = cast("JsonObject", cast("JsonObject", ports("number")["ports"])["items"])
    assert cast("JsonObject", element["properties"])["protocol"] == TEXT


@pytest.mark.parametrize(
    ("name", "words"), [("policy", ["Always", "Never", ""]), ("kind", ["Always", "Never"])]
)
def test_a_word_that_may_be_left_out_may_be_empty_too(name: str, words: list[Json]) -> None:
    field: JsonObject = {"type": "string", "enum": ["Always", "Never"]}
    assert pod({name: field}) == {name: {"type": "string", "enum": words}}


def test_what_only_a_driver_knows_is_kept_as_it_is() -> None:
    anything: JsonObject = {"type": "object"}
    found = pod({"parameters": reference(RAW)}, **{RAW: anything})
    assert found["parameters"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


def test_the_metadata_of_a_template_takes_the_null_that_clients_write() -> None:
    meta: JsonObject = {
        "type": "object",
        "properties": {
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "managedFields": {"type": "array", "items": {"type": "object"}},
        },
    }
    assert pod({"metadata": reference(META)}, **{META: meta})["metadata"] == {
        "type": "object",
        "properties": {"creationTimestamp": {**TEXT, "format": "date-time", "nullable": True}},
    }


def test_a_type_that_no_document_describes_is_named_with_the_documents_to_give() -> None:
    with pytest.raises(openapi.MissingTypeError) as missing:
        openapi.extract([{"components": {"schemas": {}}}])
    assert "io.k8s.api.core.v1.PodSpec: give those of /openapi/v3/api/v1" in str(missing.value)


def run(*arguments: str, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "api", "schemas", *arguments],
        cwd=ROOT, input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_reads_documents_and_tells_a_file_that_is_not_current(tmp_path: Path) -> None:
    text, there = json.dumps(document({"kind": {"type": "string"}})), tmp_path / "types.json"
    arguments = ("--from", "-", "--to", str(there))
    assert "is not what the API server says" in run(*arguments, "--check", text=text).stderr
    assert run(*arguments, text=text).returncode == 0
    assert run(*arguments, "--check", text=text).returncode == 0
    assert json.loads(there.read_text())["PodSpec"]["required"] == ["kind"]


def test_the_command_says_which_document_is_missing() -> None:
    done = run("--from", "-", text="{}")
    assert done.returncode == 2
    assert "no document describes io.k8s.api.core.v1.PodSpec" in done.stderr
