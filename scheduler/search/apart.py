"""Where a gang must go, or best goes, to keep apart from its siblings."""

from collections.abc import Sequence

import numpy as np

from scheduler.cells import Layout
from scheduler.requests import GangRequest, Want
from scheduler.room import Room
from scheduler.search.tree import UnplaceableError, depth_of
from scheduler.topology import Bools, Ints


def apart(room: Room, where: Layout, request: GangRequest) -> tuple[Bools | None, list[Bools]]:
    """Give the positions that the gang must keep to, and those that it should, the best ones first.

    It must keep out of domains with a sibling, or should keep to those that have fewest. Domains
    that could not take it if they were empty do not count among these.
    """
    spread = request.spread
    if spread is None:
        return None, []
    depth = depth_of(where, spread.level)
    if depth is None or depth == 0:
        if spread.hard:
            raise UnplaceableError(spread.level)
        return None, []
    rows = room.siblings(request)
    if not rows:
        return None, []
    siblings = _counted(where, depth, [where.positions[row] for row in rows])
    if spread.hard:
        return siblings == 0, []
    there = np.unique(siblings[_open(room, where, request)])
    return None, [siblings <= most for most in there[:-1].tolist()]


def _counted(where: Layout, depth: int, positions: Sequence[int]) -> Ints:
    """Count siblings' nodes in the domain of each position."""
    if depth > where.deepest:
        return np.bincount(positions, minlength=len(where.rows)).astype(np.int64)
    cells = where.depths[depth]
    counts = np.bincount(cells.at[positions], minlength=len(cells.starts)).astype(np.int64)
    # Who is in no domain of this level shares none.
    found: Ints = np.where(cells.real, counts, 0)[cells.at]
    return found


def _open(room: Room, where: Layout, request: GangRequest) -> Bools:
    """Which positions could take the gang's largest pod if nobody was there."""
    snapshot = room.snapshot
    want = max(request.minimum or request.extras, key=_devices)
    vector = snapshot.vector(want.need)
    if vector is None:
        return np.zeros(len(where.rows), dtype=np.bool_)
    rows = snapshot.masks.mask(want.constraints) & (snapshot.capacity >= vector).all(axis=1)
    found: Bools = rows[where.topology.order]
    return found


def _devices(want: Want) -> int:
    return sum(amount for name, amount in want.need.items() if "/" in name)
