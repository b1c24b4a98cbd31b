"""The chart's values: each is described, checked, and told in the documents."""

import json
from typing import Final

from api.jsons import Json, JsonObject
from tests.repo import checkout, prose
from tests.support import values_table
from tests.support.charts import CHART

INSTALL: Final = checkout.ROOT / "docs" / "install.md"
# What people name themselves: labels of theirs and the like, and what another program reads.
FREE: Final = {"global"}


def test_the_table_of_values_is_current() -> None:
    section = prose.section(prose.read(INSTALL), "## Values")
    table = [line for line in section.splitlines() if line.startswith("| `")]
    assert table == values_table.rows(), "python -m tests.support.values_table writes it"


def test_every_value_is_described() -> None:
    bare = [row for row in values_table.rows() if row.endswith("|  |")]
    assert bare == []


def test_no_object_takes_keys_that_nobody_knows() -> None:
    schema: JsonObject = json.loads((CHART / "values.schema.json").read_text())
    assert open_objects(schema, "") == FREE


def open_objects(schema: Json, path: str) -> set[str]:
    """Name the objects of a schema that would take a misspelt key in silence."""
    if not isinstance(schema, dict):
        return set()
    found: set[str] = set()
    if schema.get("type") == "object" and schema.get("additionalProperties", True) is True:
        found.add(path)
    parts = schema.get("properties")
    for key, part in parts.items() if isinstance(parts, dict) else ():
        found |= open_objects(part, f"{path}.{key}".removeprefix("."))
    return found | open_objects(schema.get("items"), f"{path}[]")


def test_an_object_that_takes_anything_is_found() -> None:
    inner: JsonObject = {"type": "object", "properties": {"b": {"type": "object"}}}
    whole: JsonObject = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "array", "items": inner}},
    }
    assert open_objects(whole, "") == {"a[]", "a[].b"}
