"""Bounds that see what kinds of pods, or parts, take away from each other. Optimistic, like all.

One resource is looked at by itself, in units so large that a node has few of them: what is free is
counted in whole units, and what pods ask for too, so that both say rather too little. All that
several kinds can make of them then fits a small table: how much the best mix is worth for each
number of free units. Worth may be counted in any way that adds up; the ways tried are the units
themselves, and shares of a node with so many of them free: what fits there k times is worth 1/k of
it. Where less is there than all pods are worth, they cannot fit.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.search.board import Board
from scheduler.search.tree import Part
from scheduler.topology import Bools, Ints

_UNITS: Final = 64  # of one resource on one node, at most
_WASTE: Final = 8  # nodes that hold even the largest pod so often waste little
_WAYS: Final = 8  # to count worth that are tried, those of the most nodes first

Counts = Sequence[tuple[int, int]]
"""Kinds and how many of each."""


def times(board: Board, counts: Counts, depth: int, among: Bools | None = None) -> Ints | None:
    """How often so many pods fit each cell of a depth at most; None if nothing can be said.

    Only what is said of cells `among` those given is of use.
    """
    found: Ints | None = None
    cells = board.where.depths[depth]
    near, starts = None, cells.starts
    if among is not None and not among.all():
        # Positions of other cells are left out, which are most of them as a rule.
        near = np.flatnonzero(among[cells.at])
        sizes = (cells.stops - cells.starts)[among]
        starts = np.cumsum(sizes) - sizes
        if not starts.size:
            return None
    usable: dict[tuple[int, ...], Bools] = {}
    for at in range(board.room.resources):
        counted = _counted(board, counts, at, near, usable)
        if counted is None:
            continue
        worths = np.array(list(_worths(counted.amounts, counted.levels)), dtype=np.int64)
        there = _best(counted.amounts, worths, counted.most + 1)[:, counted.free]
        asked = worths @ np.array(counted.counts)
        room = (np.add.reduceat(there, starts, axis=1) // asked[:, None]).min(axis=0)
        found = room if found is None else np.minimum(found, room)
    if found is None or near is None or among is None:
        return found
    every = np.zeros(len(cells.starts), dtype=np.int64)
    every[among] = found
    return every


@dataclass(frozen=True, eq=False)
class _Counted:
    """What is asked for and free of one resource, in units."""

    amounts: list[int]  # by kind
    counts: list[int]
    free: Ints  # by position, of those that are near
    levels: list[int]  # how much nodes have free, what most of them have first
    most: int


def _counted(
    board: Board, counts: Counts, at: int, near: Ints | None, known: dict[tuple[int, ...], Bools]
) -> _Counted | None:
    """Count one resource at the positions near, or give None where a sum tells as much.

    Where any of some kinds may go is `known` by these, as most resources are asked for by the same.
    """
    asking = [
        (kind, amount, count)
        for kind, count in counts
        for column, amount in board.needs[kind]
        if column == at
    ]
    if len(asking) < 2:
        return None  # one kind is bounded by its own sums
    there = board.totals.values[:, at]
    if near is not None:
        there = there[near]
    kinds = tuple([kind for kind, _, _ in asking])
    usable = known.get(kinds)
    if usable is None:
        usable = known[kinds] = _usable(board, kinds, near)
    if not (usable & (there < _WASTE * max(amount for _, amount, _ in asking))).any():
        return None
    free = np.where(usable, there, 0)
    unit = math.gcd(*(amount for _, amount, _ in asking))
    unit *= -(-int(free.max()) // (unit * _UNITS))
    asking = [(kind, amount // unit, count) for kind, amount, count in asking if amount >= unit]
    if len(asking) < 2:
        return None
    free //= unit
    often = np.bincount(free)
    levels = np.argsort(-often, kind="stable")
    return _Counted(
        [amount for _, amount, _ in asking],
        [count for _, _, count in asking],
        free,
        levels[often[levels] > 0].tolist(),
        len(often) - 1,
    )


def _usable(board: Board, kinds: Sequence[int], near: Ints | None) -> Bools:
    """Tell at which positions, or which of those near, there is room for a pod of any kind."""
    first, *others = kinds
    found: Bools = board.columns[first].values > 0
    for kind in others:
        found |= board.columns[kind].values > 0
    return found if near is None else found[near]


def _worths(amounts: Sequence[int], levels: Sequence[int]) -> Iterator[list[int]]:
    """Give ways to count what a pod of each kind is worth, in whole numbers."""
    if len(set(amounts)) == 1:
        yield [1] * len(amounts)
        return
    yield list(amounts)
    seen: set[tuple[int, ...]] = set()
    for level in levels:
        fits = tuple([level // amount for amount in amounts])
        if len(seen) < _WAYS and max(fits) > 0 and fits not in seen:
            seen.add(fits)
            whole = math.lcm(*(n for n in fits if n))
            yield [whole // n if n else whole for n in fits]


def _best(amounts: Sequence[int], worths: Ints, size: int) -> Ints:
    """What the best mix is worth, in each way to count, for each number of free units."""
    best = np.zeros((len(worths), size), dtype=np.int64)
    for kind, amount in enumerate(amounts):
        some, value = amount, worths[:, kind : kind + 1]
        # One more or none, then two, then four: together as many as there may be.
        while some < size:
            more = best[:, :-some] + value
            np.maximum(best[:, some:], more, out=best[:, some:])
            some, value = 2 * some, 2 * value
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
