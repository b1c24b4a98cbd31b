"""Room that is kept for some: each gets it for as long as it is looked at, and keeps what it uses.

To everybody else it is taken. What is drawn is what a gang takes of a node, up to what is kept
there; whatever it takes beyond that comes out of what is free.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from scheduler.requests import GangRequest, Kept, Share
from scheduler.room import Room
from scheduler.topology import Ints


@dataclass(eq=False)
class _Stock:
    """What is left of one reservation, by row; and who has drawn on it."""

    left: dict[int, Ints] = field(default_factory=dict)
    drawn: dict[tuple[str, str], dict[int, Ints]] = field(default_factory=dict)  # by gang


class Lending:
    """What is kept, and what a batch has drawn of it so far."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._stocks: dict[str, _Stock] = {}

    @contextmanager
    def to(self, gang: GangRequest) -> Iterator[None]:
        """Let a gang be placed into what is kept for it; afterwards the rest is kept as before."""
        lent = self._lent(gang)
        if not lent:
            yield
            return
        self._give(lent, 1)
        free = self._room.free
        before = {row: free[row, : self._room.resources].copy() for row in lent}
        try:
            yield
        finally:
            self._take_back(gang, lent, before)

    def _lent(self, gang: GangRequest) -> dict[int, Ints]:
        kept, key = gang.kept, (gang.namespace, gang.name)
        if kept is None:
            return {}
        stock = self._stocks.get(kept.name)
        if stock is None:
            stock = self._stocks[kept.name] = _Stock(self._read(kept))
        if kept.once and stock.drawn.keys() - {key}:
            return {}
        return {row: left for row, left in stock.left.items() if left.any()}

    def _read(self, kept: Kept) -> dict[int, Ints]:
        snapshot = self._room.snapshot
        return {
            snapshot.row_of[share.node]: np.array(
                [share.amounts.get(name, 0) for name in snapshot.resources], dtype=np.int64
            )
            for share in kept.shares
            if share.node in snapshot.row_of
        }

    def drawn(self, gang: GangRequest) -> tuple[Share, ...]:
        """Say what a gang has drawn of what is kept for it."""
        stock = self._stocks.get(gang.kept.name) if gang.kept else None
        rows = stock.drawn.get((gang.namespace, gang.name), {}) if stock else {}
        columns = self._room.snapshot.resources
        return tuple(
            [
                Share(
                    self._room.names[row],
                    {columns[at]: amounts.item(at) for at in np.flatnonzero(amounts)},
                )
                for row, amounts in sorted(rows.items())
            ]
        )

    def _take_back(self, gang: GangRequest, lent: dict[int, Ints], before: dict[int, Ints]) -> None:
        if gang.kept is None:
            return
        stock, key = self._stocks[gang.kept.name], (gang.namespace, gang.name)
        for row, amounts in lent.items():
            now = self._room.free[row, : self._room.resources]
            drawn = np.minimum(amounts, before[row] - now)
            stock.left[row] = amounts - drawn
            if drawn.any():
                rows = stock.drawn.setdefault(key, {})
                rows[row] = rows[row] + drawn if row in rows else drawn
        self._give({row: stock.left[row] for row in lent}, -1)

    def _give(self, amounts: dict[int, Ints], times: int) -> None:
        """Make the room so much more, or less."""
        columns = range(self._room.resources)
        every = {
            row: tuple(zip(columns, each.tolist(), strict=True)) for row, each in amounts.items()
        }
        self._room.spend({row: [(need, -times)] for row, need in every.items()})
