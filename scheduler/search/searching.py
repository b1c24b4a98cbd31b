"""Finds places for a tree of parts: greedily where it looks best, exactly where that is small, and
at last wherever bounds leave a cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from scheduler import scoring
from scheduler.cells import Layout
from scheduler.ranking import Put, dealt
from scheduler.room import Room
from scheduler.search.board import Board, Budget, TooMuchError
from scheduler.search.choosing import Candidate, able, candidates
from scheduler.search.closing import SMALL, Closely
from scheduler.search.exact import Exact
from scheduler.search.filling import Filler
from scheduler.search.likeness import Likeness
from scheduler.search.mates import Mates
from scheduler.search.pulling import Pull
from scheduler.search.scouring import Scour
from scheduler.search.tree import Tree
from scheduler.sums import Column
from scheduler.topology import Bools

_TRIED: Final = 6  # cells of a depth that are filled greedily before something else is tried
_NEARLY: Final = 0.85  # of what pairs of pods may share at best, that makes wider cells needless
_LIGHTLY: Final = 1  # where all that is at stake is a wish
_FOR_A_WISH: Final = 1_500  # steps for all other cells then


@dataclass(frozen=True)
class Found:
    """Where the pieces go, and what pairs of pods share then."""

    tree: Tree
    put: tuple[Put, ...]
    value: int


@dataclass(frozen=True, eq=False)
class Question:
    """What is to go where: this tree, on these columns."""

    room: Room
    where: Layout
    tree: Tree
    columns: list[Column]
    pull: Pull
    mates: Mates


class Search:
    """Looks for the best answer to one question, or leaves it at what is quickly found."""

    def __init__(self, question: Question, budget: Budget, *, thorough: bool) -> None:
        self._question = question
        self._tree = question.tree
        self._where = question.where
        self.budget = budget
        self._thorough = thorough
        self._chosen: dict[int, list[Candidate]] = {}
        self._passing: dict[int, Bools] = {}
        self._close: Bools | None = None
        self._taking: dict[tuple[int, int], Found] = {}  # by depth and cell that took everything
        self.futile = False  # whether a part fits nowhere, and that ended a try
        self._board = Board(
            question.room, question.where, question.tree.kinds, question.columns, budget
        )

    def run(self) -> Found | None:
        """Find the best placement there is, as far as the budget reaches."""
        if self._thorough and self._tree.root.inner and self.hopeless():
            return None
        best: Found | None = None
        for order in self._orders():
            filler = Filler(self._board, order, self._question.pull, closely=lambda: self._closely)
            best = self._greedy(filler)
            self.futile |= filler.futile
            if best is not None or not self._thorough or self.hopeless():
                break
        try:
            return self._exactly(best)
        except TooMuchError:
            return best or self._scoured()

    def possible(self) -> bool:
        """Whether the quicker bounds leave a cell."""
        return bool(self._able(self._tree.root.depth).any())

    @cached_property
    def _most(self) -> int:
        """What pairs of pods would share at most."""
        pods, there = self._tree.pods, len(self._question.pull.positions)
        return (pods - 1 + 2 * there) * pods // 2 * self._where.deepest

    def hopeless(self) -> bool:
        """Whether a close look says that no cell could ever do."""
        if self._close is None:
            root = self._tree.root.depth
            self._close = able(self._board, self._tree, root, closely=True)
        return not self._close.any()

    def _orders(self) -> Iterator[Sequence[int]]:
        """Give orders of kinds: by devices and size, then the scarcest first."""
        kinds, counts, demand = range(len(self._tree.kinds)), self._tree.counts, self._board.demand
        first = sorted(kinds, key=lambda kind: (-demand[kind], -self._sizes[kind], kind))
        yield first
        there = self._board.capacity(0, 0)
        second = sorted(kinds, key=lambda k: (there[k] / counts[k], -self._sizes[k], k))
        if second != first:
            yield second

    @cached_property
    def _sizes(self) -> list[float]:
        """How large a piece of each kind is, by its shares of all that is free in the cluster."""
        board = self._board
        free = board.totals.sums[0][0].tolist()
        most = board.room.resources
        return [sum([a / max(1, free[at]) for at, a in need if at < most]) for need in board.needs]

    def _greedy(self, filler: Filler) -> Found | None:
        """Fill the most promising cells, smaller ones first.

        A wider cell is filled from one of the smaller ones again, or else spread over several: what
        is nearly as good as was promised is left at that.
        """
        best: Found | None = None
        enough: float = self._most
        for depth in range(self._where.deepest, self._tree.root.depth - 1, -1):
            if best is not None and best.value >= enough:
                break
            tried = self._candidates(depth)
            enough = min(enough, _NEARLY * tried[0].promise) if tried else enough
            for candidate in tried:
                if self.budget.out or (best and best.value >= candidate.promise):
                    break
                found = self._try(filler, depth, candidate)
                if found is not None:
                    best = found if best is None or found.value > best.value else best
                    break
        return best

    @cached_property
    def _closely(self) -> Closely:
        question = self._question
        pinned = any(part.pin >= 0 for part in self._tree.root.walk())
        alike = not pinned and not question.mates.choosy
        return Closely(self._board, question.pull, Likeness(self._board) if alike else None)

    def _scoured(self) -> Found | None:
        """Go through all cells; if all that is at stake is a wish, not for long."""
        board, question = self._board, self._question
        scour = Scour(board, self._tree, question.pull, self._accepted, self._closely)
        order = next(self._orders())
        if self._thorough:
            return scour.run(order, self._sizes)
        if self.futile:
            return None
        with self.budget.only(_FOR_A_WISH):
            return scour.lightly(order)

    def _candidates(self, depth: int) -> list[Candidate]:
        found = self._chosen.get(depth)
        if found is None:
            # Single cells of the deepest depth are filled in no time.
            deepest = depth == self._where.deepest
            most = _TRIED if self._thorough or deepest else _LIGHTLY
            ok = self._able(depth)
            found = candidates(self._board, self._tree, self._question.pull, depth, ok, most)
            self._chosen[depth] = found
        return found

    def _try(self, filler: Filler, depth: int, candidate: Candidate) -> Found | None:
        cell = candidate.cell
        if self._taking and (known := self._again(filler, depth, cell)) is not None:
            return known
        if not filler.whole(self._tree.root, depth, cell, split=True):
            return None
        put = tuple(self._board.put)
        self._board.undo(0)
        found = self._accepted(put)
        if found is not None:
            self._taking[depth, cell] = found
        return found

    def _again(self, filler: Filler, depth: int, cell: int) -> Found | None:
        """Give what was found before if filling the cell would begin where that took everything."""
        inner = self._tree.root.inner
        last = max(known for known, _ in self._taking)
        while depth < last and all(part.depth > depth + 1 for part in inner):
            cell, depth = filler.first(depth, cell, self._tree.counts), depth + 1
            found = self._taking.get((depth, cell))
            if found is not None or cell < 0:
                return found
        return None

    def _exactly(self, best: Found | None) -> Found | None:
        """Look at everything there is, or TooMuchError if that is not little enough."""
        if best is not None and best.value >= self._most:
            return best
        root = self._tree.root.depth
        cells = self._able(root)
        if best is None and self._rows(cells) <= SMALL:
            cells = able(self._board, self._tree, root, closely=True)
        if not cells.any():
            return best
        if self._rows(cells) > SMALL:
            raise TooMuchError
        with self.budget.only(self.budget.left // 2):
            found = self._optimum(root, np.flatnonzero(cells).tolist())
        if found is None or (best is not None and found.value <= best.value):
            return best
        accepted = self._accepted(found.put)
        if accepted is None and best is None:
            raise TooMuchError  # others may bear each other
        return accepted or best

    def _optimum(self, depth: int, cells: Sequence[int]) -> Found | None:
        exact = Exact(self._board, self._tree.root, self._question.pull)
        worth = [(exact.worth(depth, cell), -cell) for cell in cells]
        best = max(((w, cell) for w, cell in worth if w is not None), default=None)
        if best is None:
            return None
        return Found(self._tree, exact.put(depth, -best[1]), best[0])

    def _rows(self, cells: Bools) -> int:
        """How many rows there are in these cells of the root's depth."""
        depth = self._where.depths[self._tree.root.depth]
        return int((depth.stops - depth.starts) @ cells)

    def _able(self, depth: int) -> Bools:
        """Which cells of a depth pass the quicker bounds."""
        found = self._passing.get(depth)
        if found is None:
            found = self._passing[depth] = able(self._board, self._tree, depth)
        return found

    def _accepted(self, put: Sequence[Put]) -> Found | None:
        """Value a placement, if its pods bear each other."""
        question = self._question
        if question.mates.choosy and not question.mates.bear(dealt(self._tree, self._where, put)):
            return None
        sizes = [kind.size for kind in self._tree.kinds]
        pods = [at for at, kind, count in put for _ in range(count * sizes[kind])]
        there = question.pull.positions
        value = scoring.shared(self._where, [*pods, *there])
        if there:
            value -= scoring.shared(self._where, there)
        return Found(self._tree, tuple(put), value)


def allowed_columns(room: Room, where: Layout, tree: Tree, allowed: Bools | None) -> list[Column]:
    """Give the column of each kind, with nothing left where positions are not allowed."""
    columns = [room.column(kind.shape, where) for kind in tree.kinds]
    if allowed is None:
        return columns
    return [room.barred(column, where, allowed) for column in columns]
