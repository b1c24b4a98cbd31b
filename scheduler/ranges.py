"""The domains of one level as runs of positions, and what is said of each of them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.topology import Bools, Ints, Topology


@dataclass(frozen=True, eq=False)
class Ranges:
    """The domains of one level as runs of positions."""

    level: str
    starts: Ints
    stops: Ints
    paths: tuple[tuple[str, ...], ...] | None  # None where each node is a domain
    cuts: Ints  # where a domain of whatever level begins or ends, and the two ends

    @cached_property
    def _between(self) -> tuple[Ints, Ints]:
        return np.searchsorted(self.cuts, self.starts), np.searchsorted(self.cuts, self.stops)

    def sums(self, values: Ints, upto: Ints) -> Ints:
        """Add values up by domain; `upto` is their sums up to each cut."""
        if self.paths is None:
            return values
        first, last = self._between
        found: Ints = upto.take(last, axis=-1) - upto.take(first, axis=-1)
        return found

    def within(self, run: tuple[int, int], values: Ints, domains: Ints) -> Ints:
        """Add up values, which are those of a run, by domain; these lie in the run, itself one."""
        if self.paths is None:
            each: Ints = values[:, self.starts[domains] - run[0]]
            return each
        first, last = np.searchsorted(self.cuts, run).tolist()
        upto = cut(values, self.cuts[first : last + 1] - run[0])
        starts, stops = (each[domains] - first for each in self._between)
        found: Ints = upto.take(stops, axis=-1) - upto.take(starts, axis=-1)
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
_cuts: WeakKeyDictionary[Topology, Ints] = WeakKeyDictionary()


def only(values: Ints, where: Bools) -> Ints:
    """Give rows of values with nothing where they do not count; the same where all do."""
    if where.all():
        return values
    found = values.copy()
    np.copyto(found, 0, where=~where)
    return found


def prefix(values: Ints) -> Ints:
    """Sum over all positions before each, and over all."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=np.int64)
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total


def cut(values: Ints, cuts: Ints) -> Ints:
    """Sum rows of values up to each cut."""
    return prefix(np.add.reduceat(values, cuts[:-1], axis=-1))


def cuts_of(topology: Topology) -> Ints:
    """List where domains begin and end, once for each topology as it is found."""
    if topology not in _cuts:
        ends = {
            at for level in topology.domains for each in level for at in (each.start, each.stop)
        }
        _cuts[topology] = np.array(sorted({0, len(topology.order), *ends}), dtype=np.int64)
    return _cuts[topology]


def ranges_of(topology: Topology, depth: int, level: str) -> Ranges:
    """Write a level's domains as arrays, once for each topology as it is found."""
    known = _known.setdefault(topology, {})
    if depth not in known:
        domains = topology.domains[depth]
        known[depth] = Ranges(
            level,
            np.array([domain.start for domain in domains], dtype=np.int64),
            np.array([domain.stop for domain in domains], dtype=np.int64),
            tuple(domain.path for domain in domains),
            cuts_of(topology),
        )
    return known[depth]
