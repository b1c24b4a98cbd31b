"""The policy's JSON Schema is current, and has a place for every key that people are shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from api.jsons import Json, JsonObject

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/policy.schema.json").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples/policies").glob("*.yaml"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "policies", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_published_schema_is_what_the_models_say() -> None:
    done = run("schema", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_schema_is_told_with_the_way_to_mend_it(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    assert run("schema", str(file)).returncode == 0
    file.write_text(file.read_text().replace("GangPolicy", "Other"))
    done = run("schema", str(file), "--check")
    assert done.returncode == 1
    assert "is not what the models say: run `make schema`" in done.stderr


def parts(node: JsonObject) -> list[JsonObject]:
    """Follow references, and take each of several possibilities."""
    if "$ref" in node:
        return parts(SCHEMA["$defs"][str(node["$ref"]).rsplit("/", 1)[-1]])
    either = node.get("anyOf")
    return [p for one in either for p in parts(one)] if isinstance(either, list) else [node]  # type: ignore[arg-type]


def strangers(value: Json, node: JsonObject, path: str = "") -> list[str]:
    """Give the keys in a document that the schema has no place for."""
    found: list[str] = []
    if isinstance(value, list):
        inner = [one["items"] for one in parts(node) if "items" in one]
        for item in value:
            found += strangers(item, inner[0], f"{path}[]") if inner else [path]  # type: ignore[arg-type]
    if isinstance(value, dict):
        known: JsonObject = {}
        for one in parts(node):
            known |= one.get("properties", {})  # type: ignore[arg-type]
            if isinstance(one.get("additionalProperties"), dict):
                known |= dict.fromkeys(value, one["additionalProperties"])
        for key, item in value.items():
            inside = known.get(key)
            where = f"{path}.{key}"
            found += strangers(item, inside, where) if isinstance(inside, dict) else [where]
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_schema_knows_every_key_of_an_example(path: Path) -> None:
    assert strangers(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMA) == []


def test_a_key_that_there_is_not_has_no_place_in_the_schema() -> None:
    document: Json = {"queues": [{"name": "a", "nam": 1}], "rules": [{"images": {"alow": []}}]}
    assert strangers(document, SCHEMA) == [".queues[].nam", ".rules[].images.alow"]
