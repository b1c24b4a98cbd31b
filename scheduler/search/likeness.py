"""Which cells are alike: what fails in one of them fails in all, so that it is tried only once."""

import numpy as np

from scheduler.search.board import Board


class Likeness:
    """Compares cells of a board as they are while nothing is put into them."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._looks: dict[tuple[int, int], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._asked = sorted({at for need in board.needs for at, _ in need})

    def look(self, depth: int, cell: int) -> int:
        """Number what a cell looks like: its nodes, and how they lie together in it."""
        key = depth, cell
        found = self._looks.get(key)
        if found is None:
            seen = self._looked(depth, cell)
            found = self._looks[key] = self._numbers.setdefault(seen, len(self._numbers))
        return found

    def _looked(self, depth: int, cell: int) -> tuple[object, ...]:
        cells = self._board.where.depths[depth]
        real = bool(cells.real[cell])
        if depth == self._board.where.deepest:
            return depth, real, self._nodes(*cells.runs[cell])
        first, last = cells.children[cell]
        return depth, real, *sorted([self.look(depth + 1, child) for child in range(first, last)])

    def _nodes(self, start: int, stop: int) -> bytes:
        board = self._board
        slots = np.stack([column.values[start:stop] for column in board.columns], axis=1)
        free = board.room.free[np.ix_(board.where.rows[start:stop], self._asked)]
        # What no pod may use, or has no room for any, might as well not be there.
        found = np.hstack([slots, free])[slots.any(axis=1)]
        return found[np.lexsort(found.T)].tobytes()
