"""How near all of a gang's slots are to each other, whichever of them was placed last. Pure.

The engine scores what it places. A gang that grew, lost slots or had some moved is judged anew, as
the engine would have, had it placed the whole of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from api.streams import Node
from scheduler import topology
from scheduler.topology import Levels

_Spot: TypeAlias = tuple[tuple[str, ...], str]  # the path of a node's domains, and the node


@dataclass(frozen=True)
class Standing:
    """The score, and the path of the narrowest domain that holds all slots."""

    score: float
    domain: tuple[str, ...] = ()


def found(levels: Levels, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Give the levels that some node is labelled with, as the engine has them."""
    every = tuple(nodes)
    return tuple(key for key in levels.keys if any(key in node.metadata.labels for node in every))


def of(homes: Iterable[str], nodes: Mapping[str, Node], keys: Sequence[str]) -> Standing:
    """Judge where slots are; one whose node is gone is near nobody."""
    spots = sorted(
        (topology.path(nodes[home], keys) if home in nodes else ("",) * len(keys), home)
        for home in homes
    )
    pairs = _pairs(len(spots))
    if not pairs:
        return Standing(1.0, _domain(spots))
    return Standing(_nearness(spots, 0, 0, len(keys)) / pairs, _domain(spots))


def _nearness(spots: Sequence[_Spot], depth: int, shared: int, levels: int) -> float:
    """Sum over pairs how far down they share a domain, as a part of all levels.

    All of these share their path down to `depth`, and their deepest domain is at `shared`.
    """
    if depth == levels:
        by_node = [len(list(group)) for _, group in groupby(spots, key=lambda spot: spot[1])]
        together = sum(map(_pairs, by_node))
        return together + (shared / levels if levels else 0.0) * (_pairs(len(spots)) - together)
    total, apart = 0.0, _pairs(len(spots))
    for label, group in groupby(spots, key=lambda spot: spot[0][depth]):
        inside = list(group)
        apart -= _pairs(len(inside))
        total += _nearness(inside, depth + 1, depth + 1 if label else shared, levels)
    return total + shared / levels * apart


def _domain(spots: Sequence[_Spot]) -> tuple[str, ...]:
    """Give the path that all share, down to the last label they have."""
    if not spots:
        return ()
    first, last = spots[0][0], spots[-1][0]  # the two that differ most
    alike = [one == other for one, other in zip(first, last, strict=True)]
    path = first[: alike.index(False)] if False in alike else first
    while path and not path[-1]:
        path = path[:-1]
    return path


def _pairs(count: int) -> int:
    return count * (count - 1) // 2
