"""What runs came to: a line of JSON each, added to those of earlier sessions, and their sum."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from rich.table import Table

from tests.chaos.audit_rules import Finding

BUILD: Final = Path("build/chaos")
RUNS: Final = "runs.jsonl"


class Done(StrEnum):
    """What can come about in a run, in the words and the order of the table of all runs."""

    KILL_GANGS = "kill gangs"
    KILL_WORKLOADS = "kill workloads"
    KILL_WEBHOOK = "kill webhook"
    API_SERVER = "restart kube-apiserver"
    ETCD = "restart etcd"
    SCHEDULER = "restart kube-scheduler"
    PAUSED = "leader paused"
    LATE = "late write"
    NODE = "node lost"
    RACK = "rack lost"
    STRANGER = "stranger"
    CONFLICT = "409"
    BUSY = "429"
    BROKEN = "500"
    CUT = "answer cut"
    WATCHES = "watches lost"
    SCALED = "scaled at once"


@dataclass(frozen=True)
class Result:
    """One run."""

    seed: int
    commit: str
    begun: str
    seconds: float
    faults: list[str]
    acts: list[str]
    findings: list[Finding]
    figures: dict[str, float]
    trouble: str = ""  # why the run itself could not be made, which says nothing of Penstock
    mutation: str = ""  # what the harness itself did that is forbidden
    kept: str = ""  # where log and state of a run with findings are
    done: dict[str, int] = field(default_factory=dict)  # what came about, by its kind

    @property
    def clean(self) -> bool:
        return not self.findings and not self.trouble


@dataclass
class Sum:
    """Several runs of one kind."""

    runs: int = 0
    clean: int = 0
    troubled: int = 0
    seconds: float = 0.0
    longest: float = 0.0  # until converged
    found: dict[str, int] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        self.runs += 1
        self.clean += result.clean
        self.troubled += bool(result.trouble)
        self.seconds += result.seconds
        self.longest = max(self.longest, result.figures.get("converged", 0.0))
        for rule in {finding.rule for finding in result.findings}:
            self.found[rule] = self.found.get(rule, 0) + 1


def append(result: Result, folder: Path = BUILD) -> None:
    """Add a run to the file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RUNS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(folder: Path = BUILD) -> list[Result]:
    """Read all runs there are."""
    path = folder / RUNS
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Result) for line in path.read_bytes().splitlines()]


def sums(results: Iterable[Result]) -> dict[str, Sum]:
    """Add up by fault, and all together under "all"; runs with a mutation are left out."""
    found: dict[str, Sum] = {}
    for result in results:
        if result.mutation:
            continue
        for kind in (*sorted(set(result.faults)), "all"):
            found.setdefault(kind, Sum()).add(result)
    return found


def table(results: Sequence[Result], title: str) -> Table:
    """Draw the sums."""
    made = Table(title=title, title_justify="left")
    for column in ("fault", "runs", "clean", "not made", "s a run", "converged ≤ s", "found"):
        made.add_column(column, justify="left" if column in ("fault", "found") else "right")
    for kind, each in sorted(sums(results).items(), key=lambda item: (item[0] == "all", item[0])):
        told = ", ".join(f"{rule} {count}" for rule, count in sorted(each.found.items()))
        made.add_row(
            kind, str(each.runs), str(each.clean), str(each.troubled or ""),
            f"{each.seconds / each.runs:.0f}", f"{each.longest:.0f}", told,
        )  # fmt: skip
    return made


def commit() -> str:
    """Name what is checked out, with a + if it was changed since."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return f"{head}{'+' if changed else ''}"
