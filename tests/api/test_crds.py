"""The generated definitions are current and in the dialect the API server takes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import crds
from api.jsons import Json, JsonObject
from api.kinds import KINDS, Kind

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_checked_in_definitions_are_what_the_models_say() -> None:
    done = run("crds", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_definition_is_named_with_the_way_to_mend_it(tmp_path: Path) -> None:
    assert run("crds", str(tmp_path)).returncode == 0
    (tmp_path / "grove.io_podcliquesets.yaml").write_text("old")
    done = run("crds", str(tmp_path), "--check")
    assert done.returncode == 1
    assert "podcliquesets.grove.io is not what the models say: run `make crds`" in done.stderr
    assert (tmp_path / "grove.io_podcliquesets.yaml").read_text() == "old"


def nodes_of(schema: Json) -> Iterator[JsonObject]:
    if isinstance(schema, dict):
        yield schema
        properties = schema.get("properties")
        children = list(properties.values()) if isinstance(properties, dict) else []
        for child in [*children, schema.get("items"), schema.get("additionalProperties")]:
            yield from nodes_of(child)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_schema_is_structural_and_bounded(kind: Kind) -> None:
    for model in (kind.spec, kind.status):
        for node in nodes_of(crds.structural(model)):
            assert "type" in node, node
            assert not {"$ref", "anyOf", "allOf", "title", "const"} & node.keys(), node
            if node["type"] == "array":
                assert "maxItems" in node, node
            if node["type"] == "string":
                assert {"maxLength", "enum"} & node.keys(), node
            if "additionalProperties" in node:
                assert "maxProperties" in node, node


def test_replicas_of_a_set_can_be_scaled() -> None:
    (kind,) = [kind for kind in KINDS if kind.kind == "PodCliqueSet"]
    spec = crds.definition(kind)["spec"]
    assert isinstance(spec, dict)
    assert isinstance(spec["versions"], list)
    version = spec["versions"][0]
    assert isinstance(version, dict)
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    }
