"""How many siblings of a gang each domain has, and where one more may go or best goes. Pure.

What must be is counted as for pods: over domains that are there, and that the gang's largest pod
could use if nobody was there. All arrays run over positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from api import names
from scheduler.cells import Layout
from scheduler.requests import GangRequest, Spread, Want
from scheduler.room import Room
from scheduler.topology import Bools, Ints


@dataclass(frozen=True, eq=False)
class _Domains:
    """The domains of a level, of which there are so many; at each position its domain, or -1."""

    at: Ints
    size: int


def kept(room: Room, where: Layout, request: GangRequest) -> Bools | None:
    """Which positions hard spreads leave; None for all. Of a level that is none they leave none."""
    found: Bools | None = None
    for spread in request.spread:
        if spread.hard:
            left = _left(room, where, request, spread)
            found = left if found is None else found & left
    return found


def loosened(request: GangRequest, spread: Spread) -> GangRequest:
    """Give the same request without one of its spreads."""
    return replace(request, spread=tuple(each for each in request.spread if each is not spread))


def liked(room: Room, where: Layout, request: GangRequest) -> list[Bools]:
    """Which positions soft spreads like best, then those that they like as well, and so on.

    Those that all like equally, or do not know, are left out.
    """
    excess = np.zeros(len(where.rows), dtype=np.int64)
    could: Bools | None = None
    for spread in request.spread:
        domains = None if spread.hard else _domains(where, spread.level)
        if domains is not None:
            if could is None:
                want = largest(request)
                could = _large_enough(room, want)[where.topology.order]
                could &= room.mask(want.constraints)[where.topology.order]
            excess += _excess(room, where, (request, spread), (domains, could))
    if could is None:
        return []
    there = np.unique(excess[could])
    return [excess <= most for most in there[:-1].tolist()]


def largest(request: GangRequest) -> Want:
    """Give the pod of a gang that takes most devices, the first of these."""
    wants = request.minimum or request.extras
    return max(
        wants, key=lambda want: sum(n for resource, n in want.need.items() if "/" in resource)
    )


def _excess(
    room: Room, where: Layout, asked: tuple[GangRequest, Spread], over: tuple[_Domains, Bools]
) -> Ints:
    """Count how many siblings too many each position's domain has, of other replicas."""
    (request, spread), (domains, could) = asked, over
    replicas, rows = room.siblings(request, spread)
    others = [i for i, replica in enumerate(replicas) if replica != request.kin.replica]
    counts = _counted(where, domains, [replicas[i] for i in others], [rows[i] for i in others])
    # Who is in no domain of this level shares none.
    here = np.where(domains.at >= 0, counts[domains.at], 0)
    if not could.any():
        return here
    found: Ints = np.maximum(here - (here[could].min() + spread.skew - 1), 0)
    return found


def _left(room: Room, where: Layout, request: GangRequest, spread: Spread) -> Bools:
    """Which positions one more of the replica leaves as even as must be, or has it already."""
    domains = _domains(where, spread.level)
    if domains is None:
        return np.zeros(len(where.rows), dtype=np.bool_)
    replicas, rows = room.siblings(request, spread)
    own = [
        row for replica, row in zip(replicas, rows, strict=True) if replica == request.kin.replica
    ]
    row_of = room.snapshot.row_of
    own += [row_of[anchor.node] for anchor in request.anchors if anchor.node in row_of]
    itself = int(spread.concerns(request, request.namespace, request.kin))
    if itself:
        replicas, rows = replicas + [request.kin.replica] * len(own), rows + own
    counts = _counted(where, domains, replicas, rows)
    ours = _counted(where, domains, [""] * len(own), own) > 0
    eligible = np.unique(domains.at[_counting(room, where, request, spread)])
    eligible = eligible[eligible >= 0]
    enough = eligible.size >= max(1, spread.min_domains)
    fewest = int(counts[eligible].min()) if enough else 0
    even = ours | (counts + itself - fewest <= spread.skew)
    found: Bools = even[domains.at] & (domains.at >= 0)
    return found


def _domains(where: Layout, level: str) -> _Domains | None:
    depth = where.topology.depth_of(level)
    if depth is not None:
        cells = where.depths[depth]
        size = len(cells.starts)
        return _Domains(np.where(cells.real, np.arange(size), -1)[cells.at], size)
    if level == names.HOSTNAME_KEY:
        return _Domains(np.arange(len(where.rows)), len(where.rows))
    return None


def _counted(
    where: Layout, domains: _Domains, replicas: Sequence[str], rows: Sequence[int]
) -> Ints:
    """Count by domain the replicas that are in it."""
    if not rows:
        return np.zeros(domains.size, dtype=np.int64)
    number: dict[str, int] = {}
    who = np.array([number.setdefault(replica, len(number)) for replica in replicas])
    at = domains.at[where.topology.position[np.array(rows)]]
    each = np.unique((who * domains.size + at)[at >= 0]) % domains.size
    return np.bincount(each, minlength=domains.size).astype(np.int64)


def _counting(room: Room, where: Layout, request: GangRequest, spread: Spread) -> Bools:
    """Which positions make their domain one of those that count."""
    want, nodes = largest(request), room.snapshot.masks.nodes
    rows = _large_enough(room, want)
    if spread.by_affinity:
        rows &= nodes.selected(want.constraints)
    if spread.by_taints:
        rows &= nodes.tolerating(want.constraints.tolerations)
    found: Bools = rows[where.topology.order]
    return found


def _large_enough(room: Room, want: Want) -> Bools:
    """Which rows could take the pod if nobody was there."""
    vector = room.snapshot.vector(want.need)
    if vector is None:
        return np.zeros(len(room.names), dtype=np.bool_)
    found: Bools = np.all(room.snapshot.capacity >= vector, axis=1)
    return found
