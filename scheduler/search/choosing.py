"""Which cells could hold a whole gang, by bounds over all cells of a depth at once, best first.

The bounds are optimistic: what they exclude cannot be, what they let pass may still fail.
"""

from typing import NamedTuple

import numpy as np

from scheduler.search.board import Board
from scheduler.search.bounding import times, together
from scheduler.search.pulling import Pull
from scheduler.search.tree import Part, Tree
from scheduler.topology import Bools, Ints


def able(board: Board, tree: Tree, depth: int, *, closely: bool = False) -> Bools:
    """Which cells of this depth pass every bound, or `closely` also those that take longer."""
    first, *others = tree.counts
    ok: Bools = board.columns[0].sums[depth] >= first
    for kind, count in enumerate(others, 1):
        ok &= board.columns[kind].sums[depth] >= count
    if len(tree.counts) > 1 and ok.any():
        _enough(board, tree, depth, ok)
    if not ok.any():
        return ok
    for part in tree.root.walk():
        if part.depth and part.depth <= depth:
            ok &= _inside(board, part, depth)
    ok = _parted(board, tree.root, 1, depth, ok, closely=False)
    if closely and ok.any():
        # All of it together takes longest, and parts that nothing can be done for are told sooner.
        ok = _parted(board, tree.root, 1, depth, ok, closely=True)
        often = times(board, tree.root.total, depth, ok) if ok.any() else None
        ok = ok if often is None else ok & (often > 0)
    return ok


def _enough(board: Board, tree: Tree, depth: int, ok: Bools) -> None:
    """Leave out cells that have not enough of each resource for all kinds together."""
    total: dict[int, int] = {}
    for kind, count in zip(tree.kinds, tree.counts, strict=True):
        for at, amount in kind.shape.need:
            if at < board.room.resources:
                total[at] = total.get(at, 0) + amount * count
    sums = board.totals.sums[depth]
    for at, amount in total.items():
        ok &= sums[:, at] >= amount


def _inside(board: Board, part: Part, depth: int) -> Bools:
    """Which cells lie in a domain of the part's depth, and in the one that it is tied to."""
    depths = board.where.depths
    ok: Bools = depths[part.depth].real
    if part.pin >= 0:
        ok = ok & (np.arange(len(ok)) == part.pin)
    for down in range(part.depth + 1, depth + 1):
        ok = ok[depths[down].parent]
    return ok


def _parted(board: Board, part: Part, count: int, depth: int, ok: Bools, *, closely: bool) -> Bools:
    """Leave out cells that have too few domains for parts within."""
    deeper: dict[int, list[tuple[Part, int, Ints]]] = {}
    for inner in part.inner:
        if not ok.any():
            return ok
        number = inner.times * count
        if inner.depth > depth:
            room = found = fitting(board, inner, number, closely=closely)
            for up in range(inner.depth - 1, depth - 1, -1):
                room = np.add.reduceat(room, board.where.depths[up].first)
            ok = ok & (room >= number)
            deeper.setdefault(inner.depth, []).append((inner, number, found))
        ok = _parted(board, inner, number, depth, ok, closely=closely)
    for siblings in deeper.values() if closely else ():
        often = together(board, siblings, depth)
        ok = ok if often is None else ok & (often > 0)
    return ok


def fitting(board: Board, part: Part, most: int, *, closely: bool) -> Ints:
    """How many such parts each cell of their depth takes at most, of so many."""
    cells = board.where.depths[part.depth]
    found: Ints = np.where(cells.real, most, 0)
    for kind, count in part.total:
        np.minimum(found, board.columns[kind].sums[part.depth] // count, out=found)
    often = times(board, part.total, part.depth, found > 0) if closely and found.any() else None
    if often is not None:
        np.minimum(found, often, out=found)
    if part.pin >= 0:
        found[: part.pin] = 0
        found[part.pin + 1 :] = 0
    return found


class Candidate(NamedTuple):
    """A cell to try, and what its pairs of pods would share at best."""

    cell: int
    promise: int


def candidates(
    board: Board, tree: Tree, pull: Pull, depth: int, ok: Bools, most: int | None = None
) -> list[Candidate]:
    """List cells of a depth that may hold the gang, best first, or so many of them.

    First counts what pairs of pods may share, then nearness to the base gang, then how few free
    domains are broken, then how little is left.
    """
    found = np.flatnonzero(ok)
    if not found.size:
        return []
    pods, where = tree.pods, board.where
    promise = np.full(len(found), pods * (pods - 1) // 2 * depth, dtype=np.int64)
    if depth < where.deepest:
        promise += _promised(board, tree, depth)[found]
    if pull.own is not None:
        promise += pods * pull.kin(depth, where)[found]
    devices = sum([n * count for n, count in zip(board.demand, tree.counts, strict=True)])
    keys = [board.totals.sums[depth][:, -3][found], _broken(board, depth, devices)[found]]
    if pull.base is not None:
        keys.append(-pull.near(depth, where)[found])
    if depth < where.deepest or pull.own is not None:
        keys.append(-promise)
    order = first(keys, most)
    return [
        Candidate(cell, best)
        for cell, best in zip(found[order].tolist(), promise[order].tolist(), strict=True)
    ]


def first(keys: list[Ints], most: int | None) -> Ints:
    """Sort by these keys, the last one counting most, and give so many; of equal ones the first."""
    among: Ints | None = None
    while most is not None and len(keys) > 1:
        # As a rule enough of them are equal by what counts most, and the others need no place.
        best = np.flatnonzero(keys[-1] == keys[-1].min())
        if best.size < most:
            break
        among = best if among is None else among[best]
        keys = [key[best] for key in keys[:-1]]
    order: Ints = np.lexsort(keys)[:most]
    return order if among is None else among[order]


def _broken(board: Board, depth: int, devices: int) -> Ints:
    """How many free domains are broken by taking so many devices of each cell, wider ones counting
    more.
    """
    where = board.where
    found = np.zeros(1, dtype=np.int64)
    for level in range(1, depth + 1):
        sums = board.totals.sums[level]
        # What has more devices than none has nodes with devices, too.
        lost = (sums[:, -1] == sums[:, -2]) & (sums[:, -3] > devices)
        found = found[where.depths[level].parent] + lost * (len(where.depths) - level)
    return found


def _promised(board: Board, tree: Tree, depth: int) -> Ints:
    """What pairs in each cell share below this depth if its cells are filled one by one."""
    where = board.where
    found = np.zeros(len(where.depths[depth].starts), dtype=np.int64)
    for level in range(depth + 1, where.deepest + 1):
        takes = np.zeros(len(where.depths[level].starts), dtype=np.int64)
        load = np.zeros(len(takes), dtype=np.int64)
        for kind, count in enumerate(tree.counts):
            some = np.minimum(board.columns[kind].sums[level], count)
            takes += some * tree.kinds[kind].size
            load += some * board.demand[kind]
        there = board.totals.sums[level][:, -3]
        # All kinds at once want the devices that each could have alone.
        takes = np.where(load > there, takes * there // np.maximum(load, 1), takes)
        above = np.arange(len(takes))
        for up in range(level, depth, -1):
            above = where.depths[up].parent[above]
        order = np.lexsort((-takes, above))
        takes, above = takes[order], above[order]
        starts = np.searchsorted(above, np.arange(len(found)))
        before = np.cumsum(takes) - takes
        before -= before[starts][above]
        got = np.clip(tree.pods - before, 0, takes)
        np.add.at(found, above, got * (got - 1) // 2)
    return found
