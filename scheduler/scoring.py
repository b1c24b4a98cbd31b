"""How good a placement is: how near together its pods are, and what it breaks into."""

from collections.abc import Iterable, Mapping

from scheduler.cells import Layout
from scheduler.sums import Column


def shared(where: Layout, positions: Iterable[int]) -> int:
    """Add up, over all pairs of pods at these positions, the levels that both share."""
    at, counts = where.depths[-1].at_list, dict[int, int]()
    for position in positions:
        cell = at[position]
        counts[cell] = counts.get(cell, 0) + 1
    found = 0
    for depth in range(where.deepest, 0, -1):
        pairs = sum([count * (count - 1) // 2 for count in counts.values()])
        if len(counts) <= 1:
            return found + pairs * depth
        found += pairs
        counts = _wider(where, depth, counts)
    return found


def _wider(where: Layout, depth: int, counts: Mapping[int, int]) -> dict[int, int]:
    """Add up counts by the cells around those of this depth."""
    parent = where.depths[depth].parent
    found: dict[int, int] = {}
    for cell, count in counts.items():
        up = parent.item(cell)
        found[up] = found.get(up, 0) + count
    return found


def score(where: Layout, positions: Iterable[int]) -> float:
    """The mean over pairs of pods of their deepest shared level by the number of levels.

    Pods on one node share all levels; where the topology has none, being on one node is all that
    counts. A single pod scores 1.
    """
    pods = list(positions)
    return mean(where, len(pods), shared(where, pods))


def mean(where: Layout, pods: int, value: int) -> float:
    """The same of so many pods whose pairs share so many levels together."""
    pairs = pods * (pods - 1) // 2
    return value / (pairs * where.deepest) if pairs else 1.0


def fragmentation(where: Layout, totals: Column, used: Mapping[int, int]) -> float:
    """The share of the domains it takes devices in that it breaks, from 0 to 1.

    A domain is broken if all devices of its nodes were free, and some of them still are. What is
    used up whole is not broken, and neither is what was in use already. The share is worked out
    for each level; the widest of n levels weighs n times as much as the deepest.

    `totals` are those of the Room before, and `used` is how many devices are taken by position.
    """
    broken: list[float] = []  # by level, the deepest first
    most = 0
    at = where.depths[-1].at_list
    taken: dict[int, int] = {}
    for position, count in used.items():
        if count:
            taken[at[position]] = taken.get(at[position], 0) + count
    for depth in range(where.deepest, 0, -1):
        weight = len(where.depths) - depth
        most += weight
        sums = totals.sums[depth]
        lost = sum(
            1
            for cell, count in taken.items()
            if sums.item(cell, -3) > count and sums.item(cell, -1) == sums.item(cell, -2)
        )
        broken.append(weight * lost / len(taken) if taken else 0.0)
        taken = _wider(where, depth, taken)
    return sum(reversed(broken)) / most
