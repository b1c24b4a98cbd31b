"""`make bench-engine`: how long the engine takes to decide, beside the least anybody could do.

The floor gives each pod the first node with room: no levels, no filters but that one, no
explanation and no check of the result. All of it runs on one core. A first call on a snapshot pays
for what the snapshot remembers; it has a row of its own and does not count in those below it.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from api.jsons import JsonObject
from tests.bench import engine_clusters as clusters
from tests.bench import engine_deciding as deciding
from tests.bench import engine_gangs as asking
from tests.bench import engine_growth as growing
from tests.bench import engine_stock as stock
from tests.bench.engine_clock import CLOCKS, Clock, collected, pinned, said
from tests.bench.harness import OUTPUT, Appendix, Row, report


@dataclass(frozen=True)
class Size:
    """How much of it is run."""

    nodes: int
    fulls: Sequence[float]
    times: int
    gangs: int
    grown_nodes: Sequence[int]
    grown_gangs: Sequence[int]


WHOLE = Size(
    10_000, (0.3, 0.6, 0.8, 0.95), 120, 1000,
    (1000, 2000, 5000, 10_000, 20_000), (250, 500, 1000, 2000),
)  # fmt: skip
QUICK = Size(200, (0.4,), 3, 10, (100, 200), (5, 10))


def decisions(size: Size, full: float, clock: Clock) -> list[Row]:
    """Rows of one cluster, so far full."""
    rows = []
    where = f"{full:.0%} of {size.nodes} nodes full"
    taken = clusters.taken(size.nodes, full)
    cases = [
        (taken, measure) for measure in deciding.measures(size.nodes, full, size.times, size.gangs)
    ]
    for there, measure in [*cases, *deciding.hard(size.nodes, full, size.times)]:
        said(f"{where}: {measure.what}")
        decided = deciding.decide(there, measure.asked(), clock)
        rows += deciding.rows(f"{where}: {measure.what}", decided, measure.budget)
    if full == size.fulls[-1]:
        there, measure = deciding.long(size.nodes, size.times)
        rows += deciding.rows(
            f"{size.nodes} nodes: {measure.what}",
            deciding.decide(there, measure.asked(), clock),
            None,
        )
    said(f"{where}: after an event")
    asked = deciding.single(asking.nested_gangs(size.times))
    decided = deciding.decide_after(stock.after_events(size.nodes, full), asked, clock)
    return rows + deciding.rows(
        f"{where}: {deciding.NESTED}, after an event", decided, deciding.ONE_GANG
    )


def main(arguments: Sequence[str] | None = None, directory: Path = OUTPUT) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu where others work too")
    parser.add_argument("--times", type=int, help="decisions of each kind on each cluster")
    parser.add_argument("--no-growth", action="store_true")
    options = parser.parse_args(arguments)
    clock, size = CLOCKS[options.clock], QUICK if options.quick else WHOLE
    if options.times:
        size = replace(size, times=options.times)
    with pinned() as core, collected():
        rows = [row for full in size.fulls for row in decisions(size, full, clock)]
        said("snapshot and memory")
        rows += stock.rows(size.nodes, size.fulls[-1], clock, max(3, size.times // 12))
        grown = [] if options.no_growth else grow(size, clock)
    rows += [row for growth in grown for row in growth.rows()]
    settings: JsonObject = {
        "nodes": size.nodes, "full": [*size.fulls], "times": size.times, "clock": options.clock,
        "core": core, "quick": options.quick,
    }  # fmt: skip
    report("engine", rows, settings, directory, appendix(grown, directory))


def grow(size: Size, clock: Clock) -> list[growing.Growth]:
    few = max(3, size.times // 6)
    return [
        growing.by_nodes(size.grown_nodes, size.gangs // 4, clock, few),
        growing.by_gangs(size.nodes, size.grown_gangs, clock, few // 2),
    ]


def appendix(grown: Sequence[growing.Growth], directory: Path) -> Appendix:
    """Tables of growth, and a plot of each beside them."""
    directory.mkdir(parents=True, exist_ok=True)
    text = []
    for growth in grown:
        name = f"engine-{growth.counted}.svg"
        growth.draw(directory / name)
        text.append(f"## Growth with {growth.counted}\n\n{growth.markdown()}\n![{name}]({name})\n")
    members: JsonObject = {"growth": {growth.counted: growth.as_json() for growth in grown}}
    return Appendix(members, "\n".join(text))


if __name__ == "__main__":
    main()
