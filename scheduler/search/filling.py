"""Fills a cell greedily: parts before single pods, large pods before small, few cells before many.

This finds most of what there is to find, at a cost of about one step for each node used.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import mul
from typing import TypeAlias

import numpy as np

from scheduler.search.board import Board, Counts
from scheduler.search.closing import Closely
from scheduler.search.pulling import Pull
from scheduler.search.tree import Part
from scheduler.topology import Bools, Ints

Parts: TypeAlias = list[tuple[Part, int]]
"""Parts that are still to be placed whole, and how often."""

Shaken: TypeAlias = np.random.Generator
"""Where choices are not to be the same as last time, but the same in every run."""

_HOMES = 4  # domains that a part is tried in where parts are placed one after the other
_FEW = 32  # cells that are better looked at one by one
_TRIES = 2  # cells that a part is tried in by itself before it is split


class Filler:
    """Puts parts and pods on a board, kinds in a given order."""

    def __init__(
        self,
        board: Board,
        order: Sequence[int],
        pull: Pull,
        shaken: Shaken | None = None,
        *,
        closely: Callable[[], Closely],
        exactly: bool = False,
    ) -> None:
        self._board = board
        self._order = order
        self._pull = pull
        self._shaken = shaken
        self._closer = closely
        self._exactly = exactly
        self.few = _FEW
        self._failed: set[int] = set()  # parts, in domains of their depth
        self.futile = False  # whether some part fits nowhere
        self._sizes = [kind.size for kind in board.kinds]
        self._demand = board.demand

    @cached_property
    def _closely(self) -> Closely:
        """Made only where it is asked, which seldom is."""
        return self._closer()

    @cached_property
    def _weights(self) -> Ints:
        return np.array([self._sizes, self._demand], dtype=np.int64)

    def whole(self, part: Part, depth: int, cell: int, *, split: bool = False) -> bool:
        """Put all of a part into the cell, or nothing; `split` if no single cell in it will do."""
        mark = len(self._board.put)
        counts, parts = opened(part, depth, len(self._sizes))
        if not self._lets(part, depth, cell, whole_gang=split):
            return False
        if not split and depth < self._board.where.deepest and self._one(part, depth, cell):
            return True
        self.fill(depth, cell, counts, parts)
        if not any(counts) and not parts:
            return True
        self._board.undo(mark)
        if split or part.depth != depth or self._board.budget.out:
            return False
        if self._exactly:
            return self._closely.put(part, depth, cell)
        if id(part) not in self._failed:
            self._failed.add(id(part))
            self.futile |= not self._closely.may(part).any()
        return False

    def fill(self, depth: int, cell: int, counts: Counts, parts: Parts) -> None:
        """Put as much as possible into the cell, and take that off the counts and parts."""
        if depth == self._board.where.deepest:
            self._leaf(cell, counts)
            return
        first, last = self._board.where.depths[depth].children[cell]
        left = np.ones(last - first, dtype=np.bool_)
        wanted = _needed(counts, parts)
        while any(wanted) and not self._board.budget.out and not self.futile:
            child = self._next(depth + 1, first, last, wanted, left)
            if child < 0:
                return
            left[child - first] = False
            self._enter(depth + 1, child, counts, parts)
            wanted = _needed(counts, parts)

    def piecewise(self, part: Part, depth: int, cell: int) -> bool:
        """Put all of a part into the cell, or nothing: one part within it after the other, each
        into the tightest domain that takes it, and single pods last.
        """
        mark = len(self._board.put)
        counts, parts = opened(part, depth, len(self._sizes))
        if part.depth == depth and not self._lets(part, depth, cell, whole_gang=False):
            return False
        for inner, times in self._sorted(parts):
            for _ in range(times):
                if not self._housed(inner, depth, cell):
                    self._board.undo(mark)
                    return False
        self.fill(depth, cell, counts, [])
        if any(counts):
            self._board.undo(mark)
        return not any(counts)

    def _housed(self, part: Part, depth: int, cell: int) -> bool:
        """Put a part into a domain of its own depth within the cell, or nowhere."""
        board = self._board
        first, last = cell, cell + 1
        for down in range(depth, part.depth):
            children = board.where.depths[down].children
            first, last = children[first][0], children[last - 1][1]
        able = np.ones(last - first, dtype=np.bool_)
        room = board.capacities(part.depth, first, last, able)
        for kind, count in part.total:
            able &= room[kind] >= count
        at = able.nonzero()[0]
        spare = board.totals.sums[part.depth][first:last, -3][at].astype(np.float64)
        if self._shaken is not None:
            spare *= self._shaken.random(len(at))
        for i in spare.argsort(kind="stable")[:_HOMES].tolist():
            board.budget.spent += 1
            if board.budget.out:
                return False
            if self.piecewise(part, part.depth, first + int(at[i])):
                return True
        return False

    def first(self, depth: int, cell: int, counts: Counts) -> int:
        """Give the cell one depth down that so many pieces would go to first, or -1."""
        first, last = self._board.where.depths[depth].children[cell]
        return self._next(depth + 1, first, last, counts, np.ones(last - first, dtype=np.bool_))

    def _sorted(self, parts: Parts) -> Parts:
        """Put parts that ask for more first."""
        weights = [sum(n * (1 + self._demand[k]) for k, n in part.total) for part, _ in parts]
        if self._shaken is not None:
            weights = (np.array(weights) * self._shaken.random(len(parts))).tolist()
        order = sorted(range(len(parts)), key=lambda i: -weights[i])
        return [parts[i] for i in order]

    def _enter(self, depth: int, cell: int, counts: Counts, parts: Parts) -> None:
        if len(parts) > 1:
            parts[:] = self._sorted(parts)
        for i, (part, times) in enumerate(parts):
            if part.depth == depth:
                left = times
                while left and self.whole(part, depth, cell):
                    left -= 1
                parts[i] = (part, left)
        deeper = [each for each in parts if each[0].depth > depth]
        here = [each for each in parts if each[0].depth <= depth and each[1]]
        self.fill(depth, cell, counts, deeper)
        parts[:] = [each for each in here + deeper if each[1]]

    def _one(self, part: Part, depth: int, cell: int) -> bool:
        """Try cells that could hold all of a part by themselves, the tightest first."""
        first, last = self._board.where.depths[depth].children[cell]
        wanted = [0] * len(self._sizes)
        for kind, count in part.total:
            wanted[kind] = count
        able = np.ones(last - first, dtype=np.bool_)
        room = self._board.capacities(depth + 1, first, last, able)
        able &= (room >= np.array(wanted)[:, None]).all(axis=0)
        for _ in range(_TRIES):
            if self._board.budget.out:
                return False
            child = self._next(depth + 1, first, last, wanted, able)
            if child < 0:
                return False
            able[child - first] = False
            if self._deeper(part, depth + 1, child):
                return True
        return False

    def _deeper(self, part: Part, depth: int, cell: int) -> bool:
        cells = self._board.where.depths[depth]
        for each in part.walk():
            here = each is not part and each.depth == depth
            if here and not (cells.real[cell] and each.pin in (-1, cell)):
                return False
        return self.whole(part, depth, cell)

    def _lets(self, part: Part, depth: int, cell: int, *, whole_gang: bool) -> bool:
        if part.depth == depth and (
            part.pin not in (-1, cell) or (depth and not self._board.where.depths[depth].real[cell])
        ):
            return False
        doubted = self._exactly or id(part) in self._failed
        if doubted and not whole_gang and part.depth == depth and not self._closely.may(part)[cell]:
            return False
        capacity = self._board.capacity(depth, cell)
        return all(capacity[kind] >= count for kind, count in part.total)

    def _next(self, depth: int, first: int, last: int, wanted: Counts, left: Bools) -> int:
        """Choose the cell to go on with: the tightest that may take everything, or the roomiest."""
        self._board.budget.spent += 1
        if last - first <= self.few and self._shaken is None:
            return self._next_of_few(depth, (first, last), wanted, left)
        room = self._board.capacities(depth, first, last, left)
        weighed = self._weights @ np.minimum(room, np.array(wanted)[:, None])
        fits, load = (weighed * left).astype(np.float64)
        if not fits.any():
            return -1
        free = self._board.totals.sums[depth][first:last, -3]
        over = load > free
        if over.any():
            fits[over] *= free[over] / load[over]
        total = sum(n * size for n, size in zip(wanted, self._sizes, strict=True))
        enough = fits >= total
        if self._shaken is not None:
            fits *= self._shaken.random(last - first)
            free = (free * self._shaken.random(last - first)).astype(np.int64)
        some = bool(enough.any())
        at = np.flatnonzero(enough if some else left)
        if self._pull.own is not None or not some:
            pull = self._pull.cells(depth, first, last)[at]
            wish = pull if some else fits[at] * (fits[at] + 2 * pull)
            at = at[wish == wish.max()]
        return first + int(at[free[at].argmin()])

    def _next_of_few(self, depth: int, cells: tuple[int, int], wanted: Counts, left: Bools) -> int:
        """The same where nothing is shaken: of few cells it is quicker told one by one."""
        board, (first, last) = self._board, cells
        free: list[int] = board.totals.sums[depth][first:last, -3].tolist()
        load = self._load(board.lists(depth, first, last), wanted, left)
        if not any(pods for pods, _ in load):
            return -1
        # What all kinds at once want of devices may be more than there is.
        fits = [
            pods * (has / devices) if devices > has else float(pods)
            for (pods, devices), has in zip(load, free, strict=True)
        ]
        total = sum(map(mul, wanted, self._sizes))
        at = [i for i, each in enumerate(fits) if each >= total]
        some = bool(at)
        if not some:
            at = np.flatnonzero(left).tolist()
        if self._pull.own is not None or not some:
            pull: list[int] = self._pull.cells(depth, first, last).tolist()
            wish = [pull[i] if some else fits[i] * (fits[i] + 2 * pull[i]) for i in at]
            most = max(wish)
            at = [i for i, each in zip(at, wish, strict=True) if each == most]
        return first + min(at, key=free.__getitem__)

    def _load(self, room: list[Counts], wanted: Counts, left: Bools) -> list[tuple[int, int]]:
        """How many pods of those wanted each cell left takes, each kind alone, and what devices."""
        asked = [
            (room[kind], count, self._sizes[kind], self._demand[kind])
            for kind, count in enumerate(wanted)
            if count
        ]
        found = []
        for i, open_ in enumerate(left.tolist()):
            pods = devices = 0
            if open_:
                for there, count, size, demand in asked:
                    some = min(there[i], count)
                    pods += some * size
                    devices += some * demand
            found.append((pods, devices))
        return found

    def _leaf(self, cell: int, counts: Counts) -> None:
        board = self._board
        start, stop = board.where.depths[-1].runs[cell]
        for kind in self._order:
            if counts[kind] and not board.budget.out:
                counts[kind] -= self._spread(kind, counts[kind], start, stop)

    def _spread(self, kind: int, count: int, start: int, stop: int) -> int:
        """Put pieces on positions, the tightest first; one that takes all the rest ends it."""
        board, put = self._board, 0
        some, spare = board.row(kind, start, stop)
        if self._shaken is not None:
            spare = self._shaken.permutation(len(spare)).tolist()
        alone = [(spare[i], i) for i, slots in enumerate(some) if slots >= count]
        if alone:
            board.take(start + min(alone)[1], kind, count)
            return count
        most = max(some, default=0)
        found = [(spare[i], start + i, slots) for i, slots in enumerate(some) if slots]
        found.sort()
        while found and put < count and not board.budget.out:
            rest = count - put
            at = 0
            for i, (_, _, slots) in enumerate(found) if most >= rest else ():
                if slots >= rest:
                    at = i
                    break
            _, position, slots = found.pop(at)
            board.take(position, kind, min(slots, rest))
            put += min(slots, rest)
        return put


def opened(part: Part, depth: int, kinds: int) -> tuple[Counts, Parts]:
    """What of a part is single pods at this depth, and which parts of it are still closed."""
    counts = [0] * kinds
    parts: Parts = []
    _open(part, 1, depth, counts, parts)
    return counts, parts


def _open(part: Part, times: int, depth: int, counts: Counts, parts: Parts) -> None:
    for kind, count in part.own:
        counts[kind] += count * times
    for inner in part.inner:
        if inner.depth <= depth:
            _open(inner, inner.times * times, depth, counts, parts)
        else:
            parts.append((inner, inner.times * times))


def _needed(counts: Counts, parts: Parts) -> Counts:
    found = list(counts)
    for part, times in parts:
        for kind, count in part.total:
            found[kind] += count * times
    return found
