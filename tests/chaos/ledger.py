"""Tables of all chaos runs there ever were, by commit: what stays when build/ is gone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.chaos.results import Done, Result

_ALL: Final = "all"
FILE: Final = Path("docs/chaos-runs.md")
_HEAD: Final = """# Chaos runs

What `make chaos` came to, commit by commit; see [chaos](chaos.md). The tables are written by
`python -m tests.chaos --record`, which adds the runs of `build/chaos/runs.jsonl`. A commit with
a + had changes that were not committed. Runs that could not be made say nothing of Penstock and do
not count. From seed 1036 on they were made two to ten abreast on one lab; 9001 scaled 500 sets at
once, as 9002 and 9003 did on a machine half as fast. 9002 had two other labs at work beside it, had
not converged after 151 s and left pods gated; 9003, by itself, converged in 58 s.

The finding of seed 1185 was the checker's: an API server was killed between the two
steps of a deletion, and it did not know that the next write takes the second. What was new in
89fe5de597, ce9e247944 and 241ebc3a8b came into the history in other commits, up to 841e151.

"""
_BETWEEN: Final = """
## What came about

How often something really happened, by commit; an ambush that waited in vain does not count. Runs
of commits that are not here were made before it was counted. `leader paused` and `late write` count
only if another led by the time the process went on, `node lost` only if a pod was about to be
lifted onto it, `409` to `answer cut` single requests, `watches lost` once for each process, and
`scaled at once` sets.

"""
_COLUMNS: Final = ("commit", "day", "seeds", "runs", "clean", "not made", "converged ≤ s", "found")


@dataclass(frozen=True)
class Row:
    """The runs of one commit."""

    commit: str
    day: str
    seeds: frozenset[int] = frozenset()
    runs: int = 0
    clean: int = 0
    not_made: int = 0
    longest: float = 0.0
    found: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """Give the row as text."""
        told = ", ".join(f"{rule} {count}" for rule, count in sorted(self.found.items()))
        return [
            self.commit, self.day, _spans(self.seeds), str(self.runs), str(self.clean),
            str(self.not_made), f"{self.longest:.0f}", told,
        ]  # fmt: skip

    def counts(self) -> list[str]:
        """Give what came about as text."""
        return [self.commit, *(str(self.done.get(kind, 0)) for kind in Done)]


def rows(results: Iterable[Result]) -> list[Row]:
    """Add up runs by commit; those with a mutation are no runs of this kind."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if not result.mutation:
            found.setdefault(result.commit, []).append(result)
    return [_row(commit, those) for commit, those in found.items()]


def read(text: str) -> list[Row]:
    """Read the rows of tables that were written before; the last one of each is their sum."""
    runs, _, done = text.partition("\n## ")
    counts = {cells[0]: _counts(cells[1:]) for cells in _cells(done) if cells[0] != _ALL}
    found = [_read(cells) for cells in _cells(runs) if cells[0] != _ALL]
    return [replace(row, done=counts.get(row.commit, {})) for row in found]


def _cells(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _counts(cells: Sequence[str]) -> dict[str, int]:
    """Read how often each kind came about; what did not is left out."""
    told = zip(Done, map(int, cells), strict=True)
    return {kind: count for kind, count in told if count}


def written(before: Iterable[Row], now: Iterable[Row]) -> str:
    """Write the table; of a commit that is in both, the row with more runs stays."""
    kept = {row.commit: row for row in before}
    for row in now:
        there = kept.get(row.commit)
        if there is None or there.runs + there.not_made < row.runs + row.not_made:
            kept[row.commit] = row
    table = sorted(kept.values(), key=lambda row: (row.day, row.commit))
    whole = [*table, _sum(table)]
    runs = _table(_COLUMNS, [row.cells() for row in whole])
    done = _table((_COLUMNS[0], *Done), [row.counts() for row in whole if row.done])
    return f"{_HEAD}{runs}{_BETWEEN}{done}"


def record(results: Iterable[Result], file: Path = FILE) -> None:
    """Add runs to the file."""
    before = read(file.read_text()) if file.exists() else []
    file.write_text(written(before, rows(results)))


def _row(commit: str, those: Sequence[Result]) -> Row:
    made = [each for each in those if not each.trouble]
    found: dict[str, int] = {}
    for rule in sorted(rule for each in made for rule in {f.rule for f in each.findings}):
        found[rule] = found.get(rule, 0) + 1
    return Row(
        commit,
        max(each.begun for each in those)[:10],
        frozenset(each.seed for each in made),
        len(made),
        sum(each.clean for each in made),
        len(those) - len(made),
        max((each.figures.get("converged", 0.0) for each in made), default=0.0),
        found,
        _added(each.done for each in made),
    )


def _sum(table: Sequence[Row]) -> Row:
    return Row(
        _ALL, "", frozenset(), sum(row.runs for row in table), sum(row.clean for row in table),
        sum(row.not_made for row in table), max((row.longest for row in table), default=0.0),
        _added(row.found for row in table), _added(row.done for row in table),
    )  # fmt: skip


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up by kind; what is none at all is left out."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(+total)


def _read(cells: Sequence[str]) -> Row:
    commit, day, seeds, runs, clean, not_made, longest, found = cells
    told = dict(each.rsplit(" ", 1) for each in found.split(", ") if each)
    counts = {rule: int(count) for rule, count in told.items()}
    return Row(
        commit, day, _seeds(seeds), int(runs), int(clean), int(not_made), float(longest), counts
    )


def _spans(seeds: frozenset[int]) -> str:
    """Write seeds as runs of them: 1-3, 7."""
    spans: list[list[int]] = []
    for seed in sorted(seeds):
        if spans and spans[-1][1] == seed - 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _seeds(text: str) -> frozenset[int]:
    spans = [span.split("-") for span in text.split(", ") if span]
    return frozenset(seed for span in spans for seed in range(int(span[0]), int(span[-1]) + 1))


def _table(head: Sequence[str], rows: Iterable[list[str]]) -> str:
    lines = [_line(head), "|---" * len(head) + "|", *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
