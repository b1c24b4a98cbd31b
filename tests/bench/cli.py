"""`make bench-cli`: how long help takes, beside Python and the libraries it is made with.

Wall time of whole processes, the least of several runs taken in turn with the floors: what others
on the machine take is in each, and least of all in the shortest.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from penstock.__main__ import (
    AUDIT_COMMANDS,
    COMMANDS,
    LAB_COMMANDS,
    POLICY_COMMANDS,
    WHAT_IF_COMMANDS,
)
from penstock.lab.folders import Cache
from penstock.lab.tools import KUBERNETES, toolset
from tests.bench.harness import Budget, Row, report

BUDGET = Budget(200)
HERE = Path(sys.executable).parent


def kubectl() -> str | None:
    """Return the kubectl of labs, if it was made."""
    (tool,) = (each for each in toolset(KUBERNETES) if each.name == "kubectl")
    found = Cache.of(os.environ).binary(tool.release, tool.name)
    return str(found) if found.exists() else None


def commands() -> Iterator[tuple[str, ...]]:
    """Give every command, by its words."""
    groups = {
        "": COMMANDS,
        "what-if": WHAT_IF_COMMANDS,
        "lab": LAB_COMMANDS,
        "policy": POLICY_COMMANDS,
        "audit": AUDIT_COMMANDS,
    }
    for group, entries in groups.items():
        for entry in entries:
            yield (group, entry.name) if group else (entry.name,)


def programs() -> dict[str, Sequence[str]]:
    python, penstock = sys.executable, str(HERE / "penstock")
    found: dict[str, Sequence[str]] = {
        "python -c pass": (python, "-c", "pass"),
        "python -c 'import typer, rich'": (python, "-c", "import typer, rich"),
        "penstock --help": (penstock, "--help"),
        **{
            f"penstock {' '.join(words)} --help": (penstock, *words, "--help")
            for words in commands()
        },
    }
    if (binary := kubectl()) is not None:
        found["kubectl version --client"] = (binary, "version", "--client")
        found["kubectl penstock --help"] = (binary, "penstock", "--help")
    return found


def measure(commands: Mapping[str, Sequence[str]], runs: int) -> dict[str, float]:
    """Give for each the least milliseconds of so many runs."""
    environment = {**os.environ, "PATH": f"{HERE}:{os.environ['PATH']}"}
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(runs):
        for name, command in commands.items():
            begun = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            best[name] = min(best[name], 1000 * (perf_counter() - begun))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    runs: int = options.runs
    took = measure(programs(), runs)
    floor = took["python -c 'import typer, rich'"]
    rows = [
        Row(name, value, "ms", floor, BUDGET) if "--help" in name else Row(name, value, "ms")
        for name, value in took.items()
    ]
    report("cli", rows, {"runs": runs})


if __name__ == "__main__":
    main()
