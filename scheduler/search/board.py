"""What a search has put where so far, and what is left by row and by cell; all of it can be undone.

Only rows that the search touches are kept apart from the Room's columns.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from scheduler.cells import Layout
from scheduler.room import Column, Room
from scheduler.search.tree import Kind
from scheduler.topology import Bools, Ints

Counts: TypeAlias = list[int]
"""Pieces of each kind."""


class TooMuchError(Exception):
    """A question is too large, or the budget spent."""


@dataclass(eq=False)
class Budget:
    """Steps that a search may take."""

    limit: int
    spent: int = 0
    cut: bool = False  # something was left out for its sake

    @property
    def out(self) -> bool:
        """Whether all steps are spent."""
        return self.spent >= self.limit

    @property
    def left(self) -> int:
        """How many steps are left."""
        return max(0, self.limit - self.spent)

    def charge(self, steps: int) -> None:
        """Spend so many steps; TooMuchError, and none of them, if there are not so many left."""
        if self.spent + steps > self.limit:
            raise TooMuchError
        self.spent += steps

    @contextmanager
    def only(self, steps: int) -> Iterator[None]:
        """Let no more than so many steps be spent meanwhile."""
        limit = self.limit
        self.limit = min(limit, self.spent + steps)
        try:
            yield
        finally:
            self.limit = limit


class Board:
    """The working state of one search."""

    def __init__(
        self, room: Room, where: Layout, kinds: list[Kind], columns: list[Column], budget: Budget
    ) -> None:
        self.room = room
        self.where = where
        self.kinds = kinds
        self.columns = columns
        self.budget = budget
        self.totals = room.totals(where)
        self.needs = [kind.shape.need for kind in kinds]
        self.put: list[tuple[int, int, int]] = []  # position, kind, count
        devices = room.devices.nonzero()[0].tolist()
        self.demand = [sum([amount for at, amount in need if at in devices]) for need in self.needs]
        self._free: dict[int, list[int]] = {}  # of touched positions
        self._spare: dict[int, int] = {}  # devices that are left there
        self._stacked: dict[int, Ints] = {}
        self._touched: list[dict[int, list[int]]] = [{} for _ in where.depths]

    def fresh(self, depth: int, cell: int) -> bool:
        """Whether nothing was put into the cell since all of it was last undone."""
        return cell not in self._touched[depth]

    def capacity(self, depth: int, cell: int) -> Counts:
        """How many pieces of each kind the cell takes, if no other kind came."""
        found = [int(column.sums[depth][cell]) for column in self.columns]
        for position in self._touched[depth].get(cell, ()):
            for kind in range(len(found)):
                found[kind] -= self._lost(position, kind)
        return found

    def capacities(self, depth: int, first: int, last: int, among: Bools) -> Ints:
        """How many pieces of each kind, by row, each of these cells takes; only right `among`."""
        stacked = self._stacked.get(depth)
        if stacked is None:
            stacked = np.stack([column.sums[depth] for column in self.columns])
            self._stacked[depth] = stacked
        found: Ints = stacked[:, first:last]
        touched = self._touched[depth]
        if touched:
            cells = [c for c in range(first, last) if among[c - first] and c in touched]
            if cells:
                found = found.copy()
                for cell in cells:
                    found[:, cell - first] = self.capacity(depth, cell)
        return found

    def slots(self, position: int) -> Counts:
        """How many pieces of each kind a position takes now."""
        return [self._slots(position, kind) for kind in range(len(self.columns))]

    def row(self, kind: int, start: int, stop: int) -> tuple[list[int], list[int]]:
        """How many pieces of a kind each of these positions takes now, and how many devices it has
        left.
        """
        found: list[int] = self.columns[kind].values[start:stop].tolist()
        spare: list[int] = self.totals.values[start:stop, -3].tolist()
        if self._free:
            for position in range(start, stop):
                if position in self._free:
                    found[position - start] = self._slots(position, kind)
                    spare[position - start] = self._spare[position]
        return found, spare

    def free(self, position: int) -> list[int]:
        """What is left at a position, by column."""
        found = self._free.get(position)
        if found is None:
            row: list[int] = self.room.free[self.where.rows[position]].tolist()
            return row
        return found

    def take(self, position: int, kind: int, count: int) -> None:
        """Put pieces of a kind there."""
        self.put.append((position, kind, count))
        self.budget.spent += 1
        free = self._free.get(position)
        if free is None:
            free = self._free[position] = self.free(position)
            self._spare[position] = int(self.totals.values[position, -3])
            for cells, touched in zip(self.where.depths, self._touched, strict=True):
                touched.setdefault(cells.at_list[position], []).append(position)
        for at, amount in self.needs[kind]:
            free[at] -= amount * count
        self._spare[position] -= self.demand[kind] * count

    def undo(self, mark: int) -> None:
        """Take back what was put since there was so much."""
        put = self.put
        while len(put) > mark:
            position, kind, count = put.pop()
            free = self._free[position]
            for at, amount in self.needs[kind]:
                free[at] += amount * count
            self._spare[position] += self.demand[kind] * count
        if not put:
            self._free.clear()
            for touched in self._touched:
                touched.clear()

    def _slots(self, position: int, kind: int) -> int:
        most = int(self.columns[kind].values[position])
        free = self._free.get(position)
        if free is not None and most:
            for at, amount in self.needs[kind]:
                fits = free[at] // amount
                most = min(most, fits)
        return max(most, 0)

    def _lost(self, position: int, kind: int) -> int:
        return int(self.columns[kind].values[position]) - self._slots(position, kind)
