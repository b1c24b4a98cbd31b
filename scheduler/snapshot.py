"""The cluster as arrays at one instant. A snapshot is never written; a cycle copies what it spends.

Nodes are sorted by their topology path, so that every domain (a zone, a block of it, a rack of
that) is one run of consecutive rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from api.quantities import Amounts, amounts
from api.streams import Node

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Hold:
    """Room on a node that is taken, or spoken for."""

    node: str
    need: Amounts


@dataclass(frozen=True)
class Domain:
    """A run of nodes that share a topology path. The whole cluster is the domain with no path."""

    path: tuple[str, ...]
    start: int
    stop: int

    def holds(self, rows: Iterable[int]) -> bool:
        """Whether all these rows lie inside."""
        return all(self.start <= row < self.stop for row in rows)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Nodes in topology order, what is free on each, and the domains they form."""

    nodes: tuple[Node, ...]
    resources: tuple[str, ...]
    free: Ints  # nodes x resources, in the units of api.quantities; may be negative
    levels: tuple[str, ...]
    domains: tuple[tuple[Domain, ...], ...]  # by depth: the cluster first, then one tuple a level
    row_of: Mapping[str, int]

    @property
    def devices(self) -> Bools:
        """Which columns are devices: what is scarce, so what packing is judged by."""
        return np.array(["/" in name for name in self.resources], dtype=np.bool_)

    def vector(self, need: Amounts) -> Ints | None:
        """Give a need in this snapshot's columns, or None if no node knows one of its resources."""
        if any(need[name] and name not in self.resources for name in need):
            return None
        return np.array([need.get(name, 0) for name in self.resources], dtype=np.int64)


def build(nodes: Iterable[Node], taken: Iterable[Hold], levels: Sequence[str]) -> Snapshot:
    """Take stock: what each node has, less what is taken of it, by whomever.

    A level that no node is labelled with is left out.
    """
    every = tuple(nodes)
    known = tuple(key for key in levels if any(key in node.metadata.labels for node in every))
    ordered = tuple(sorted(every, key=lambda node: (_path(node, known), _natural(node))))
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
    return Snapshot(ordered, resources, free, known, _domains(ordered, known), row_of)


def _path(node: Node, levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(node.metadata.labels.get(level, "") for level in levels)


def _natural(node: Node) -> tuple[int, str]:
    # node-9 before node-10: neighbours by number are usually neighbours by cable.
    return len(node.metadata.name), node.metadata.name


def _domains(nodes: Sequence[Node], levels: Sequence[str]) -> tuple[tuple[Domain, ...], ...]:
    paths = [_path(node, levels) for node in nodes]
    by_depth: list[tuple[Domain, ...]] = [(Domain((), 0, len(nodes)),)]
    for depth in range(1, len(levels) + 1):
        starts = [
            i for i in range(len(paths)) if i == 0 or paths[i][:depth] != paths[i - 1][:depth]
        ]
        stops = [*starts[1:], len(paths)]
        by_depth.append(
            tuple(
                Domain(paths[start][:depth], start, stop)
                for start, stop in zip(starts, stops, strict=True)
                # A node without the label is in no domain of that level.
                if paths[start][depth - 1]
            )
        )
    return tuple(by_depth)
