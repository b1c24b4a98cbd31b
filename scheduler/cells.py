"""A topology as a tree of cells. The cells of each depth share out all nodes between them.

A cell is a domain, or what stands for one where nodes have no label: each of them by itself, or
their domain of the next deeper level. Only domains satisfy a required level. Where a topology has
no level at all, each node is a cell. Positions are those of the topology, where a cell is a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.topology import Bools, Ints, Topology


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells of one depth, by their runs of positions."""

    starts: Ints
    stops: Ints
    real: Bools  # whether it is a domain
    parent: Ints  # by its index one depth up
    first: Ints  # its cells one depth down, from this one
    last: Ints  # to before this one
    at: Ints  # the cell at each position

    @cached_property
    def at_list(self) -> list[int]:
        """The cell at each position, for looking up one at a time."""
        found: list[int] = self.at.tolist()
        return found

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """The run of positions of each cell."""
        return list(zip(self.starts.tolist(), self.stops.tolist(), strict=True))

    @cached_property
    def children(self) -> list[tuple[int, int]]:
        """The run of cells one depth down of each cell."""
        return list(zip(self.first.tolist(), self.last.tolist(), strict=True))

    def sums(self, values: Ints) -> Ints:
        """Add values up by cell; their first axis is positions."""
        if not len(values):
            return np.zeros_like(values)
        found: Ints = np.add.reduceat(values, self.starts, axis=0)
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """The cells of a topology by depth: the whole cluster first, single racks or nodes last."""

    topology: Topology
    depths: tuple[Cells, ...]

    @property
    def deepest(self) -> int:
        """The depth of the smallest cells, at least 1."""
        return len(self.depths) - 1

    @cached_property
    def rows(self) -> list[int]:
        """The row at each position."""
        found: list[int] = self.topology.order.tolist()
        return found

    @cached_property
    def positions(self) -> list[int]:
        """The position of each row."""
        found: list[int] = self.topology.position.tolist()
        return found

    @cached_property
    def straight(self) -> bool:
        """Whether positions are rows."""
        return bool((self.topology.order == np.arange(len(self.topology.order))).all())

    def labelled(self, depth: int) -> Bools | None:
        """Which rows are in a domain of this depth, or None if all are."""
        cells = self.depths[depth]
        if bool(cells.real.all()):
            return None
        found: Bools = np.empty(len(self.rows), dtype=np.bool_)
        found[self.topology.order] = cells.real[cells.at]
        return found

    @cached_property
    def _paths(self) -> list[dict[int, tuple[str, ...]]]:
        """The path of each domain by its first position, for each depth."""
        return [{d.start: d.path for d in domains} for domains in self.topology.domains]

    def domain(self, depth: int, cell: int) -> tuple[str, ...]:
        """Name the domain that a cell is, or the next wider one that it lies in."""
        while depth > 0 and (
            depth >= len(self.topology.domains) or not self.depths[depth].real[cell]
        ):
            cell, depth = int(self.depths[depth].parent[cell]), depth - 1
        return self._paths[depth].get(self.depths[depth].runs[cell][0], ())


_known: WeakKeyDictionary[Topology, Layout] = WeakKeyDictionary()


def layout(topology: Topology) -> Layout:
    """Lay a topology out, once."""
    if topology not in _known:
        _known[topology] = _laid_out(topology)
    return _known[topology]


def _laid_out(topology: Topology) -> Layout:
    count = len(topology.order)
    deeper = [(i, i + 1, False) for i in range(count)]
    by_depth = [] if topology.keys else [deeper]
    for domains in reversed(topology.domains[1:]):
        runs = [(domain.start, domain.stop) for domain in domains]
        deeper = _with_gaps(runs, deeper)
        by_depth.append(deeper)
    by_depth.append([(0, count, True)])
    by_depth.reverse()
    return Layout(
        topology,
        tuple(_cells(by_depth, depth, count) for depth in range(len(by_depth))),
    )


def _with_gaps(
    runs: Sequence[tuple[int, int]], deeper: Sequence[tuple[int, int, bool]]
) -> list[tuple[int, int, bool]]:
    """Put cells of the next depth where there is no domain."""
    found = [(start, stop, True) for start, stop in runs]
    covered = np.zeros(1 + max((stop for _, stop, _ in deeper), default=0), dtype=np.bool_)
    for start, stop in runs:
        covered[start:stop] = True
    found += [(start, stop, False) for start, stop, _ in deeper if not covered[start]]
    return sorted(found)


def _cells(by_depth: Sequence[Sequence[tuple[int, int, bool]]], depth: int, count: int) -> Cells:
    here = by_depth[depth]
    starts = np.array([start for start, _, _ in here], dtype=np.int64)
    stops = np.array([stop for _, stop, _ in here], dtype=np.int64)
    real = np.array([real for _, _, real in here], dtype=np.bool_)
    at = np.repeat(np.arange(len(here), dtype=np.int64), stops - starts)
    up = np.array([start for start, _, _ in by_depth[max(depth - 1, 0)]], dtype=np.int64)
    parent = np.searchsorted(up, starts, side="right") - 1
    if depth + 1 < len(by_depth):
        down = np.array([start for start, _, _ in by_depth[depth + 1]], dtype=np.int64)
        first, last = np.searchsorted(down, starts), np.searchsorted(down, stops)
    else:
        first, last = starts, stops
    return Cells(starts, stops, real, parent, first, last, at[:count])
