"""A network as ranges of nodes: sorted by their path, every domain is one run of them.

A cluster may have several topologies. Each brings the order in which its domains are runs; of the
first one that is the order of the snapshot's rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from api.streams import Node

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Domain:
    """A run of nodes that share a topology path. The whole cluster is the domain with no path."""

    path: tuple[str, ...]
    start: int
    stop: int

    def holds(self, positions: Iterable[int]) -> bool:
        """Whether all these lie inside."""
        return all(self.start <= position < self.stop for position in positions)


@dataclass(frozen=True)
class Levels:
    """A topology as it is configured: node label keys, widest first."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Topology:
    """A topology as it is found: a level that no node is labelled with is left out."""

    name: str
    keys: tuple[str, ...]
    order: Ints  # the row at each position
    position: Ints  # the position of each row
    domains: tuple[tuple[Domain, ...], ...]  # by depth: the cluster first, then one tuple a level

    def depth_of(self, key: str) -> int | None:
        """How deep the level is that this label tells apart; None if it is none of this network."""
        return self.keys.index(key) + 1 if key in self.keys else None


def sort_key(node: Node, keys: Sequence[str]) -> tuple[tuple[str, ...], int, str]:
    """Order nodes by path, and neighbours by number, who are usually neighbours by cable."""
    return path(node, keys), len(node.metadata.name), node.metadata.name


def path(node: Node, keys: Sequence[str]) -> tuple[str, ...]:
    """Name the node's domain of each level, "" where it has no label for one."""
    labels: Mapping[str, str] = node.metadata.labels
    return tuple([labels.get(key, "") for key in keys])


def found(levels: Levels, nodes: Sequence[Node]) -> Topology:
    """Find a topology's domains among nodes in the order of a snapshot's rows."""
    keys = tuple(key for key in levels.keys if any(key in n.metadata.labels for n in nodes))
    order = sorted(range(len(nodes)), key=lambda row: sort_key(nodes[row], keys))
    position = np.empty(len(nodes), dtype=np.int64)
    position[order] = np.arange(len(nodes))
    paths = [path(nodes[row], keys) for row in order]
    return Topology(
        levels.name, keys, np.array(order, dtype=np.int64), position, _domains(paths, len(keys))
    )


def _domains(paths: Sequence[tuple[str, ...]], levels: int) -> tuple[tuple[Domain, ...], ...]:
    by_depth: list[tuple[Domain, ...]] = [(Domain((), 0, len(paths)),)]
    for depth in range(1, levels + 1):
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
