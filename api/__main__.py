"""Write the CustomResourceDefinitions: `python -m api crds [DIRECTORY] [--check]`."""

import argparse
import sys
from pathlib import Path

import yaml

from api import crds, exits
from api.kinds import KINDS, Kind

HEADER = "# Generated from the models in api/ by `make crds`. Do not edit.\n"


def main(arguments: list[str]) -> int:
    """Write or check the generated files; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m api",
        description="Write the CustomResourceDefinitions that the models describe.",
        epilog="example: python -m api crds charts/penstock/files/crds --check",
    )
    parser.add_argument("what", choices=["crds"])
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path("charts/penstock/files/crds")
    )
    parser.add_argument("--check", action="store_true", help="fail if a file is not current")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    stale = [kind.crd_name for kind in KINDS if not _settle(kind, options)]
    for name in stale:
        print(f"{name} is not what the models say: run `make crds`", file=sys.stderr)  # noqa: T201
    return exits.UNEXPECTED if stale else exits.OK


def _settle(kind: Kind, options: argparse.Namespace) -> bool:
    """Write the kind's file, or only compare it; returns whether it is current now."""
    path: Path = options.directory / crds.file_name(kind)
    body: str = yaml.safe_dump(crds.definition(kind), sort_keys=False, width=100)
    wanted = HEADER + body
    if options.check:
        return path.is_file() and path.read_text() == wanted
    path.write_text(wanted)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
