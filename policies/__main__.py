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
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema() -> JsonObject:
    """Describe the policy file in JSON Schema."""
    body: JsonObject = Policy.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "$id": f"https://{API_VERSION}/schema.json", **body}


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
    wanted = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    if not options.check:
        options.file.write_text(wanted, encoding="utf-8")
        return exits.OK
    if options.file.is_file() and options.file.read_text(encoding="utf-8") == wanted:
        return exits.OK
    sys.stderr.write(f"{options.file} is not what the models say: run `make schema`\n")
    return exits.UNEXPECTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
