"""Extras: pods above the minimum, placed one by one where the gang is, without moving anything."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler.cells import Layout
from scheduler.requests import Want
from scheduler.room import Room
from scheduler.search.mates import Mates
from scheduler.search.pulling import Pull
from scheduler.search.tree import Asked, Branch, depth_of
from scheduler.topology import Bools, Ints

_TRIED: Final = 8  # places for one pod that others might not bear
_OWN: Final = 1_000  # pods of the gang draw so much more than those of its base


class Adding:
    """Places single pods near a gang's others, and spends them of the Room at once."""

    def __init__(
        self,
        room: Room,
        where: Layout,
        asked: Asked,
        pull: Pull,
        masks: tuple[Bools | None, Sequence[Bools]],
    ) -> None:
        """Use the positions of the first mask only, those that most of the others like before
        others.
        """
        self._room = room
        self._where = where
        self._branches = asked.branches
        self._allowed, liked = masks
        self._unliked: Ints = np.zeros(len(where.rows), dtype=np.int64)
        for mask in liked:
            self._unliked += ~mask
        self._near: Ints = np.zeros(len(where.rows), dtype=np.int64)
        self._home: dict[int, int] = {}  # a position of each branch's pods
        if pull.base is not None:
            self._near += pull.near(where.deepest, where)[where.depths[-1].at]
        if pull.own is not None:
            self._near += _OWN * pull.kin(where.deepest, where)[where.depths[-1].at]
        for branch in self._branches:
            if branch.rows:
                self._home[branch.index] = where.positions[branch.rows[0]]

    def joined(self, want: Want, position: int) -> None:
        """Let a pod that has its place draw others."""
        for cells in self._where.depths[1:]:
            start, stop = cells.runs[cells.at_list[position]]
            self._near[start:stop] += _OWN
        for branch in self._branches:
            if branch.index == 0 or want.clique in branch.cliques:
                self._home.setdefault(branch.index, position)

    def add(self, want: Want, mates: Mates) -> int | None:
        """Place one pod and give its position, or None if there is no room for it."""
        shape = self._room.shape(want.need, want.constraints, mates.constraints)
        if shape is None:
            return None
        ok = self._room.column(shape, self._where).values > 0
        if self._allowed is not None:
            ok &= self._allowed
        for branch in self._branches:
            # The gang's own branch was made of the minimum; extras may be of other cliques.
            if branch.near.required and (branch.index == 0 or want.clique in branch.cliques):
                ok &= self._within(branch)
        found = np.flatnonzero(ok)
        tight = self._room.totals(self._where).values[found, -3]
        order = np.lexsort((tight, -self._near[found], self._unliked[found]))
        best = [int(at) for at in found[order[:_TRIED]]]
        position = next((at for at in best if mates.bear([(want, at)])), None)
        if position is None:
            return None
        self._room.seat(mates.seats([(want, position)]))
        self._room.spend({self._where.rows[position]: [(shape.need, 1)]})
        self.joined(want, position)
        return position

    def _within(self, branch: Branch) -> Bools:
        """Which positions satisfy what the branch requires."""
        ok: Bools = np.zeros(len(self._where.rows), dtype=np.bool_)
        depth = depth_of(self._where, branch.near.required)
        homes = {self._where.positions[row] for row in branch.rows}
        homes |= {self._home[branch.index]} if branch.index in self._home else set()
        if depth is None:
            return ok  # there is no such level
        if depth > self._where.deepest:
            ok[list(homes)] = len(homes) == 1
            return ok if homes else ~ok
        cells = self._where.depths[depth]
        ok[:] = cells.real[cells.at]
        for home in homes:
            ok &= cells.at == cells.at[home]
        return ok
