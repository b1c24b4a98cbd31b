"""Which nodes each pod may use apart from room: all filters together, for all nodes at once.

Masks hang on a snapshot. The next snapshot's are made from them by `after`, which costs as much as
has changed; answers are remembered. What is given out is never written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from api.streams import Node
from scheduler.filters import beside
from scheduler.filters.columns import Column
from scheduler.filters.company import Company, Rows
from scheduler.filters.constraints import Constraints, shared
from scheduler.filters.nodes import Nodes
from scheduler.topology import Bools, Ints

_MOST_ANSWERS: Final = 1_000  # each takes a byte a node at most
_MOST_SETTLED: Final = 50_000


class Masks:
    """Answers for nodes, and for the residents of each of them, in the same order."""

    def __init__(self, nodes: Sequence[Node], residents: Rows = ()) -> None:
        self._nodes = Nodes(nodes)
        self._company = Company(residents or [()] * len(nodes))
        self._found: dict[Constraints, Bools] = {}
        self._settled: dict[Constraints, Constraints] = {}

    def after(
        self, nodes: Sequence[Node], residents: Rows, changed: Iterable[int] | None = None
    ) -> "Masks":
        """Go on with these; nodes and residents that are the same objects are not looked at.

        If it is known of which rows alone residents may be others, only these are compared.
        """
        fresh = Masks((), ())
        fresh._nodes = self._nodes.after(nodes)
        # Rows stay those of the same nodes exactly where what is known of nodes was kept.
        same = fresh._nodes.keeps(self._nodes)
        fresh._company = self._company.after(residents, changed) if same else Company(residents)
        if fresh._company is self._company:
            fresh._settled = self._settled
        return fresh

    def mask(self, constraints: Constraints) -> Bools:
        """Which nodes the pod may use now: by what they say, and by what is on and near them."""
        settled = self.settled(constraints)
        if settled is settled.alone:
            return self._nodes.mask(settled)
        found = self._found.get(settled)
        if found is None:
            found = self._nodes.mask(settled).copy()
            for _, excluded in beside.barriers(self._nodes, self._company, settled):
                found &= ~excluded
            found.flags.writeable = False
            if len(self._found) >= _MOST_ANSWERS:
                self._found.clear()
            self._found[settled] = found
        return found

    def settled(self, constraints: Constraints, mates: Iterable[Constraints] = ()) -> Constraints:
        """Leave out all that makes no difference here, so that more pods are alike.

        What the pod must be near is left out too where `mates`, who are placed with it, can be who
        is meant: then a finished placement tells, see `together.conflict`.
        """
        if constraints.lonely and not self._company.shuns:
            return constraints.alone
        found = self._settled.get(constraints)
        if found is None:
            found = self._settle(constraints)
            if len(self._settled) >= _MOST_SETTLED:
                self._settled.clear()
            self._settled[constraints] = found
        if found.near and any(_meant(found, mate) for mate in mates):
            return replace(found, near=tuple(replace(term, met=True) for term in found.near))
        return found

    def barriers(self, constraints: Constraints) -> tuple[tuple[str, Bools], ...]:
        """Give for each filter all nodes that it keeps the pod off, in kube-scheduler's order."""
        settled = self.settled(constraints)
        by_nodes = self._nodes.barriers(settled)
        if settled is settled.alone:
            return by_nodes
        return (*by_nodes, *beside.barriers(self._nodes, self._company, settled))

    def reasons(self, constraints: Constraints) -> tuple[tuple[str, ...], Ints]:
        """Name filters, and give for each node the place of the first that excludes it, or -1."""
        found = self.barriers(constraints)
        excluded = np.array([each for _, each in found])
        first = np.where(excluded.any(axis=0), excluded.argmax(axis=0), -1)
        return tuple(name for name, _ in found), first

    def obstacles(self, constraints: Constraints) -> Mapping[str, int]:
        """Count the nodes that each filter takes, the first that takes a node counting."""
        names, first = self.reasons(constraints)
        counts = np.bincount(first[first >= 0], minlength=len(names))
        return {name: int(n) for name, n in zip(names, counts, strict=True) if n}

    def column(self, key: str) -> Column:
        """Give a node label as codes."""
        return self._nodes.column(key)

    @property
    def nodes(self) -> Nodes:
        """What nodes say themselves."""
        return self._nodes

    @property
    def company(self) -> Company:
        """Who is there."""
        return self._company

    def _settle(self, pod: Constraints) -> Constraints:
        if pod.lonely and not any(True for _ in self._company.shunning(pod)):
            return pod.alone
        keys = pod.asked | self._company.keys
        labels = tuple(each for each in pod.labels if each[0] in keys)
        known = self._company.shuns or pod.near or pod.apart or pod.spread
        return shared(
            replace(pod, labels=labels, namespace=pod.namespace if known else "", left=())
        )


def _meant(pod: Constraints, mate: Constraints) -> bool:
    labels = mate.label_map
    return all(term.take(mate.namespace, labels, doubtful=False) for term in pod.near)
