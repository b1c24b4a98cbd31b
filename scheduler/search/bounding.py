"""Bounds that see what kinds of pods, or parts, take away from each other. Optimistic, like all.

A node has few devices, so all that several kinds can make of them fits a small table: how much the
best mix is worth for each number of free devices. Worth may be counted in any way that adds up; the
ways tried are the devices themselves, and shares of a node with so many of them free: what fits
there k times is worth 1/k of it. Where less is there than all pods are worth, they cannot fit.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from scheduler.search.board import Board
from scheduler.search.tree import Part
from scheduler.topology import Ints

_MOST_DEVICES: Final = 16  # of one resource on one node; beyond it hardly anything is wasted

Counts = Sequence[tuple[int, int]]
"""Kinds and how many of each."""


def times(board: Board, counts: Counts, depth: int) -> Ints | None:
    """How often so many pods fit each cell of a depth at most; None if nothing can be said."""
    found: Ints | None = None
    for at in board.room.devices.nonzero()[0].tolist():
        asking = [
            (kind, amount, count)
            for kind, count in counts
            for column, amount in board.needs[kind]
            if column == at
        ]
        if len({amount for _, amount, _ in asking}) < 2:
            continue  # kinds that are alike in this are bounded by their sums
        usable = np.any([board.columns[kind].values > 0 for kind, _, _ in asking], axis=0)
        free = np.where(usable, board.totals.values[:, at], 0)
        levels = np.bincount(np.minimum(free, _MOST_DEVICES + 1))
        if levels.size > _MOST_DEVICES + 1:
            continue
        amounts = [amount for _, amount, _ in asking]
        for worth in _worths(amounts, levels.nonzero()[0].tolist()):
            asked = sum(w * count for w, (_, _, count) in zip(worth, asking, strict=True))
            table = np.array(_best(amounts, worth, levels.size))
            room: Ints = board.where.depths[depth].sums(table[free]) // asked
            found = room if found is None else np.minimum(found, room)
    return found


def _worths(amounts: Sequence[int], levels: Sequence[int]) -> Iterator[list[int]]:
    """Give ways to count what a pod of each kind is worth, in whole numbers."""
    yield list(amounts)
    for level in levels:
        fits = [level // amount for amount in amounts]
        if max(fits) > 0:
            whole = math.lcm(*(n for n in fits if n))
            yield [whole // n if n else whole for n in fits]


def _best(amounts: Sequence[int], worth: Sequence[int], size: int) -> list[int]:
    """What the best mix is worth, for each number of free devices."""
    best = [0] * size
    for free in range(1, size):
        best[free] = best[free - 1]
        for amount, value in zip(amounts, worth, strict=True):
            if amount <= free:
                best[free] = max(best[free], best[free - amount] + value)
    return best


def together(board: Board, inner: Sequence[tuple[Part, int, Ints]], depth: int) -> Ints | None:
    """How often these parts of one depth all fit each wider cell, by what is free in those of
    their cells that any of them fits; None if nothing can be said.

    With each part comes how many there are of it, and how many each cell of its depth takes.
    """
    if sum(count for _, count, _ in inner) < 2:
        return None
    total: dict[int, int] = {}
    for part, count, _ in inner:
        for kind, pods in part.total:
            for at, amount in board.needs[kind]:
                if at < board.room.resources:
                    total[at] = total.get(at, 0) + amount * pods * count
    if not total:
        return None
    asked, deeper = list(total), inner[0][0].depth
    able = np.any([room > 0 for _, _, room in inner], axis=0)
    free = board.totals.sums[deeper][:, asked] * able[:, None]
    for up in range(deeper - 1, depth - 1, -1):
        free = np.add.reduceat(free, board.where.depths[up].first, axis=0)
    found: Ints = (free // np.array([total[at] for at in asked])).min(axis=1)
    return found
