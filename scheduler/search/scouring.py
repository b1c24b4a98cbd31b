"""Goes through all cells that bounds leave, where the most promising ones did not take a gang.

Each is filled greedily, then looked at exactly, and at last filled again and again in other orders,
a few cells at a time. Cells that are alike count as one. Where no cell is left the gang is
impossible; else it may have been overlooked, and the budget says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np

from scheduler.search.board import Board, TooMuchError
from scheduler.search.choosing import Candidate, able, candidates
from scheduler.search.closing import SMALL, Closely, Put
from scheduler.search.filling import Filler, Shaken
from scheduler.search.pulling import Pull
from scheduler.search.tree import Tree

Found = TypeVar("Found")
Judge: TypeAlias = Callable[[Put], Found | None]
"""Makes an answer of a placement, or refuses it."""

_EARLY: Final = 40  # shakes before single cells are looked at exactly
_SHAKES: Final = 600
_TOP_DOWN: Final = 4  # of so many later shakes one fills cells from the widest down
_AT_ONCE: Final = 6  # cells of a depth that are tried in one order
_LEAST: Final = 400  # steps for a cell that is looked at exactly


class Scour(Generic[Found]):
    """Looks for any place for a whole tree on an empty board."""

    def __init__(
        self, board: Board, tree: Tree, pull: Pull, judge: Judge[Found], closely: Closely
    ) -> None:
        self._board = board
        self._budget = board.budget
        self._tree = tree
        self._pull = pull
        self._judge = judge
        self._closely = closely
        self._at: dict[int, list[Candidate]] = {}
        self._excluded: set[tuple[int, int]] = set()  # depths and cells

    def run(self, order: Sequence[int], sizes: Sequence[float]) -> Found | None:
        """Find a place, as far as the budget reaches.

        `order` is that of kinds to begin with, `sizes` say how large a piece of each kind is.
        """
        with self._budget.only(self._budget.left // 2):
            found = self._filled(order, self._depths())
        if found is None:
            with self._budget.only(self._budget.left // 4):
                found = self._shaken(sizes, range(_EARLY))
        if found is None:
            with self._budget.only(self._budget.left * 3 // 4):
                found = self._solved(self._depths())
        if found is None and self._left():
            found = self._shaken(sizes, range(_EARLY, _SHAKES))
        self._budget.cut |= found is None and self._left()
        return found

    def lightly(self, order: Sequence[int]) -> Found | None:
        """Find a place in a small cell; that there is none says nothing."""
        small = [depth for depth in self._depths() if self._small(depth)]
        with self._budget.only(self._budget.left // 2):
            found = self._filled(order, small)
        return found or self._solved(small)

    def _small(self, depth: int) -> bool:
        cells = self._board.where.depths[depth]
        return int((cells.stops - cells.starts).max(initial=0)) <= SMALL

    def _candidates(self, depth: int) -> list[Candidate]:
        found = self._at.get(depth)
        if found is None:
            ok = able(self._board, self._tree, depth, closely=True)
            found = candidates(self._board, self._tree, self._pull, depth, ok)
            self._at[depth] = found
        return found

    def _depths(self) -> Iterator[int]:
        return iter(range(self._board.where.deepest, self._tree.root.depth - 1, -1))

    def _left(self) -> bool:
        """Whether there is a cell that might still take everything."""
        root = self._tree.root.depth
        return any((root, each.cell) not in self._excluded for each in self._candidates(root))

    def _filled(self, order: Sequence[int], depths: Iterable[int]) -> Found | None:
        filler = Filler(self._board, order, self._pull, closely=lambda: self._closely, exactly=True)
        failed: set[int] = set()
        for depth in depths:
            for each in self._candidates(depth):
                if self._budget.out:
                    return None
                look = self._closely.look(depth, each.cell)
                if look in failed:
                    continue
                found = self._try(filler, depth, each.cell)
                if found is not None:
                    return found
                failed.add(look)
        return None

    def _solved(self, depths: Iterable[int]) -> Found | None:
        """Look at single cells exactly."""
        runs = [cells.runs for cells in self._board.where.depths]
        todo = [
            (depth, each.cell)
            for depth in depths
            for each in self._candidates(depth)
            if runs[depth][each.cell][1] - runs[depth][each.cell][0] <= SMALL
        ]
        for i, (depth, cell) in enumerate(todo):
            steps = max(_LEAST, self._budget.left // (len(todo) - i))
            try:
                put = self._closely.answer(self._tree.root, depth, cell, steps)
            except TooMuchError:
                continue
            found = None if put is None else self._judge(put)
            if found is not None:
                return found
            if put is None:
                self._excluded.add((depth, cell))
        return None

    def _shaken(self, sizes: Sequence[float], seeds: range) -> Found | None:
        """Fill greedily again and again, each time in other orders and other cells: mostly one part
        after the other, as that finds more.
        """
        for seed in seeds:
            shaken: Shaken = np.random.default_rng(seed)
            order = np.argsort(-np.array(sizes) * shaken.random(len(sizes)), kind="stable")
            filler = Filler(
                self._board, order.tolist(), self._pull, shaken,
                closely=lambda: self._closely, exactly=seed % 2 > 0,
            )  # fmt: skip
            piecewise = seed < _EARLY or seed % _TOP_DOWN > 0
            for depth in self._depths():
                for cell in self._turn(depth, seed):
                    if self._budget.out:
                        return None
                    found = self._try(filler, depth, cell, piecewise=piecewise)
                    if found is not None:
                        return found
        return None

    def _turn(self, depth: int, seed: int) -> list[int]:
        """Give the cells whose turn it is."""
        cells = [e.cell for e in self._candidates(depth) if (depth, e.cell) not in self._excluded]
        first = seed * _AT_ONCE % max(1, len(cells))
        return (cells[first:] + cells[:first])[:_AT_ONCE]

    def _try(
        self, filler: Filler, depth: int, cell: int, *, piecewise: bool = False
    ) -> Found | None:
        root = self._tree.root
        if piecewise:
            whole = filler.piecewise(root, depth, cell)
        else:
            whole = filler.whole(root, depth, cell, split=True)
        if not whole:
            return None
        put = tuple(self._board.put)
        self._board.undo(0)
        return self._judge(put)
