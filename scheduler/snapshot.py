"""The cluster as arrays at one instant. A snapshot is never written; a cycle copies what it spends.

Rows are nodes in the order of the first topology, so that each of its domains is a run of rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from api.quantities import Amounts, amounts
from api.streams import Node
from scheduler import topology
from scheduler.topology import Bools, Domain, Ints, Levels, Topology


@dataclass(frozen=True)
class Hold:
    """Room on a node that is taken, or spoken for."""

    node: str
    need: Amounts


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Nodes in topology order, what is free on each, and the domains they form."""

    nodes: tuple[Node, ...]
    resources: tuple[str, ...]
    free: Ints  # nodes x resources, in the units of api.quantities; may be negative
    topologies: tuple[Topology, ...]  # at least one
    row_of: Mapping[str, int]

    @property
    def levels(self) -> tuple[str, ...]:
        """Node label keys of the first topology, widest first."""
        return self.topologies[0].keys

    @property
    def domains(self) -> tuple[tuple[Domain, ...], ...]:
        """Domains of the first topology, by depth."""
        return self.topologies[0].domains

    @property
    def devices(self) -> Bools:
        """Which columns are devices: what is scarce, so what packing is judged by."""
        return np.array(["/" in name for name in self.resources], dtype=np.bool_)

    def topology(self, name: str) -> Topology | None:
        """Give a topology by name, the first one for the empty name, or None if there is none."""
        if not name:
            return self.topologies[0]
        return next((found for found in self.topologies if found.name == name), None)

    def vector(self, need: Amounts) -> Ints | None:
        """Give a need in this snapshot's columns, or None if no node knows one of its resources."""
        if any(need[name] and name not in self.resources for name in need):
            return None
        return np.array([need.get(name, 0) for name in self.resources], dtype=np.int64)


def build(nodes: Iterable[Node], taken: Iterable[Hold], levels: Sequence[Levels]) -> Snapshot:
    """Take stock: what each node has, less what is taken of it, by whomever.

    A level that no node is labelled with is left out.
    """
    every = tuple(nodes)
    first = levels[0].keys
    known = tuple(key for key in first if any(key in node.metadata.labels for node in every))
    ordered = tuple(sorted(every, key=lambda node: topology.sort_key(node, known)))
    capacity = [amounts(node.status.allocatable) for node in ordered]
    resources = tuple(sorted({name for row in capacity for name in row}))
    column = {name: i for i, name in enumerate(resources)}
    row_of = {node.metadata.name: i for i, node in enumerate(ordered)}
    free = np.zeros((len(ordered), len(resources)), dtype=np.int64)
    for row, has in enumerate(capacity):
        for name, amount in has.items():
            free[row, column[name]] = amount
    for hold in taken:
        at = row_of.get(hold.node)
        for name, amount in hold.need.items() if at is not None else ():
            if name in column:
                free[at, column[name]] -= amount
    free.flags.writeable = False
    topologies = tuple(topology.found(each, ordered) for each in levels)
    return Snapshot(ordered, resources, free, topologies, row_of)
