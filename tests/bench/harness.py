"""What every benchmark prints and writes: a table for people and one JSON object for tools.

A time means little on a machine others use too. So each row may carry a floor, measured in the same
run by something that does the least there is to do, and is judged by the ratio to it.
"""

import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

from api.jsons import JsonObject

OUTPUT = Path("build/bench")
COLUMNS = ("what", "value", "floor", "ratio", "budget", "within")


@dataclass(frozen=True)
class Budget:
    """The most a figure may be, or the least: by itself, or as a ratio to its floor."""

    limit: float
    of_ratio: bool = False
    least: bool = False

    def text(self, unit: str) -> str:
        sign = "≥" if self.least else "≤"
        return (
            f"{sign} {self.limit:g} × floor" if self.of_ratio else f"{sign} {self.limit:g} {unit}"
        )

    def allows(self, figure: float) -> bool:
        return figure >= self.limit if self.least else figure <= self.limit


@dataclass(frozen=True)
class Row:
    """One figure, what it is compared with, and whether it is within its budget."""

    what: str
    value: float
    unit: str
    floor: float | None = None
    budget: Budget | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def within(self) -> bool | None:
        """None where there is nothing to judge by: no budget, or a ratio without a floor."""
        if self.budget is None:
            return None
        figure = self.ratio if self.budget.of_ratio else self.value
        return None if figure is None else self.budget.allows(figure)

    def as_json(self) -> JsonObject:
        return {
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "floor": self.floor,
            "ratio": self.ratio,
            "budget": self.budget.text(self.unit) if self.budget else None,
            "within": self.within,
        }


@dataclass(frozen=True)
class Appendix:
    """What a report says beside its rows: members of the JSON object, and Markdown."""

    members: JsonObject
    text: str


def report(
    name: str,
    rows: Sequence[Row],
    settings: JsonObject,
    directory: Path = OUTPUT,
    appendix: Appendix | None = None,
) -> Path:
    """Print the table and write it as JSON and Markdown; a missed budget is shown, not raised."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    content = {
        "rows": [row.as_json() for row in rows],
        "machine": machine(),
        "versions": versions(),
        "settings": settings,
        **(appendix.members if appendix else {}),
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    text = f"\n{appendix.text}" if appendix else ""
    path.with_suffix(".md").write_text(f"# {name}\n\n{markdown(rows)}{text}")
    Console(width=120).print(table(name, rows))
    return path


def _cells(row: Row) -> list[str]:
    return [
        row.what,
        f"{row.value:.4g} {row.unit}",
        "" if row.floor is None else f"{row.floor:.4g} {row.unit}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.budget is None else row.budget.text(row.unit),
        {None: "", True: "yes", False: "NO"}[row.within],
    ]


def markdown(rows: Sequence[Row]) -> str:
    """Write the table as Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows), ""])


def table(name: str, rows: Sequence[Row]) -> Table:
    made = Table(title=name, title_justify="left")
    for column in COLUMNS:
        made.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        made.add_row(*_cells(row))
    return made


@dataclass(frozen=True)
class Timing:
    """Seconds of wall time a call took, over many calls."""

    median: float
    p99: float

    @classmethod
    def of(cls, taken: Iterable[float]) -> "Timing":
        """Sum up what single calls took."""
        ordered = sorted(taken)
        return cls(
            statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        )


def timed(call: Callable[[], object], times: int, warm: int = 3) -> Timing:
    """Time a call, after some calls that do not count."""
    for _ in range(warm):
        call()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return Timing.of(taken)


def machine() -> JsonObject:
    return {
        "cores": os.cpu_count(),
        "kind": platform.machine(),
        "system": platform.system(),
        "load": os.getloadavg()[0],
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def versions() -> JsonObject:
    names = ("penstock", "numpy", "msgspec", "pydantic", "aiohttp")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}
