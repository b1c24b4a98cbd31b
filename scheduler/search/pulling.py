"""Where a gang is drawn to: its own pods that are there already, and those of its base gang.

So it is to room that is kept for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.cells import Layout
from scheduler.requests import GangRequest
from scheduler.room import Room
from scheduler.topology import Ints


@dataclass(eq=False)
class Pull:
    """Pods that are there, by cell of each depth; None where there are none at all."""

    own: list[Ints] | None
    base: list[Ints] | None
    positions: tuple[int, ...]  # of the gang's own

    def cells(self, depth: int, first: int, last: int) -> Ints:
        """How many pods of the gang itself are in these cells."""
        if self.own is None:
            return np.zeros(last - first, dtype=np.int64)
        return self.own[depth][first:last]

    def near(self, depth: int, where: Layout) -> Ints:
        """How near each cell is to the base gang: levels shared, added up over its pods."""
        return _nearness(self.base, depth, where)

    def kin(self, depth: int, where: Layout) -> Ints:
        """The same for the gang's own pods."""
        return _nearness(self.own, depth, where)


def pull(room: Room, where: Layout, request: GangRequest) -> Pull:
    """Find the anchors' cells; anchors on nodes that are gone draw nowhere."""
    row_of = room.snapshot.row_of
    known = [a for a in request.anchors if a.node in row_of]
    own = tuple(sorted(where.positions[row_of[a.node]] for a in known if a.clique))
    base = sorted(where.positions[row_of[a.node]] for a in known if not a.clique)
    if not base and request.kept:
        shares = request.kept.shares
        base = sorted(where.positions[row_of[s.node]] for s in shares if s.node in row_of)
    return Pull(_counted(where, own), _counted(where, base), own)


def _counted(where: Layout, positions: Sequence[int]) -> list[Ints] | None:
    if not positions:
        return None
    return [
        np.bincount(cells.at[list(positions)], minlength=len(cells.starts)).astype(np.int64)
        for cells in where.depths
    ]


def _nearness(counts: list[Ints] | None, depth: int, where: Layout) -> Ints:
    if counts is None:
        return np.zeros(len(where.depths[depth].starts), dtype=np.int64)
    found = np.zeros(1, dtype=np.int64)
    for level in range(1, depth + 1):
        found = found[where.depths[level].parent] + counts[level]
    return found
