"""How costs grow with nodes and with gangs: a table, ratios to be judged, and plots.

What is asked for stays the same while the cluster grows, and fits the smallest one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from api.jsons import JsonObject
from scheduler.snapshot import Snapshot
from tests.bench import engine_clusters as clusters
from tests.bench import engine_stock as stock
from tests.bench import plot
from tests.bench.engine_clock import Clock, per_doubling, said
from tests.bench.engine_deciding import Measure, batches, decide, hard, measures
from tests.bench.harness import Budget, Row

FULL: Final = 0.6
SHAPES: Final = 0.9  # as small as pods are asked for where little is free
GANGS: Final = 250
DOUBLING: Final = Budget(2.3)


@dataclass(frozen=True)
class Growth:
    """What things cost, by size of what is counted: nodes or gangs."""

    counted: str
    costs: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, what: str, size: int, cost: float) -> None:
        self.costs.setdefault(what, {})[size] = cost

    def rows(self) -> list[Row]:
        """By how much each grows from size to size, where the size doubles."""
        return [
            Row(f"growth of {what}, {small} to {large} {self.counted}", ratio, "×", budget=DOUBLING)
            for what, costs in self.costs.items()
            for small, large, ratio in per_doubling(costs.items())
        ]

    def markdown(self) -> str:
        """What was measured, one row a measure and one column a size."""
        sizes = sorted({size for costs in self.costs.values() for size in costs})
        head = [self.counted, *(f"{size:,}" for size in sizes)]
        lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * len(sizes) + "|"]
        for what, costs in self.costs.items():
            cells = [f"{costs[size]:.4g}" if size in costs else "" for size in sizes]
            lines.append(f"| {' | '.join([what, *cells])} |")
        return "\n".join([*lines, ""])

    def as_json(self) -> JsonObject:
        return {
            what: {str(size): cost for size, cost in costs.items()}
            for what, costs in self.costs.items()
        }

    def draw(self, path: Path) -> None:
        lines = {what: sorted(costs.items()) for what, costs in self.costs.items()}
        path.write_text(plot.svg(f"Cost by {self.counted}", self.counted, "ms, MiB, µs", lines))


def by_nodes(sizes: Sequence[int], gangs: int, clock: Clock, times: int) -> Growth:
    """Measure everything on clusters of these sizes."""
    growth = Growth("nodes")
    for size in sizes:
        said(f"growth: {size} nodes")
        taken = clusters.taken(size, FULL)
        for measure in measures(size, SHAPES, times, gangs):
            _add(growth, taken, measure, size, clock)
        for special, measure in hard(size, FULL, times):
            _add(growth, special, measure, size, clock)
        for what, cost in stock.costs(size, FULL, clock, max(3, times // 4)).items():
            growth.add(what, size, cost)
    return growth


def by_gangs(nodes: int, sizes: Sequence[int], clock: Clock, times: int) -> Growth:
    """Measure batches of so many gangs."""
    growth = Growth("gangs")
    taken = clusters.taken(nodes, FULL)
    for size in sizes:
        said(f"growth: {size} gangs")
        measure = Measure("a batch of gangs of 9 pods", partial(batches, times, size, SHAPES))
        _add(growth, taken, measure, size, clock)
    return growth


def _add(growth: Growth, taken: Snapshot, measure: Measure, size: int, clock: Clock) -> None:
    decided = decide(taken, measure.asked(), clock)
    growth.add(f"{measure.what}, ms", size, decided.ours.timing.median * 1e3)
