"""Parts of a gang looked at by themselves: where one could lie at all, and exactly how it fits."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from scheduler.search.board import Board, TooMuchError
from scheduler.search.choosing import fitting
from scheduler.search.exact import Exact
from scheduler.search.likeness import Likeness
from scheduler.search.pulling import Pull
from scheduler.search.tree import Part
from scheduler.topology import Bools

SMALL: Final = 300  # rows that are looked at exactly
_STEPS: Final = 400  # for one cell

Put: TypeAlias = Sequence[tuple[int, int, int]]
"""Position, kind and how many pieces."""


class Closely:
    """Answers for single cells; what failed in one does not get tried where all is alike."""

    def __init__(self, board: Board, pull: Pull, likeness: Likeness | None) -> None:
        self._board = board
        self._pull = pull
        self._likeness = likeness
        self._exact: dict[int, Exact] = {}
        self._failed: set[tuple[int, int]] = set()  # parts, and what cells look like
        self._may: dict[int, Bools] = {}

    def may(self, part: Part) -> Bools:
        """Which cells of its own depth might take a part if nothing had been put there yet."""
        found = self._may.get(id(part))
        if found is None:
            found = np.asarray(fitting(self._board, part, 1, closely=True) > 0)
            self._may[id(part)] = found
        return found

    def look(self, depth: int, cell: int) -> int:
        """Number what an untouched cell looks like; a number of its own where that says little."""
        return -1 - cell if self._likeness is None else self._likeness.look(depth, cell)

    def answer(self, part: Part, depth: int, cell: int, steps: int = _STEPS) -> Put | None:
        """Say how the cell takes all of the part, or that it cannot.

        TooMuchError if so many steps do not tell.
        """
        start, stop = self._board.where.depths[depth].runs[cell]
        if stop - start > SMALL:
            raise TooMuchError
        key = self._key(part, depth, cell)
        if key in self._failed:
            return None
        exact = self._exact.setdefault(id(part), Exact(self._board, part, self._pull))
        try:
            with self._board.budget.only(steps):
                found = exact.put(depth, cell) if exact.worth(depth, cell) is not None else None
        finally:
            exact.forget()
        if found is None and key is not None:
            self._failed.add(key)
        return found

    def put(self, part: Part, depth: int, cell: int) -> bool:
        """Put all of the part into the cell, or nothing."""
        try:
            found = self.answer(part, depth, cell)
        except TooMuchError:
            return False
        for position, kind, count in found or ():
            self._board.take(position, kind, count)
        return found is not None

    def _key(self, part: Part, depth: int, cell: int) -> tuple[int, int] | None:
        if self._likeness is None or not self._board.fresh(depth, cell):
            return None
        return id(part), self._likeness.look(depth, cell)
