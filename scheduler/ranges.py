"""The domains of one level as runs of positions, and what is said of each of them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.cells import layout
from scheduler.topology import Bools, Ints, Topology


@dataclass(frozen=True, eq=False)
class Ranges:
    """The domains of one level as runs of positions."""

    level: str
    starts: Ints
    stops: Ints
    paths: tuple[tuple[str, ...], ...] | None  # None where each node is a domain
    depth: int = 0  # of domains that are none by themselves
    real: Bools | None = None  # which cells of that depth are domains, if not all

    def of(self, sums: Sequence[Ints]) -> Ints:
        """Give what is summed up by depth and cell by domain."""
        found = sums[self.depth]
        return found if self.real is None else found[self.real]

    def within(self, run: tuple[int, int], values: Ints, domains: Ints) -> Ints:
        """Add up values, which are those of a run, by domain; these lie in the run, itself one."""
        if self.paths is None:
            each: Ints = values[:, self.starts[domains] - run[0]]
            return each
        edges = np.empty(2 * domains.size, dtype=np.int64)
        edges[::2], edges[1::2] = self.starts[domains] - run[0], self.stops[domains] - run[0]
        if edges.size and edges[-1] == values.shape[-1]:
            edges = edges[:-1]
        found: Ints = np.add.reduceat(values, edges, axis=-1)[:, ::2]
        return found

    @cached_property
    def size(self) -> int:
        """How many positions are in some domain."""
        return int((self.stops - self.starts).sum())

    def covered(self, size: int) -> Bools:
        """Tell which positions are in some domain."""
        edges = np.zeros(size + 1, dtype=np.int64)
        np.add.at(edges, self.starts, 1)
        np.add.at(edges, self.stops, -1)
        found: Bools = np.cumsum(edges[:-1]) > 0
        return found

    def run(self, domain: int) -> tuple[int, int]:
        """Give a domain's run of positions."""
        return int(self.starts[domain]), int(self.stops[domain])

    def inside(self, run: tuple[int, int]) -> Ints:
        """List the domains that lie in a run of positions; they come in the order of these."""
        first = int(self.starts.searchsorted(run[0]))
        return np.arange(first, max(first, int(self.stops.searchsorted(run[1], side="right"))))

    def holds(self, positions: Sequence[int]) -> Bools:
        """Tell which domains hold all of these."""
        found = np.ones(self.starts.size, dtype=np.bool_)
        for position in positions:
            found &= (self.starts <= position) & (position < self.stops)
        return found


@dataclass(frozen=True, eq=False)
class Judged:
    """The domains of one level, held against one part."""

    ranges: Ranges
    stops: tuple[str, ...]  # what each code says
    codes: Ints  # of each domain the first bound that stops it; -1 for none

    @property
    def enough(self) -> Bools:
        """Which domains pass every bound."""
        found: Bools = self.codes < 0
        return found

    def stop(self, domain: int) -> str:
        """Tell what stops a domain, or give ""."""
        return self.stops[self.codes[domain]] if self.codes[domain] >= 0 else ""

    def stopped(self) -> dict[str, int]:
        """Count the domains that do not, by what stops them."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.stops))
        return {stop: int(n) for stop, n in zip(self.stops, counts, strict=True) if n}


_known: WeakKeyDictionary[Topology, dict[int, Ranges]] = WeakKeyDictionary()


def ranges_of(topology: Topology, depth: int, level: str) -> Ranges:
    """Write a level's domains as arrays, once for each topology as it is found."""
    known = _known.setdefault(topology, {})
    if depth not in known:
        domains, real = topology.domains[depth], layout(topology).depths[depth].real
        known[depth] = Ranges(
            level,
            np.array([domain.start for domain in domains], dtype=np.int64),
            np.array([domain.stop for domain in domains], dtype=np.int64),
            tuple(domain.path for domain in domains),
            depth,
            None if real.all() else real,
        )
    return known[depth]
