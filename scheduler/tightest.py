"""Which rows to fill when so many pods are to go on as few nodes of a domain as waste the least."""

from typing import Final

import numpy as np

from scheduler.topology import Ints

_FEW: Final = 64  # rows that are better looked at one by one


def tightest(slots: Ints, wanted: int) -> Ints:
    """Give the rows with the fewest slots, but some, that have so many between them; these first.

    Slots are no more than what is wanted, so that they can be counted.
    """
    few = slots.size <= _FEW
    return of_few(slots.tolist(), wanted) if few else of_many(slots, wanted)


def of_many(slots: Ints, wanted: int) -> Ints:
    """The same without a look at each row."""
    counts = np.bincount(slots, minlength=wanted + 1)
    most = int(np.searchsorted(np.cumsum(counts * np.arange(wanted + 1)), wanted))
    fewer = np.zeros(0, dtype=np.int64)
    if counts[1:most].any():
        fewer = np.flatnonzero((slots > 0) & (slots < most))
        fewer = fewer[np.argsort(slots[fewer], kind="stable")]
    if most > wanted:
        return fewer  # and there are no others
    rest = wanted - int(slots[fewer].sum())
    return np.concatenate([fewer, np.flatnonzero(slots == most)[: -(-rest // most)]])


def of_few(slots: list[int], wanted: int) -> Ints:
    """The same where there are so few rows that it is quicker told one by one."""
    order = sorted([row for row, fit in enumerate(slots) if fit], key=slots.__getitem__)
    found = 0
    for i, row in enumerate(order):
        found += slots[row]
        if found >= wanted:
            del order[i + 1 :]
            break
    return np.array(order, dtype=np.int64)
