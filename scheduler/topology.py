"""A network as ranges of nodes: sorted by their path, every domain is one run of them.

A cluster may have several topologies. Each brings the order in which its domains are runs; of the
first one that is the order of the snapshot's rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from api.streams import Node

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Path: TypeAlias = tuple[str, ...]
Natural: TypeAlias = tuple[str, str]
"""A text so that it sorts by the numbers in it, and the text itself for what then seems equal."""

_NUMBERS: Final = re.compile("[0-9]+")


@dataclass(frozen=True)
class Domain:
    """A run of nodes that share a topology path. The whole cluster is the domain with no path.

    A node that has no label for a level is in no domain of it, but may be in a domain of a deeper
    one, whose path then has "" there: nodes of one rack and no block are a rack of their own.
    """

    path: Path
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


def path(node: Node, keys: Sequence[str]) -> Path:
    """Name the node's domain of each level, "" where it has no label for one."""
    labels: Mapping[str, str] = node.metadata.labels
    return tuple([labels.get(key, "") for key in keys])


def natural(text: str) -> Natural:
    """Let node-9 come before node-10: neighbours by number are usually neighbours by cable."""
    return _NUMBERS.sub(_led_by_length, text), text


def _led_by_length(number: re.Match[str]) -> str:
    digits = number[0].lstrip("0")
    return f"{len(digits):03}{digits}"


def arranged(
    levels: Sequence[Levels], nodes: Sequence[Node], names: Sequence[Natural]
) -> tuple[list[int], tuple[Topology, ...]]:
    """Find all topologies among nodes in any order, and the order in which these are to be rows."""
    first = found(levels[0], nodes, names)
    order: list[int] = first.order.tolist()
    rows, row_names = [nodes[i] for i in order], [names[i] for i in order]
    straight = _fixed(np.arange(len(nodes), dtype=np.int64))
    others = [found(each, rows, row_names) for each in levels[1:]]
    return order, (replace(first, order=straight, position=straight), *others)


def found(
    levels: Levels, nodes: Sequence[Node], names: Sequence[Natural] | None = None
) -> Topology:
    """Find a topology's domains among nodes in the order of a snapshot's rows."""
    if names is None:
        names = [natural(node.metadata.name) for node in nodes]
    keys = tuple(key for key in levels.keys if any(key in n.metadata.labels for n in nodes))
    paths = [path(node, keys) for node in nodes]
    counts = Counter(paths)
    known = {value: natural(value) for each in counts for value in each}
    by_number = sorted(counts, key=lambda each: [known[value] for value in each])
    rank = {each: i for i, each in enumerate(by_number)}
    ranks = [rank[each] for each in paths]
    order = np.array(
        sorted(range(len(nodes)), key=lambda row: (ranks[row], names[row])), dtype=np.int64
    )
    position = np.empty(len(nodes), dtype=np.int64)
    position[order] = np.arange(len(nodes))
    runs = [(each, counts[each]) for each in by_number]
    domains: list[tuple[Domain, ...]] = [(Domain((), 0, len(nodes)),)]
    domains += [_domains(runs, depth + 1) for depth in range(len(keys))]
    return Topology(levels.name, keys, _fixed(order), _fixed(position), tuple(domains))


def _fixed(values: Ints) -> Ints:
    values.flags.writeable = False
    return values


def _domains(runs: Sequence[tuple[Path, int]], depth: int) -> tuple[Domain, ...]:
    """Join runs of nodes whose paths begin alike; where a label is missing there is no domain."""
    joined: list[Domain] = []
    start = 0
    for whole, count in runs:
        begin = whole[:depth]
        if joined and joined[-1].path == begin:
            joined[-1] = Domain(begin, joined[-1].start, start + count)
        else:
            joined.append(Domain(begin, start, start + count))
        start += count
    return tuple(domain for domain in joined if domain.path[-1])
