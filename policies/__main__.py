"""Write what is made of the policy's models: `python -m policies schema [FILE] [--check]`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from api import exits
from api.jsons import JsonObject
from policies.policy import API_VERSION, Policy

PUBLISHED: Final = Path("docs/policy.schema.json")
VALUES: Final = Path("charts/penstock/values.schema.json")
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema() -> JsonObject:
    """Describe the policy file in JSON Schema."""
    body: JsonObject = Policy.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "$id": f"https://{API_VERSION}/schema.json", **body}


def in_values(text: str) -> str:
    """Put the policy's schema into that of the chart's values, where it is the value `policy`."""
    values: JsonObject = json.loads(text)
    inner = {key: value for key, value in schema().items() if not key.startswith("$")}
    properties = values["properties"]
    if not isinstance(properties, dict):
        raise TypeError(f"{VALUES} describes no properties")
    properties["policy"] = {**inner, "description": "What is allowed, see docs/policy.md."}
    values["$defs"] = schema()["$defs"]
    if values == json.loads(text):
        return text  # however people have laid it out
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the schema, or only compare it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m policies",
        description="Write what is generated from the policy's models.",
        epilog="example: python -m policies schema --check",
    )
    commands = parser.add_subparsers(dest="what", required=True)
    published = commands.add_parser(
        "schema",
        help="the JSON Schema of the policy file",
        epilog="example: python -m policies schema docs/policy.schema.json --check",
    )
    published.add_argument("file", nargs="?", type=Path, default=PUBLISHED)
    published.add_argument("--check", action="store_true", help="fail if the file is not current")
    options = parser.parse_args(arguments)
    current = {options.file: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"}
    if VALUES.is_file():
        current[VALUES] = in_values(VALUES.read_text(encoding="utf-8"))
    for file, wanted in current.items():
        if not options.check:
            file.write_text(wanted, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != wanted:
            sys.stderr.write(f"{file} is not what the models say: run `make schema`\n")
            return exits.UNEXPECTED
    return exits.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
