"""The network of a lab as people write it: `zone=2,block=2,rack=5`, widest first."""

import re
from dataclasses import dataclass

from penstock.lab.errors import BadFlagError

_LEVEL = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$")
_LONGEST_VALUE = 63


@dataclass(frozen=True)
class Level:
    """One level: how many domains each domain of the level above is divided into."""

    name: str
    count: int

    @property
    def key(self) -> str:
        """The node label; a name with a slash is a label already."""
        return self.name if "/" in self.name else f"topology.kubernetes.io/{self.name}"


@dataclass(frozen=True)
class Topology:
    """Levels from wide to narrow. No level at all means a flat network."""

    levels: tuple[Level, ...]

    @property
    def leaves(self) -> int:
        """How many of the narrowest domains there are."""
        total = 1
        for level in self.levels:
            total *= level.count
        return total

    def labels(self, leaf: int) -> dict[str, str]:
        """Return the labels of a node in a leaf; a value names the whole path, so it is unique."""
        indices = []
        for level in reversed(self.levels):
            leaf, index = divmod(leaf, level.count)
            indices.append(index)
        labels: dict[str, str] = {}
        path: list[str] = []
        for level, index in zip(self.levels, reversed(indices), strict=True):
            path.append(f"{level.name.rpartition('/')[2]}-{index}")
            labels[level.key] = "-".join(path)
        return labels

    def leaf_of(self, node: int, nodes: int) -> int:
        """Return the leaf of one of `nodes` nodes: in order, and as even as can be."""
        return node * self.leaves // nodes


def parse_topology(text: str) -> Topology:
    """Read `LEVEL=COUNT,...`; raises BadFlagError, which says what is wrong with which part."""
    levels: list[Level] = []
    for part in filter(None, text.split(",")):
        name, _, count = part.partition("=")
        if not _LEVEL.match(name) or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise BadFlagError(f"--topology: {part!r} is not LEVEL=COUNT, such as rack=5")
        levels.append(Level(name, int(count)))
    topology = Topology(tuple(levels))
    keys = [level.key for level in levels]
    if len(set(keys)) < len(keys):
        raise BadFlagError(f"--topology: {text!r} names a level twice")
    if any(len(value) > _LONGEST_VALUE for value in topology.labels(topology.leaves - 1).values()):
        raise BadFlagError(
            f"--topology: {text!r} makes label values longer than {_LONGEST_VALUE} characters; "
            "use shorter level names"
        )
    return topology
