"""A number for each position of a topology, and its sums over the cells of every depth."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.cells import Layout
from scheduler.topology import Ints

FEW: Final = 32  # rows or positions that are better gone through one by one


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
        if len(positions) > FEW:
            for cells, sums in zip(where.depths, self.sums, strict=True):
                np.add.at(sums, cells.at[positions], more)
            return
        # For a few of them the array functions take far longer than the additions.
        each = more.tolist() if more.ndim == 1 else list(more)
        for position, change in zip(positions.tolist(), each, strict=True):
            for cells, sums in zip(where.depths, self.sums, strict=True):
                sums[cells.at_list[position]] += change

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
    deepest = where.depths[-1].sums(values)
    sums = [deepest]
    for depth in range(where.deepest - 1, -1, -1):
        cells = where.depths[depth]
        # Cells of one depth are runs of cells of the next.
        sums.append(np.add.reduceat(sums[-1], cells.first, axis=0))
    return Column(values, sums[::-1])
