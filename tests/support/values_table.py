"""The chart's values as a table for people: `python -m tests.support.values_table`."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import yaml

from api.jsons import Json, JsonObject
from tests.support.charts import CHART

# What is told as a whole, and not part by part.
WHOLE: Final = ("resources", "timeoutSeconds", "policy")


def rows() -> list[str]:
    """Give one row a value: its key, its default, what it is for."""
    values: JsonObject = yaml.safe_load((CHART / "values.yaml").read_text())
    schema: JsonObject = json.loads((CHART / "values.schema.json").read_text())
    return [*_rows(values, schema, "")]


def _rows(values: Mapping[str, Json], schema: Json, prefix: str) -> Iterator[str]:
    for key, value in values.items():
        path, about = f"{prefix}{key}", _at(schema, "properties", key)
        if isinstance(value, dict) and key not in WHOLE and "properties" in about:
            yield from _rows(value, about, f"{path}.")
        else:
            yield f"| `{path}` | `{_shown(value)}` | {about.get('description', '')} |"


def _shown(value: Json) -> str:
    return '""' if value == "" else yaml.safe_dump(value, default_flow_style=True, width=1000,
        sort_keys=False).removesuffix("...\n").strip()  # fmt: skip


def _at(schema: Json, *path: str) -> JsonObject:
    for step in path:
        schema = schema.get(step, {}) if isinstance(schema, dict) else {}
    return schema if isinstance(schema, dict) else {}


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
