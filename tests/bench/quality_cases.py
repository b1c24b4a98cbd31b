"""A small cluster and one gang as plain data, so that whoever judges the engine reads them anew.

Amounts are whole cores, GiB, devices and pod slots. A level is a node label key; a node's path
names its domain of each of the case's levels, widest first, "" where it has none.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

HOSTNAME: Final = "kubernetes.io/hostname"
GPU: Final = "nvidia.com/gpu"

Domain = tuple[str, ...]
Need = dict[str, int]


class Near(msgspec.Struct, frozen=True):
    """Inside one domain of which level pods must or should be."""

    required: str = ""
    preferred: str = ""


class Node(msgspec.Struct, frozen=True):
    """A node, and what is taken of it."""

    name: str
    path: Domain
    has: Need
    held: tuple[Need, ...] = ()
    pool: str = ""  # value of a label that cliques may select by
    tainted: bool = False


class Clique(msgspec.Struct, frozen=True):
    """Equal pods: so many that must be placed, so many that may be, and those that are already."""

    name: str
    minimum: int
    need: Need
    extras: int = 0
    pool: str = ""  # the only one it may use
    tolerant: bool = False  # of tainted nodes
    anchors: tuple[str, ...] = ()  # names of nodes, once for each pod that is there


class Group(msgspec.Struct, frozen=True):
    """Cliques with a wish of their own; groups nest or share nothing."""

    name: str
    cliques: tuple[str, ...]
    near: Near


class Case(msgspec.Struct, frozen=True):
    """One question: can this gang be placed whole, and how close together?"""

    seed: int
    number: int
    kind: str
    levels: tuple[str, ...]
    nodes: tuple[Node, ...]
    cliques: tuple[Clique, ...]
    groups: tuple[Group, ...] = ()
    near: Near = Near()

    @property
    def title(self) -> str:
        return f"{self.seed}-{self.number}-{self.kind}"

    def tree(self) -> Iterator[tuple[tuple[str, ...], Near]]:
        """Give each wish with the cliques it is about, the gang's own first."""
        yield tuple(clique.name for clique in self.cliques), self.near
        for group in self.groups:
            yield group.cliques, group.near


def free(node: Node) -> Need:
    """What nothing holds; what is overdrawn has nothing free."""
    return {
        name: max(0, amount - sum(hold.get(name, 0) for hold in node.held))
        for name, amount in node.has.items()
    }


def may_use(node: Node, clique: Clique) -> bool:
    """Whether the clique's pods are let onto the node, room apart."""
    return (not node.tainted or clique.tolerant) and clique.pool in ("", node.pool)


def domain(case: Case, node: Node, level: str) -> Domain | None:
    """Name the domain of this level that the node is in; None if it is in none."""
    if level == HOSTNAME:
        return ("", node.name)  # no path begins with a nameless domain
    if level not in case.levels:
        return None
    depth = case.levels.index(level) + 1
    return node.path[:depth] if node.path[depth - 1] else None


def cell(case: Case, node: Node, depth: int) -> Domain:
    """Name what the node shares at this depth with others, or only with itself."""
    return domain(case, node, case.levels[depth - 1]) or ("", node.name)


def save(case: Case, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1))


def load(path: Path) -> Case:
    return msgspec.json.decode(path.read_bytes(), type=Case)
