"""Write what is generated from the models and from Kubernetes' own documents.

`python -m api crds [DIRECTORY] [--check]` and `python -m api schemas --from FILE...`.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from api import crds, exits, openapi
from api.jsons import JsonObject
from api.kinds import KINDS, Kind

HEADER: Final = "# Generated from the models in api/ by `make crds`. Do not edit.\n"
# Schemas of Kubernetes' own types; beside this file, also in an installed copy.
TYPES: Final = Path(__file__).with_name("kubernetes.json")


def main(arguments: list[str]) -> int:
    """Write or check the generated files; returns the exit code."""
    options = _parser().parse_args(arguments)
    return _crds(options) if options.what == "crds" else _schemas(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m api",
        description="Write what is generated from the models and from Kubernetes' own documents.",
        epilog="example: python -m api crds charts/penstock/files/crds --check",
    )
    commands = parser.add_subparsers(dest="what", required=True)
    definitions = commands.add_parser(
        "crds",
        help="the CustomResourceDefinitions that the models describe",
        description="Write the CustomResourceDefinitions that the models describe.",
        epilog="example: python -m api crds charts/penstock/files/crds --check",
    )
    definitions.add_argument(
        "directory", nargs="?", type=Path, default=Path("charts/penstock/files/crds")
    )
    definitions.add_argument("--check", action="store_true", help="fail if a file is not current")
    definitions.add_argument(
        "--pod-spec",
        choices=["full", "opaque"],
        default="full",
        help="full: podSpec and the like are validated as the API server validates them in pods "
        "(default); opaque: any object is taken and kept, for API servers newer than these files, "
        "and what is wrong shows only when pods are made",
    )
    schemas = commands.add_parser(
        "schemas",
        help="the schemas of Kubernetes' own types, from an API server's documents",
        description="Write the schemas of Kubernetes' own types that definitions contain, from "
        f"the OpenAPI documents of an API server: {', '.join(openapi.DOCUMENTS)}. "
        "Then write the definitions anew.",
        epilog="example: kubectl get --raw /openapi/v3/api/v1 > core.json (and so on), then "
        "python -m api schemas --from core.json autoscaling.json resource.json",
    )
    schemas.add_argument(
        "--from",
        dest="documents",
        nargs="+",
        required=True,
        metavar="FILE",
        help="the documents; - reads one from standard input",
    )
    schemas.add_argument(
        "--to", type=Path, default=TYPES, help="where to write (default: %(default)s)"
    )
    schemas.add_argument("--check", action="store_true", help="fail if the file is not current")
    return parser


def _crds(options: argparse.Namespace) -> int:
    types = {} if options.pod_spec == "opaque" else json.loads(TYPES.read_text())
    options.directory.mkdir(parents=True, exist_ok=True)
    stale = [
        kind.crd_name
        for kind in KINDS
        if not _settle(
            options.directory / crds.file_name(kind), _definition(kind, types), check=options.check
        )
    ]
    for name in stale:
        _tell(f"{name} is not what the models say: run `make crds`")
    return exits.UNEXPECTED if stale else exits.OK


def _definition(kind: Kind, types: Mapping[str, JsonObject]) -> str:
    # Through JSON, since YAML would write what occurs twice as a reference to the first.
    body = json.loads(json.dumps(crds.definition(kind, types)))
    return HEADER + yaml.dump(body, Dumper=_DUMPER, sort_keys=False, width=100)


def _schemas(options: argparse.Namespace) -> int:
    try:
        types = openapi.extract([_document(name) for name in options.documents])
    except openapi.MissingTypeError as error:
        _tell(str(error))
        return exits.BAD_SETTINGS
    text = json.dumps(types, indent=1, sort_keys=True) + "\n"
    if _settle(options.to, text, check=options.check):
        return exits.OK
    _tell(f"{options.to} is not what the API server says")
    return exits.UNEXPECTED


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _document(name: str) -> JsonObject:
    text = sys.stdin.read() if name == "-" else Path(name).read_text()
    document: JsonObject = json.loads(text)
    return document


def _settle(path: Path, wanted: str, *, check: bool) -> bool:
    """Write a file, or only compare it; returns whether it is current now."""
    if check:
        return path.is_file() and path.read_text() == wanted
    path.write_text(wanted)
    return True


# The same text, from C where the library has it: definitions are long.
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
