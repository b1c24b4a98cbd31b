"""What is free while a batch is planned, and how many pods of each shape that makes, by domain.

A Room begins as a snapshot and is spent gang by gang. Searching takes nothing from it: what a
search finds is spent at once when it is done, or never. Columns that gangs ask for are kept: those
of the untouched snapshot as long as it lives, those of a Room by counting again what was touched.
The next snapshot of the same stock takes them over in the same way.
"""

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from api.quantities import Amounts
from scheduler.cells import Layout, layout
from scheduler.filters.constraints import Constraints
from scheduler.filters.together import Seated, Seating, exclusive_keys
from scheduler.requests import GangRequest, Kin, Spread
from scheduler.snapshot import Latest, Snapshot
from scheduler.sums import Column, column_of
from scheduler.topology import Bools, Ints, Topology

_MOST_MASKS: Final = 500
_MOST_OLDER: Final = 60  # columns that are taken over from one snapshot to the next
_WORTH: Final = 8  # counting a row again costs no more than so many counted all at once
_FEW: Final = 8  # touched rows that are better counted one by one
_MANY: Final = 1 << 30  # pods, more than any node takes; sums of it stay within 64 bits

Key = TypeVar("Key")
Need: TypeAlias = tuple[tuple[int, int], ...]
"""Column and amount, by column, of everything that is asked for."""


@dataclass(frozen=True)
class Shape:
    """What pods that are alike take, and where they may go: by the number of a Room's mask."""

    need: Need
    mask: int


@dataclass(eq=False)
class _Known:
    """What was worked out of a snapshot that nobody has spent anything of."""

    free: Ints
    capacity: Ints
    row_of: Mapping[str, int]
    resources: tuple[str, ...]
    names: list[str]
    masks: list[Bools] = field(default_factory=list)
    number: dict[bytes, int] = field(default_factory=dict)
    mask_of: dict[Constraints, int] = field(default_factory=dict)
    columns: dict[tuple[Shape, Layout], Column] = field(default_factory=dict)
    totals: dict[Layout, Column] = field(default_factory=dict)
    # Those of the snapshot before, with the rows that have changed since, some more than once.
    older: dict[tuple[Shape, Layout], tuple[Column, Ints]] = field(default_factory=dict)
    older_totals: dict[Layout, tuple[Column, Ints]] = field(default_factory=dict)


_known: WeakKeyDictionary[Snapshot, _Known] = WeakKeyDictionary()
_last: WeakKeyDictionary[Latest, _Known] = WeakKeyDictionary()


def _knowing(snapshot: Snapshot) -> _Known:
    """Give what is known of a snapshot; of a new one at first what was known of that before it."""
    found = _known.get(snapshot)
    if found is None:
        before = _last.get(snapshot.latest)
        found = _after(before, snapshot) if before is not None else None
        if found is None:
            # Columns are read far more often than rows.
            free = np.asfortranarray(snapshot.free)
            names = [node.metadata.name for node in snapshot.nodes]
            found = _Known(free, snapshot.capacity, snapshot.row_of, snapshot.resources, names)
        _known[snapshot] = _last[snapshot.latest] = found
    return found


def _after(before: _Known, snapshot: Snapshot) -> _Known | None:
    """Take over what was known if rows and columns mean the same, and it has not become much."""
    same = before.row_of is snapshot.row_of and before.resources == snapshot.resources
    if not same or len(before.masks) > _MOST_MASKS:
        return None
    differ = (before.free != snapshot.free).any(axis=1)
    if before.capacity is not snapshot.capacity:
        differ |= (before.capacity != snapshot.capacity).any(axis=1)
    rows = np.flatnonzero(differ)
    found = replace(
        before,
        free=before.free.copy(order="F"),
        capacity=snapshot.capacity,
        mask_of={},
        columns={},
        totals={},
        older=_grown(before.older, before.columns, rows),
        older_totals=_grown(before.older_totals, before.totals, rows),
    )
    found.free[rows] = snapshot.free[rows]
    return found


def _grown(
    older: Mapping[Key, tuple[Column, Ints]], columns: Mapping[Key, Column], rows: Ints
) -> dict[Key, tuple[Column, Ints]]:
    """Keep those asked for last, unless there is so much to count again that it saves nothing."""
    found = {
        key: (column, np.concatenate((since, rows)))
        for key, (column, since) in older.items()
        if (since.size + rows.size) * _WORTH < len(column.values)
    }
    found |= {key: (column, rows) for key, column in columns.items()}
    return dict(list(found.items())[-_MOST_OLDER:])


@dataclass(eq=False)
class _Kept:
    """Rows of those gangs of a batch that somebody minds, of the first so many placed."""

    replicas: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    seen: int = 0


class Room:
    """A snapshot's room, and what a batch has taken of it so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known = _knowing(snapshot)
        self.free = self._known.free.copy(order="F")  # rows x columns
        self.devices = snapshot.devices
        self.seating = Seating(snapshot.masks)
        self._column = {name: i for i, name in enumerate(snapshot.resources)}
        # Columns behind those of resources are of keys that a node has once.
        self.resources = len(self._column)
        self._keys: dict[Hashable, int] = {}
        self._columns: dict[tuple[Shape, Layout], Column] = {}
        self._totals: dict[Layout, Column] = {}
        self._touched = array("q")  # rows
        self._devices: list[int] = np.flatnonzero(snapshot.devices).tolist()
        self._kept: dict[str, list[tuple[Kin, list[int]]]] = {}  # by namespace
        self._kept_among: dict[Hashable, _Kept] = {}
        self.choosy = False  # whether somebody placed minds who is near
        self.names = self._known.names

    def layout(self, topology: Topology) -> Layout:
        """Give a topology's tree of cells."""
        return layout(topology)

    def shape(
        self, asked: Amounts, constraints: Constraints, mates: Iterable[Constraints] = ()
    ) -> Shape | None:
        """Write down what a pod asks for, or give None if no node knows one of its resources.

        What it must be near may also be its mates, who are placed with it, and whom the batch has
        placed before; that they are is judged when all have their places.
        """
        need = []
        for name, amount in asked.items():
            if amount:
                at = self._column.get(name)
                if at is None:
                    return None
                need.append((at, amount))
        if not constraints.lonely:
            need += [(self._key(key), 1) for key in exclusive_keys(constraints)]
        settled = self.snapshot.masks.settled(constraints, chain(mates, self.seating.pods))
        mask = self._mask_of(settled)
        barred = self.seating.barred(constraints)
        if barred is not None:
            mask = self.numbered(self._known.masks[mask] & ~barred)
        return Shape(tuple(sorted(need)), mask)

    def mask(self, constraints: Constraints) -> Bools:
        """Which rows a pod may use, by what was there before the batch."""
        return self.snapshot.masks.mask(constraints)

    def _mask_of(self, constraints: Constraints) -> int:
        """Number which rows a pod may use; pods that may use the same have the same number."""
        found = self._known.mask_of.get(constraints)
        if found is None:
            found = self._known.mask_of[constraints] = self.numbered(self.mask(constraints))
        return found

    def both(self, one: int, other: int) -> int:
        """Number the rows that two masks have in common."""
        return self.numbered(self._known.masks[one] & self._known.masks[other])

    def within(self, mask: int, rows: "Bools | int") -> int:
        """Number what a mask leaves of these rows, or of one."""
        if isinstance(rows, int):
            allowed = np.zeros(len(self.names), dtype=np.bool_)
            allowed[rows] = self._known.masks[mask][rows]
            return self.numbered(allowed)
        return self.numbered(self._known.masks[mask] & rows)

    def numbered(self, allowed: Bools) -> int:
        """Number a mask of rows; the same rows have the same number."""
        known = self._known
        key = allowed.tobytes()
        found = known.number.get(key)
        if found is None:
            found = known.number[key] = len(known.masks)
            known.masks.append(allowed)
        return found

    def _key(self, key: Hashable) -> int:
        """Number the column of what each node has once."""
        found = self._keys.get(key)
        if found is None:
            found = self._keys[key] = self.free.shape[1]
            ones = np.ones((len(self.free), 1), dtype=np.int64)
            self.free = np.asfortranarray(np.hstack([self.free, ones]))
        return found

    def column(self, shape: Shape, where: Layout) -> Column:
        """How many pods of a shape each position takes by itself now. Not to be written."""
        key = shape, where
        found = self._columns.get(key)
        if found is None:
            base = self._known.columns.get(key) or self._older(shape, where)
            if base is None:
                base = column_of(where, _by_position(where, self._fitting(shape)))
                base.seen = len(self._touched)
                if not base.seen and not self._keys:
                    self._known.columns[key] = base
            found = self._columns[key] = base
        if found.seen < len(self._touched):
            if found is self._known.columns.get(key):
                found = self._columns[key] = found.copy()
            self._catch_up(found, shape, where)
        return found

    def _catch_up(self, column: Column, shape: Shape, where: Layout) -> None:
        """Count again what was touched since the column was last right."""
        mask = self._known.masks[shape.mask]
        if len(self._touched) - column.seen > _FEW:
            rows = np.array(self._touched[column.seen :])
            fits = slots(self.free, shape.need, rows) * mask[rows]
            column.renew(where, where.topology.position[rows], fits)
            column.seen = len(self._touched)
            return
        free, position = self.free, where.topology.position
        for row in self._touched[column.seen :]:
            value = 0
            if mask.item(row):
                counts = [free.item(row, at) // amount for at, amount in shape.need]
                value = max(0, min([_MANY, *counts]))
            column.set(where, position.item(row), value)
        column.seen = len(self._touched)

    def _older(self, shape: Shape, where: Layout) -> Column | None:
        """Bring the column of the snapshot before up to date, if there is one."""
        known = self._known
        before, rows = known.older.pop((shape, where), (None, None))
        if before is None or rows is None:
            return None
        found = known.columns[shape, where] = before.copy()
        fits = slots(known.free, shape.need, rows) * known.masks[shape.mask][rows]
        found.renew(where, where.topology.position[rows], fits)
        return found

    def _older_totals(self, where: Layout) -> Column | None:
        before, rows = self._known.older_totals.pop(where, (None, None))
        if before is None or rows is None:
            return None
        found = self._known.totals[where] = before.copy()
        rows = np.array(sorted(set(rows.tolist())), dtype=np.int64)
        found.put(where, where.topology.position[rows], self._total_of(self._known.free, rows))
        return found

    def _fitting(self, shape: Shape) -> Ints:
        return slots(self.free, shape.need) * self._known.masks[shape.mask]

    def barred(self, column: Column, where: Layout, allowed: Bools) -> Column:
        """Give the column with nothing left where a position is not allowed."""
        return column_of(where, column.values * allowed)

    def totals(self, where: Layout) -> Column:
        """What is free of each resource, nowhere less than nothing; then of all devices together,
        how many nodes have devices, and how many of these are free whole. Not to be written.
        """
        found = self._totals.get(where)
        if found is None:
            base = self._known.totals.get(where) or self._older_totals(where)
            if base is None:
                base = column_of(where, _by_position(where, self._total_of(self.free)))
                base.seen = len(self._touched)
                if not base.seen:
                    self._known.totals[where] = base
            found = self._totals[where] = base
        if found.seen < len(self._touched):
            if found is self._known.totals.get(where):
                found = self._totals[where] = found.copy()
            rows = list(dict.fromkeys(self._touched[found.seen :]))
            values = np.array([self._total_at(row) for row in rows], dtype=np.int64)
            found.put(where, where.topology.position[rows], values)
            found.seen = len(self._touched)
        return found

    def spend(self, taken: Mapping[int, Iterable[tuple[Need, int]]]) -> None:
        """Take so many times each need of these rows."""
        for row, needs in taken.items():
            free = self.free[row]
            for need, times in needs:
                for at, amount in need:
                    free[at] -= amount * times
            self._touched.append(row)

    def settled(self, constraints: Constraints) -> Constraints:
        """Leave out who a pod is, where nobody there or placed minds who comes."""
        if self.choosy or self.snapshot.masks.company.shuns or not constraints.lonely:
            return constraints
        return constraints.alone

    def seat(self, seats: Sequence[Seated]) -> None:
        """Remember who was placed, for those who mind them."""
        self.seating.add(seats)
        self.choosy = self.choosy or not all(constraints.lonely for _, constraints in seats)

    def keep(self, gang: GangRequest, rows: list[int]) -> None:
        """Remember where a gang went, for those that come later in the batch and mind it."""
        self._kept.setdefault(gang.namespace, []).append((gang.kin, rows))

    def siblings(self, gang: GangRequest, spread: Spread) -> tuple[list[str], list[int]]:
        """Give rows that a gang's siblings are on, and the replica that each is there for.

        Those of its own replica are among them, but for the gang itself.
        """
        row_of = self.snapshot.row_of
        replicas: list[str] = []
        rows: list[int] = []
        for sibling in spread.taken:
            there = [row_of[name] for name in sibling.nodes if name in row_of]
            replicas += [sibling.replica] * len(there)
            rows += there
        family = gang.kin.family if spread.among is None else ""
        key = gang.namespace, family, spread.among
        kept = self._kept_among.setdefault(key, _Kept())
        placed = self._kept.get(gang.namespace, [])
        for kin, more in placed[kept.seen :]:
            if spread.concerns(gang, gang.namespace, kin):
                kept.replicas += [kin.replica] * len(more)
                kept.rows += more
        kept.seen = len(placed)
        return replicas + kept.replicas, rows + kept.rows

    def _total_at(self, row: int) -> list[int]:
        """The row of `totals` of one row, as `_total_of` works it out for many."""
        free = self.free[row, : self.resources].tolist()
        found = [max(0, amount) for amount in free]
        capacity = self.snapshot.capacity
        spare, some, whole = 0, False, True
        for at in self._devices:
            has = capacity.item(row, at)
            spare += found[at]
            some = some or has > 0
            whole = whole and free[at] >= has
        return [*found, spare, some, some and whole]

    def _total_of(self, free: Ints, rows: Ints | None = None) -> Ints:
        """The rows of `totals`, or all of them, by what is free."""
        if rows is None:
            rows = np.arange(len(free))
        free = free[rows, : self.resources]
        found = np.empty((len(free), self.resources + 3), dtype=np.int64)
        np.maximum(free, 0, out=found[:, :-3])
        found[:, -3] = found[:, :-3][:, self.devices].sum(axis=1)
        has = self.snapshot.capacity[rows][:, self.devices]
        found[:, -2] = (has > 0).any(axis=1)
        found[:, -1] = found[:, -2] * (free[:, self.devices] >= has).all(axis=1)
        return found


def slots(free: Ints, need: Need, rows: Ints | None = None) -> Ints:
    """How many times each row, or each of these, holds the need; what it does not ask for may be
    overdrawn.
    """
    if not need:
        return np.full(len(free if rows is None else rows), _MANY, dtype=np.int64)
    (at, amount), *others = need
    found: Ints = (free[:, at] if rows is None else free[:, at][rows]) // amount
    for at, amount in others:
        there = free[:, at] if rows is None else free[:, at][rows]
        np.minimum(found, there // amount, out=found)
    np.maximum(found, 0, out=found)
    return np.minimum(found, _MANY, out=found)


def _by_position(where: Layout, values: Ints) -> Ints:
    return values if where.straight else values[where.topology.order]
