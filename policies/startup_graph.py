"""Cycles among things that wait for each other.

Everything here is iterative and linear in names and edges: the graph comes from a manifest, and
neither its depth nor its width may be a way to bring the webhook down.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Edges = Mapping[str, Sequence[str]]


@dataclass
class _Walk:
    """The path from a root to where the search stands, and what is left to look at."""

    path: list[str] = field(default_factory=list)
    depth_of: dict[str, int] = field(default_factory=dict)
    ahead: list[Iterator[str]] = field(default_factory=list)
    # For each place on the path: the deepest place up to it that is on a cycle already named.
    named: list[int] = field(default_factory=list)

    def enter(self, name: str, edges: Edges) -> None:
        self.depth_of[name] = len(self.path)
        self.path.append(name)
        self.ahead.append(iter(edges.get(name, ())))
        self.named.append(self.named[-1] if self.named else -1)

    def leave(self) -> None:
        del self.depth_of[self.path.pop()]
        self.ahead.pop()
        self.named.pop()

    def close(self, name: str) -> tuple[str, ...] | None:
        """Give the cycle that an edge back to `name` closes, unless it touches a named one."""
        start = self.depth_of[name]
        if start <= self.named[-1]:
            return None
        for depth in range(start, len(self.path)):
            self.named[depth] = depth
        return tuple(self.path[start:])


def cycles(edges: Edges) -> list[tuple[str, ...]]:
    """Give cycles that share no name, at least one if there is any.

    `edges` says for each name which names it waits for. Each cycle starts with whichever of its
    names comes first in `edges`; the step back to that name is left out.
    """
    rank = {name: position for position, name in enumerate(edges)}
    last = len(rank)
    if all(rank.get(each, last) < at for name, at in rank.items() for each in edges[name]):
        return []  # each waits for earlier ones only, as most people write them
    done: set[str] = set()
    return [
        _from_first(cycle, rank)
        for root in edges
        if root not in done
        for cycle in _cycles_below(root, edges, done)
    ]


def _cycles_below(root: str, edges: Edges, done: set[str]) -> Iterator[tuple[str, ...]]:
    walk = _Walk()
    walk.enter(root, edges)
    while walk.path:
        following = next(walk.ahead[-1], None)
        if following is None:
            done.add(walk.path[-1])
            walk.leave()
        elif following in walk.depth_of:
            cycle = walk.close(following)
            if cycle:
                yield cycle
        elif following not in done:
            walk.enter(following, edges)


def _from_first(cycle: tuple[str, ...], rank: Mapping[str, int]) -> tuple[str, ...]:
    start = min(range(len(cycle)), key=lambda i: rank.get(cycle[i], len(rank)))
    return cycle[start:] + cycle[:start]
