"""Who is on which node, in the order that filters ask: by port, by what pods demand, by label.

A later instant is made from an earlier one and looks again only at rows whose residents are not the
same object any more.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from operator import is_not
from typing import Final, TypeAlias

import numpy as np

from scheduler.filters.constraints import Constraints, Others
from scheduler.filters.ports import Number, addresses
from scheduler.residents import Resident
from scheduler.topology import Ints

_MOST_COUNTS: Final = 64  # each takes some bytes a node

Rows: TypeAlias = Sequence[Sequence[Resident]]
_Label: TypeAlias = tuple[str, str]


class Company:
    """The residents of nodes, row by row. Never written once it is made."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._counts: dict[object, tuple[Ints, Rows]] = {}
        self._ports: dict[Number, dict[int, frozenset[str]]] = {}
        self._terms: dict[Others, dict[int, None]] = {}
        self._by_label: dict[_Label, list[Others]] = {}
        self._unlabelled: list[Others] = []
        self.keys: frozenset[str] = frozenset()  # of the labels by which residents shun pods
        for row, there in enumerate(rows):
            self._enter(row, there)
        self._sort_terms()

    def after(self, rows: Rows, among: Iterable[int] | None = None) -> "Company":
        """Go on with these residents of the same nodes; only those `among` may be others."""
        if rows is self.rows:
            return self
        if among is None:
            changed = list(compress(range(len(rows)), map(is_not, rows, self.rows)))
        else:
            changed = [row for row in sorted(among) if rows[row] is not self.rows[row]]
        if not changed:
            return self
        fresh = Company(())
        fresh.rows = rows
        fresh._counts = dict(self._counts)
        fresh._ports, fresh._terms = dict(self._ports), dict(self._terms)
        numbers, terms = _said([self.rows[row] for row in changed], [rows[row] for row in changed])
        for number in numbers:
            fresh._ports[number] = dict(self._ports.get(number, {}))
        for term in terms:
            fresh._terms[term] = dict(self._terms.get(term, {}))
        for row in changed if numbers or terms else ():
            for number in numbers:
                fresh._ports[number].pop(row, None)
            for term in terms:
                fresh._terms[term].pop(row, None)
            fresh._enter(row, rows[row])
        if terms:
            fresh._sort_terms()
        else:
            fresh._by_label, fresh._unlabelled = self._by_label, self._unlabelled
            fresh.keys = self.keys
        return fresh

    def taken(self, number: Number) -> Iterator[tuple[int, frozenset[str]]]:
        """List the rows on which this port is taken, and the addresses it is taken at."""
        yield from self._ports.get(number, {}).items()

    @property
    def shuns(self) -> bool:
        """Whether any resident demands anything of others."""
        return bool(self._terms)

    def shunning(self, pod: Constraints) -> Iterator[tuple[Others, Ints]]:
        """List what residents demand that keeps such a pod away, and their rows.

        Where a namespace cannot be judged, it is taken to be meant.
        """
        candidates = [t for label in pod.labels for t in self._by_label.get(label, ())]
        for term in dict.fromkeys((*candidates, *self._unlabelled)):
            if term.take(pod.namespace, pod.label_map, doubtful=True):
                yield term, np.fromiter(self._terms[term], np.int64)

    def count(self, asked: object, judge: Callable[[Resident], bool]) -> Ints:
        """Count by row the residents that are judged so; equal questions must judge alike."""
        found = self._counts.get(asked)
        if found is None:
            if len(self._counts) >= _MOST_COUNTS:
                self._counts.clear()
            counts = np.zeros(len(self.rows), dtype=np.int64)
            changed: Sequence[int] = range(len(self.rows))
        else:
            counts, before = found
            if before is self.rows:
                return counts
            changed = list(compress(range(len(self.rows)), map(is_not, self.rows, before)))
            counts = counts.copy()
        for row in changed:
            counts[row] = sum(map(judge, self.rows[row]))
        self._counts[asked] = counts, self.rows
        return counts

    def _enter(self, row: int, there: Sequence[Resident]) -> None:
        for resident in there:
            for number, address in addresses(resident.ports):
                at = self._ports.setdefault(number, {})
                at[row] = at.get(row, frozenset()) | {address}
            for term in resident.anti:
                known = self._terms.setdefault(Others.of(term, resident.namespace), {})
                known[row] = None

    def _sort_terms(self) -> None:
        """Put each demand under labels of which a pod must have one, so that few are looked at."""
        self._by_label, self._unlabelled = {}, []
        self._terms = {term: rows for term, rows in self._terms.items() if rows}
        for term in self._terms:
            if term.selector is None:
                continue
            first = next((e for e in term.selector if e.operator == "In"), None)
            if first is None:
                self._unlabelled.append(term)
            else:
                for value in first.values:
                    self._by_label.setdefault((first.key, value), []).append(term)
        self.keys = frozenset(e.key for term in self._terms for e in term.selector or ())


def _said(*rows: Rows) -> tuple[set[Number], set[Others]]:
    """Gather the ports and demands of all who are or were there."""
    numbers: set[Number] = set()
    terms: set[Others] = set()
    for there in (there for each in rows for there in each):
        for resident in there:
            numbers |= {number for number, _ in addresses(resident.ports)}
            terms |= {Others.of(term, resident.namespace) for term in resident.anti}
    return numbers, terms
