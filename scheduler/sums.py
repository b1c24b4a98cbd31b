"""A number for each position of a topology, and its sums over the cells of every depth."""

from dataclasses import dataclass

import numpy as np

from scheduler.cells import Layout
from scheduler.topology import Ints


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


def _summed(where: Layout, values: Ints) -> list[Ints]:
    deepest = where.depths[-1].sums(values)
    sums = [deepest]
    for depth in range(where.deepest - 1, -1, -1):
        cells = where.depths[depth]
        # Cells of one depth are runs of cells of the next.
        sums.append(np.add.reduceat(sums[-1], cells.first, axis=0))
    return sums[::-1]
