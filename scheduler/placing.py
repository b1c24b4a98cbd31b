"""Place one gang: all of its minimum or nothing, in the smallest domain that holds it."""

from collections.abc import Iterator, Sequence

import numpy as np

from api.quantities import PODS, Amounts
from scheduler.answers import NoFit, Placed, Placement
from scheduler.eligible import Constraints, obstacle
from scheduler.requests import GangRequest, Want
from scheduler.snapshot import Snapshot
from scheduler.topology import Bools, Domain, Ints


def place(snapshot: Snapshot, free: Ints, gang: GangRequest) -> Placement | NoFit:
    """Place the gang into `free`, which is spent on success and untouched on refusal.

    Domains are tried from the narrowest level up, the fullest that could do first; ties go to the
    first in topology order, so that equal input gives an equal plan.
    """
    fitting = _Fitting(snapshot, gang)
    for domain in _candidates(snapshot, free, fitting, gang):
        left = free[domain.start : domain.stop].copy()
        rows = fitting.fill(gang.minimum, left, domain)
        if rows is not None:
            free[domain.start : domain.stop] = left
            extras = _extras(snapshot, free, fitting, gang, domain)
            placed = [*zip(gang.minimum, rows, strict=True), *extras]
            if not placed:
                break  # only extras were asked for, and there is room for none
            return Placement(
                gang,
                tuple(Placed(want, snapshot.nodes[row].metadata.name) for want, row in placed),
                domain.path,
                _score(snapshot, [row for _, row in placed]),
            )
    return fitting.refusal(free)


def _candidates(
    snapshot: Snapshot, free: Ints, fitting: "_Fitting", gang: GangRequest
) -> Iterator[Domain]:
    anchors = [snapshot.row_of[a.node] for a in gang.anchors if a.node in snapshot.row_of]
    total = fitting.total(gang.minimum)
    if total is None:
        return
    for domains in reversed(snapshot.domains):
        bounded: list[tuple[int, Domain]] = []
        for domain in domains:
            room = np.maximum(free[domain.start : domain.stop], 0).sum(axis=0)
            if domain.holds(anchors) and (room >= total).all():
                bounded.append((int(room[fitting.judged(total)].sum()), domain))
        yield from (domain for _, domain in sorted(bounded, key=lambda pair: pair[0]))


def _extras(
    snapshot: Snapshot, free: Ints, fitting: "_Fitting", gang: GangRequest, home: Domain
) -> list[tuple[Want, int]]:
    """Place extras one by one, beside the minimum first, then wherever there is room."""
    everywhere = snapshot.domains[0][0]
    got: list[tuple[Want, int]] = []
    for want in gang.extras:
        for domain in (home, everywhere):
            rows = fitting.fill((want,), free[domain.start : domain.stop], domain)
            if rows is not None:
                got.append((want, rows[0]))
                break
    return got


def _score(snapshot: Snapshot, rows: Sequence[int]) -> float:
    depths = len(snapshot.domains) - 1
    if len(set(rows)) <= 1 or depths == 0:
        return 1.0 if len(set(rows)) <= 1 else 0.0
    deepest = max(
        depth
        for depth, domains in enumerate(snapshot.domains)
        if any(domain.holds(rows) for domain in domains)
    )
    return deepest / depths


class _Fitting:
    """What one gang's pods look like in a snapshot's columns and rows, worked out once."""

    def __init__(self, snapshot: Snapshot, gang: GangRequest) -> None:
        self._snapshot = snapshot
        self._gang = gang
        self._vectors: dict[int, Ints | None] = {}
        self._masks: dict[Constraints, Bools] = {}
        self._obstacles: dict[Constraints, list[str]] = {}

    def vector(self, want: Want) -> Ints | None:
        key = id(want.need)  # wants of one clique share their need
        if key not in self._vectors:
            self._vectors[key] = self._snapshot.vector(want.need)
        return self._vectors[key]

    def total(self, wants: Sequence[Want]) -> Ints | None:
        """Sum what the wants need, or None if a resource is to be had nowhere."""
        total = np.zeros(len(self._snapshot.resources), dtype=np.int64)
        for want in wants:
            vector = self.vector(want)
            if vector is None:
                return None
            total += vector
        return total

    def judged(self, vector: Ints) -> Bools:
        """Choose the columns tightness is judged by: devices where asked for, else all asked."""
        asked: Bools = vector > 0
        scarce: Bools = asked & self._snapshot.devices
        return scarce if scarce.any() else asked

    def mask(self, constraints: Constraints) -> Bools:
        """Which nodes these constraints allow."""
        if constraints not in self._masks:
            found = [obstacle(node, constraints) for node in self._snapshot.nodes]
            self._obstacles[constraints] = found
            self._masks[constraints] = np.array([not reason for reason in found], dtype=np.bool_)
        return self._masks[constraints]

    def fill(self, wants: Sequence[Want], left: Ints, domain: Domain) -> list[int] | None:
        """Give each want a row of the domain, the one with least to spare; spends `left`.

        Largest first, then in clique and index order, so that consecutive ranks sit side by side.
        """
        rows, fitted = self._fill(wants, left, domain)
        return rows if fitted == len(wants) else None

    def _fill(self, wants: Sequence[Want], left: Ints, domain: Domain) -> tuple[list[int], int]:
        rows = [-1] * len(wants)
        fitted = 0
        for position in sorted(range(len(wants)), key=lambda i: -self._size(wants[i])):
            want, vector = wants[position], self.vector(wants[position])
            if vector is None:
                continue
            allowed = self.mask(want.constraints)[domain.start : domain.stop]
            asked = vector > 0  # a node overdrawn in something else may still take the pod
            fits = np.flatnonzero(allowed & (left[:, asked] >= vector[asked]).all(axis=1))
            if fits.size == 0:
                continue
            best = fits[np.argmin(left[fits][:, self.judged(vector)].sum(axis=1))]
            left[best] -= vector
            rows[position] = domain.start + int(best)
            fitted += 1
        return rows, fitted

    def _size(self, want: Want) -> int:
        """Rank by what is scarce: devices before processors and bytes."""
        return sum(amount for name, amount in want.need.items() if "/" in name)

    def refusal(self, free: Ints) -> NoFit:
        """Say what is missing, counting over the whole cluster."""
        snapshot, wants = self._snapshot, self._gang.minimum or self._gang.extras
        everywhere = snapshot.domains[0][0]
        _, fitted = self._fill(wants, free.copy(), everywhere)
        allowed = np.zeros(len(snapshot.nodes), dtype=np.bool_)
        for constraints in {want.constraints for want in wants}:
            allowed |= self.mask(constraints)
        room = np.maximum(free[allowed], 0).sum(axis=0)
        needed: dict[str, int] = {}
        for want in wants:
            for name, amount in want.need.items():
                needed[name] = needed.get(name, 0) + amount
        column = {name: i for i, name in enumerate(snapshot.resources)}
        return NoFit(
            self._gang,
            fitted,
            needed,
            {name: int(room[column[name]]) if name in column else 0 for name in needed},
            int(allowed.sum()),
            len(snapshot.nodes),
            self._counted(allowed),
        )

    def _counted(self, allowed: Bools) -> dict[str, int]:
        counts: dict[str, int] = {}
        first = next(iter(self._obstacles.values()), [])
        for row, reason in enumerate(first):
            if reason and not allowed[row]:
                counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items()))


def largest_pod(gang: GangRequest) -> Amounts:
    """Give the need of the gang's most demanding pod."""
    return max(
        (want.need for want in gang.minimum or gang.extras),
        key=lambda need: sum(v for k, v in need.items() if k != PODS and "/" in k),
        default={},
    )
