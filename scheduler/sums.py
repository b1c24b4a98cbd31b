"""A number for each position of a topology, and its sums over the cells of every depth."""

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.cells import Layout
from scheduler.topology import Bools, Ints

_MOST_MASKS: Final = 64


@dataclass(eq=False)
class Column:
    """A value for each position and its sums by cell, as they are after so many touched rows."""

    values: Ints
    sums: list[Ints]  # by depth
    seen: int = 0

    def put(self, where: Layout, positions: Ints, values: Ints) -> None:
        """Change values and their sums; positions must differ."""
        more = values - self.values[positions]
        self.values[positions] = values
        for cells, sums in zip(where.depths, self.sums, strict=True):
            np.add.at(sums, cells.at[positions], more)

    def renew(self, where: Layout, positions: Ints, values: Ints) -> None:
        """Change values and sum all up again; a position may come twice with the same value."""
        self.values[positions] = values
        self.sums = _summed(where, self.values)

    def set(self, where: Layout, position: int, value: int) -> None:
        """Change the value of one position, and the sums."""
        change = value - self.values.item(position)
        if change:
            self.values[position] = value
            for cells, sums in zip(where.depths, self.sums, strict=True):
                sums[cells.at_list[position]] += change

    def copy(self) -> "Column":
        """Give one that may be written."""
        return Column(self.values.copy(), [each.copy() for each in self.sums], self.seen)


def column_of(where: Layout, values: Ints) -> Column:
    """Sum values up."""
    return Column(values, _summed(where, values))


_within: WeakKeyDictionary[Column, tuple[int, dict[bytes, list[Ints]]]] = WeakKeyDictionary()


def sums_within(column: Column, where: Layout, allowed: Bools) -> list[Ints]:
    """Sum up by depth what is at positions that are allowed; kept as long as the column is right.

    Not to be written.
    """
    if allowed.all():
        return column.sums
    seen, known = _within.get(column, (-1, {}))
    if seen != column.seen or len(known) > _MOST_MASKS:
        known = {}
        _within[column] = column.seen, known
    key = allowed.tobytes()
    found = known.get(key)
    if found is None:
        values = column.values.copy()
        values[~allowed] = 0
        found = known[key] = _summed(where, values)
    return found


def _summed(where: Layout, values: Ints) -> list[Ints]:
    deepest = where.depths[-1].sums(values)
    sums = [deepest]
    for depth in range(where.deepest - 1, -1, -1):
        cells = where.depths[depth]
        # Cells of one depth are runs of cells of the next.
        sums.append(np.add.reduceat(sums[-1], cells.first, axis=0))
    return sums[::-1]
