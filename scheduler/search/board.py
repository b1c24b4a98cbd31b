"""What a search has put where so far, and what is left by row and by cell; all of it can be undone.

Only rows that the search touches are kept apart from the Room's columns.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import add, sub
from typing import TypeAlias

import numpy as np

from scheduler.cells import Layout
from scheduler.room import Room
from scheduler.search.tree import Kind
from scheduler.sums import Column
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
        self._rows = where.rows
        self._values = [column.values for column in columns]
        self._spare: Ints = self.totals.values[:, -3]
        self.needs = [kind.shape.need for kind in kinds]
        self.put: list[tuple[int, int, int]] = []  # position, kind, count
        self._devices = room.devices.nonzero()[0].tolist()
        self.demand = [
            sum([amount for at, amount in need if at in self._devices]) for need in self.needs
        ]
        self._there: dict[int, _There] = {}  # touched positions
        self._stale: dict[int, None] = {}  # those whose slots are to be counted again
        self._stacked: dict[int, Ints] = {}
        # Slots that are lost to what was put, by kind, of touched cells of each depth.
        self._lost: list[dict[int, Counts]] = [{} for _ in where.depths]

    @cached_property
    def _scarcest(self) -> list[list[tuple[int, int]]]:
        """Needs by kind, with what runs out first before the rest."""
        return [sorted(need, key=lambda each: each[0] not in self._devices) for need in self.needs]

    def fresh(self, depth: int, cell: int) -> bool:
        """Whether nothing was put into the cell since all of it was last undone."""
        return cell not in self._lost[depth]

    def capacity(self, depth: int, cell: int) -> Counts:
        """How many pieces of each kind the cell takes, if no other kind came."""
        self._recount()
        found = [column.sums[depth].item(cell) for column in self.columns]
        lost = self._lost[depth].get(cell)
        return found if lost is None else [n - less for n, less in zip(found, lost, strict=True)]

    def capacities(self, depth: int, first: int, last: int, among: Bools) -> Ints:
        """How many pieces of each kind, by row, each of these cells takes; only right `among`."""
        self._recount()
        found: Ints = self._table(depth)[:, first:last]
        lost = self._lost[depth]
        if lost:
            cells = [c for c in lost if first <= c < last and among[c - first]]
            if cells:
                found = found.copy()
                found[:, [c - first for c in cells]] -= np.array([lost[c] for c in cells]).T
        return found

    def lists(self, depth: int, first: int, last: int) -> list[Counts]:
        """The same as lists, for a few cells; right for each of them."""
        self._recount()
        found: list[Counts] = [col.sums[depth][first:last].tolist() for col in self.columns]
        lost = self._lost[depth]
        if lost:
            for cell in range(first, last):
                less = lost.get(cell)
                if less is not None:
                    for kind, count in enumerate(less):
                        found[kind][cell - first] -= count
        return found

    def _table(self, depth: int) -> Ints:
        """How many pieces of each kind, by row, each cell takes while nothing is put."""
        stacked = self._stacked.get(depth)
        if stacked is None:
            stacked = np.array([column.sums[depth] for column in self.columns])
            self._stacked[depth] = stacked
        return stacked

    def slots(self, position: int) -> Counts:
        """How many pieces of each kind a position takes now."""
        self._recount()
        there = self._there.get(position)
        if there is None:
            return [int(column.values[position]) for column in self.columns]
        return there.slots

    def row(self, kind: int, start: int, stop: int) -> tuple[list[int], list[int]]:
        """How many pieces of a kind each of these positions takes now, and how many devices it has
        left.
        """
        found: list[int] = self._values[kind][start:stop].tolist()
        spare: list[int] = self._spare[start:stop].tolist()
        known, need = self._there, self._scarcest[kind]
        for position in range(start, stop) if len(known) > stop - start else known:
            there = known.get(position)
            if there is not None and start <= position < stop:
                at = position - start
                if found[at]:
                    found[at] = _fitting(there, kind, need)
                spare[at] = there.spare
        return found, spare

    def free(self, position: int) -> list[int]:
        """What is left at a position, by column."""
        there = self._there.get(position)
        if there is None:
            row: list[int] = self.room.free[self.where.rows[position]].tolist()
            return row
        return there.free

    def take(self, position: int, kind: int, count: int) -> None:
        """Put pieces of a kind there."""
        self.put.append((position, kind, count))
        self.budget.spent += 1
        there = self._there.get(position)
        if there is None:
            free: list[int] = self.room.free[self._rows[position]].tolist()
            slots = [values.item(position) for values in self._values]
            spare = self._spare.item(position)
            there = self._there[position] = _There(free, spare, slots, slots)
        self._change(position, there, kind, count)

    def undo(self, mark: int) -> None:
        """Take back what was put since there was so much."""
        put = self.put
        while len(put) > mark > 0:
            position, kind, count = put.pop()
            self._change(position, self._there[position], kind, -count)
        if not mark:
            put.clear()
            self._there.clear()
            self._stale.clear()
            for lost in self._lost:
                lost.clear()

    def _change(self, position: int, there: "_There", kind: int, count: int) -> None:
        free = there.free
        for at, amount in self.needs[kind]:
            free[at] -= amount * count
        there.spare -= self.demand[kind] * count
        self._stale[position] = None

    def _recount(self) -> None:
        """Count the slots of positions again where something was put or taken back."""
        if not self._stale:
            return
        # Most of them lie in one of the deepest cells, so that wider ones change only once.
        by_cell: dict[int, tuple[int, Counts]] = {}
        at, scarcest = self.where.depths[-1].at_list, self._scarcest
        for position in self._stale:
            there = self._there[position]
            slots = _all_fitting(there, scarcest)
            lost = list(map(sub, there.slots, slots))
            there.slots = slots
            cell = at[position]
            some = by_cell.get(cell)
            by_cell[cell] = (position, lost if some is None else _sum(some[1], lost))
        self._stale.clear()
        for position, lost in by_cell.values():
            for cells, known in zip(self.where.depths, self._lost, strict=True):
                cell = cells.at_list[position]
                before = known.get(cell)
                known[cell] = lost if before is None else _sum(before, lost)


@dataclass(eq=False)
class _There:
    """A position that something was put on: what is left of it."""

    free: list[int]  # by column
    spare: int  # devices
    first: Counts  # pieces of each kind that it took before
    slots: Counts  # that it takes now, or took when that was last counted


def _fitting(there: _There, kind: int, need: Sequence[tuple[int, int]]) -> int:
    """How many pieces of a kind fit there now."""
    most = there.first[kind]
    if not most:
        return 0
    free = there.free
    for at, amount in need:
        left = free[at]
        if left < amount:
            return 0
        if left < amount * most:
            most = left // amount
    return most


def _all_fitting(there: _There, needs: Sequence[Sequence[tuple[int, int]]]) -> Counts:
    """How many pieces of each kind fit there now."""
    free, found = there.free, []
    for first, need in zip(there.first, needs, strict=True):
        most = first
        for at, amount in need if most else ():
            left = free[at]
            if left < amount:
                most = 0
                break
            if left < amount * most:
                most = left // amount
        found.append(most)
    return found


def _sum(one: Counts, other: Counts) -> Counts:
    return list(map(add, one, other))
