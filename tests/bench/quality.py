"""`make bench-quality`: how good the engine's answers are, beside what is possible at all.

Thousands of small clusters with a gang each are drawn; an exact model says whether the gang can be
placed and how close together, and first-fit over domains sorted fullest first runs beside. What
the engine should not have done is saved under build/, to be tried again with `--replay FILE`.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import metadata
from pathlib import Path

from tests.bench import (
    quality_cases,
    quality_drawing,
    quality_engine,
    quality_tally,
    quality_trials,
    quality_wide,
)
from tests.bench.harness import OUTPUT, report
from tests.bench.quality_trials import Trial
from tests.bench.quality_wide import Wide

FAILURES = OUTPUT / "quality"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2_400)
    parser.add_argument("--wide", type=int, default=200, help="cases in clusters of 1,000 nodes")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=5.0, help="of work for the exact model")
    parser.add_argument("--replay", type=Path, nargs="+", help="cases saved by an earlier run")
    options = parser.parse_args()
    if options.replay:
        for path in options.replay:
            replay(path, options.limit)
        return
    begun = time.perf_counter()
    numbers = range(options.first, options.first + options.cases)
    trials = list(run(options.seed, numbers, options.limit, options.workers))
    saved = save(trials, FAILURES)
    wide = list(widely(options.seed, options.wide, options.workers))
    settings = {
        "seed": options.seed,
        "first": options.first,
        "cases": options.cases,
        "wide": options.wide,
        "limit": options.limit,
        "workers": options.workers,
        "seconds": round(time.perf_counter() - begun, 1),
        "ortools": metadata.version("ortools"),
        "kinds": quality_tally.by_kind(trials),
    }
    rows = [*quality_tally.rows(trials), *quality_wide.rows(wide)]
    path = report("quality", rows, settings)
    print(f"seed {options.seed}; {path}; {saved} cases in {FAILURES}")  # noqa: T201


def run(seed: int, numbers: range, limit: float, workers: int) -> Iterator[Trial]:
    """Try the cases of a seed, some at a time; the result does not depend on how many."""
    each = partial(quality_trials.tried, seed, limit=limit)
    with ProcessPoolExecutor(workers) as pool:
        for done, trial in enumerate(pool.map(each, numbers, chunksize=8), 1):
            if done % 200 == 0:
                print(f"{done} of {len(numbers)}", file=sys.stderr)  # noqa: T201
            yield trial


def widely(seed: int, count: int, workers: int) -> Iterator[Wide]:
    """Try cases in large clusters; what fails is drawn again by its number."""
    with ProcessPoolExecutor(workers) as pool:
        for wide in pool.map(partial(quality_wide.tried, seed), range(count), chunksize=4):
            if wide.problems or not wide.placed:
                print(f"wide {seed}/{wide.number}: {wide}", file=sys.stderr)  # noqa: T201
            yield wide


def save(trials: list[Trial], folder: Path) -> int:
    """Keep the cases the engine failed at, one file each, and only those of this run."""
    for old in folder.glob("*.json"):
        old.unlink()
    failed = [trial for trial in trials if trial.failures]
    for trial in failed:
        case = quality_drawing.draw(trial.seed, trial.number)
        quality_cases.save(case, folder / f"{trial.failures[0]}-{case.title}.json")
    return len(failed)


def replay(path: Path, limit: float) -> None:
    """Try a saved case again and print all that is found."""
    case = quality_cases.load(path)
    print(quality_tally.shown(case))  # noqa: T201
    print(quality_trials.judged(case, limit))  # noqa: T201
    print(quality_engine.ask(case))  # noqa: T201


if __name__ == "__main__":
    main()
