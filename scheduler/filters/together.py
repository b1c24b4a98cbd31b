"""What pods of one plan mean for each other: ports, nearness, distance, even spread.

Most of it is kept by the search, which gives each node one of every exclusive key. The rest is
judged when a placement is finished.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from api import names
from scheduler.filters import beside
from scheduler.filters.classes import AFFINITY, APART, PORTS, SPREAD
from scheduler.filters.constraints import Constraints, HardSpread, Others, selects
from scheduler.filters.masks import Masks
from scheduler.filters.ports import Number, addresses, clash
from scheduler.topology import Bools, Ints

Seated: TypeAlias = tuple[int, Constraints]
"""A pod of a plan: the row it got, and what it demands."""

Seats: TypeAlias = dict[Constraints, Ints]
"""Rows of pods that are alike."""

_Alike: TypeAlias = tuple[Constraints, Ints]


def exclusive_keys(pod: Constraints) -> tuple[Hashable, ...]:
    """Name what such a pod takes of its node that each node has once.

    A host port, at whatever address; being the only one of its kind, where such pods shun each
    other on one node.
    """
    numbers = {number for number, _ in addresses(pod.ports)}
    alone = (
        term
        for term in pod.apart
        if term.key == names.HOSTNAME_KEY and term.take(pod.namespace, pod.label_map, doubtful=True)
    )
    return (*sorted(numbers), *alone)


class Seating:
    """The pods that a plan has placed so far, as those that come must reckon with them."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._rows: dict[Constraints, list[int]] = {}
        self._ports: dict[Number, dict[int, set[str]]] = {}
        self._shunning: dict[Constraints, None] = {}

    def add(self, placed: Iterable[Seated]) -> None:
        """Let pods have their places."""
        # Most pods of a gang demand the same, which is told by what it is, not by what is in it.
        known: dict[int, list[int]] = {}
        placed = list(placed)  # none of them may go meanwhile
        for row, pod in placed:
            rows = known.get(id(pod))
            if rows is None:
                rows = known[id(pod)] = self._rows.setdefault(pod, [])
                if pod.apart:
                    self._shunning[pod] = None
            rows.append(row)
            if pod.ports:
                for number, address in addresses(pod.ports):
                    self._ports.setdefault(number, {}).setdefault(row, set()).add(address)

    @property
    def pods(self) -> Iterable[Constraints]:
        """What the pods demand that have their places."""
        return self._rows.keys()

    def barred(self, pod: Constraints) -> Bools | None:
        """Which rows are near pods that shun this one, or that it shuns; None if there are none."""
        found: Bools | None = None
        pairs = [(term, pod, other) for other in self._shunning for term in other.apart]
        pairs += [(term, other, other) for term in pod.apart for other in self._rows]
        for term, meant, other in pairs:
            if term.take(meant.namespace, meant.label_map, doubtful=True):
                rows = np.array(self._rows[other], dtype=np.int64)
                near = beside.around(self._masks.column(term.key), rows)
                found = near if found is None else found | near
        return found

    def conflict(self, placed: Sequence[Seated]) -> str:
        """Name the filter that pods of one placement would fail because of others of the plan.

        Gives "" if there is none. Pods that were placed before were judged then; what they demand
        is judged again where these pods come near them.
        """
        if not self._shunning:
            alike = {id(pod): pod for _, pod in placed}
            if all(pod.lonely for pod in alike.values()):
                return ""
        return next(self._conflicts(placed), "")

    def _conflicts(self, placed: Sequence[Seated]) -> Iterator[str]:
        """Find one after the other; what costs more comes later."""
        ours = _seats(placed)
        if self._ports_clash(placed):
            yield PORTS
        if _shunned(self._masks, ours, ours, self._theirs(self._shunning)):
            yield APART
        if all(not (pod.near or pod.apart or pod.spread) for pod in ours):
            return
        theirs = self._theirs(self._rows)
        if _shunned(self._masks, ours, theirs, {}):
            yield APART
        spread = [(pod, each) for pod in ours for each in pod.spread]
        if any(_uneven(self._masks, (ours, theirs), pod, each) for pod, each in spread):
            yield SPREAD
        if _forlorn(self._masks, ours, theirs):
            yield AFFINITY

    def _theirs(self, pods: Iterable[Constraints]) -> Seats:
        return {pod: np.array(self._rows[pod], dtype=np.int64) for pod in pods}

    def _ports_clash(self, placed: Iterable[Seated]) -> bool:
        taken: dict[tuple[Number, int], set[str]] = {}
        for row, pod in placed:
            own = list(addresses(pod.ports))
            for number, address in own:
                before = self._ports.get(number, {}).get(row, set())
                if clash(address, before) or clash(address, taken.get((number, row), ())):
                    return True
            for number, address in own:
                taken.setdefault((number, row), set()).add(address)
        return False


def conflict(masks: Masks, placed: Sequence[Seated], before: Iterable[Seated] = ()) -> str:
    """Name the filter that pods of one placement would fail because of each other, or give ""."""
    seating = Seating(masks)
    seating.add(before)
    return seating.conflict(placed)


def _seats(seated: Iterable[Seated]) -> Seats:
    rows: dict[Constraints, list[int]] = {}
    for row, pod in seated:
        rows.setdefault(pod, []).append(row)
    return {pod: np.array(found, dtype=np.int64) for pod, found in rows.items()}


def _shunned(masks: Masks, ours: Seats, others: Seats, shunning: Seats) -> bool:
    """Whether ours are too near to others, or to those who shun them."""
    for pod, rows in ours.items():
        for term in pod.apart:
            if any(_too_near(masks, term, (pod, rows), each) for each in others.items()):
                return True
    return any(
        _too_near(masks, term, (pod, rows), each)
        for pod, rows in shunning.items()
        for term in pod.apart
        for each in ours.items()
    )


def _too_near(masks: Masks, term: Others, owner: _Alike, others: _Alike) -> bool:
    """Whether one of the owners is near one of the others, themselves not counted."""
    pod, there = others
    if not term.take(pod.namespace, pod.label_map, doubtful=True):
        return False
    codes = masks.column(term.key).codes
    near = codes[there]
    if there is owner[1]:
        return bool((np.bincount(near[near > 0]) > 1).any())
    at = codes[owner[1]]
    return bool(np.isin(at[at > 0], near).any())


def _uneven(masks: Masks, everybody: Iterable[Seats], pod: Constraints, spread: HardSpread) -> bool:
    """Whether the end is uneven where one of these pods is.

    If the end is even enough, there is an order in which each step is; who is pinned is judged by
    less than that.
    """
    if not spread.selector:
        return False  # kube-scheduler counts nobody where everybody is meant
    ours, theirs = everybody
    column = masks.column(spread.key)
    counting = beside.eligible(masks.nodes, pod, spread)
    counts = beside.alike(masks.company, pod.namespace, spread).copy()
    for other, rows in (*ours.items(), *theirs.items()):
        if other.namespace == pod.namespace and selects(spread.selector, other.label_map):
            np.add.at(counts, rows, 1)
    here, least = beside.levels(column.codes, counting, np.where(counting, counts, 0), spread)
    rows = ours[pod]
    if (here[rows] - least > spread.max_skew).any():
        return True
    strict = spread.by_affinity and spread.min_domains > 1
    return strict and bool((counts[rows] > spread.max_skew).any())


def _forlorn(masks: Masks, ours: Seats, theirs: Seats) -> bool:
    """Whether there is no order in which each pod finds those it must be near.

    Pods are bound one after another. Who finds nobody of the kind anywhere, and is of it, may be
    the first.
    """
    waiting = {pod: rows for pod, rows in ours.items() if pod.near}
    if not waiting:
        return False
    there = [*theirs.items(), *((pod, rows) for pod, rows in ours.items() if not pod.near)]
    moved = True
    while waiting and moved:
        moved = False
        for pod, rows in list(waiting.items()):
            found = _finding(masks, there, pod, rows)
            if found.any():
                moved = True
                there.append((pod, rows[found]))
                waiting[pod] = rows[~found]
                if found.all():
                    del waiting[pod]
    return bool(waiting)


def _finding(
    masks: Masks, there: Sequence[tuple[Constraints, Ints]], pod: Constraints, rows: Ints
) -> Bools:
    """Which of these pods could be bound now."""
    mates = [
        others
        for other, others in there
        if all(t.take(other.namespace, other.label_map, doubtful=False) for t in pod.near)
    ]
    residents = np.flatnonzero(beside.matching(masks.company, pod.near, doubtful=False))
    found = np.concatenate([residents, *mates])
    columns = [masks.column(term.key) for term in pod.near]
    near = np.ones(len(rows), dtype=np.bool_)
    for column in columns:
        near &= beside.around(column, found)[rows]
    nobody = not any((column.codes[found] > 0).any() for column in columns)
    if nobody and beside.first_of_its_kind(pod):
        near[0] = all(column.codes[rows[0]] > 0 for column in columns)
    return near
