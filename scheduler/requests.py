"""What gangs ask the engine for: wants, how close together they must be, and what is there already.

The tree of a gang, its groups and their cliques is said by groups of cliques: of two groups either
one lies within the other or they share nothing. A clique with a wish of its own is a group of one.
"""

from dataclasses import dataclass, field

from api.quantities import Amounts
from scheduler.eligible import Constraints


@dataclass(frozen=True)
class Closeness:
    """Inside one domain of which level pods must or should be; levels are node label keys."""

    required: str = ""
    preferred: str = ""


@dataclass(frozen=True)
class Group:
    """Cliques whose pods are to be close together: a copy of a scaling group, or one clique."""

    name: str
    cliques: tuple[str, ...]
    near: Closeness = field(default_factory=Closeness)


@dataclass(frozen=True)
class Want:
    """Room asked for: one pod of a clique, by its index."""

    clique: str
    index: int
    need: Amounts
    constraints: Constraints = field(default_factory=Constraints)


@dataclass(frozen=True)
class Anchor:
    """A pod of the gang, or of its base gang, that has its node already.

    Those of the gang itself bind what is asked for by the same required levels; those of its base
    only draw it near.
    """

    node: str
    clique: str = ""  # empty for one of the base gang


@dataclass(frozen=True)
class Spread:
    """Replicas of a set keep apart: each in a domain of this level that no sibling is in.

    `taken` are nodes of siblings. A hard one refuses what a soft one only avoids. Gangs of one plan
    keep apart too if they are of one family and not of the same replica.
    """

    level: str
    taken: tuple[str, ...] = ()
    hard: bool = False
    family: str = ""  # empty for one whose siblings are all in `taken`
    replica: str = ""


@dataclass(frozen=True)
class GangRequest:
    """What a gang asks for: its minimum, all or nothing, and extras if there is room."""

    namespace: str
    name: str
    minimum: tuple[Want, ...]
    extras: tuple[Want, ...] = ()
    near: Closeness = field(default_factory=Closeness)
    groups: tuple[Group, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    topology: str = ""  # by name; empty for the snapshot's first
    spread: Spread | None = None
    zone: str = ""  # a value of the topology's widest level that is preferred to others
    priority: int = 0
    born: str = ""  # as a sortable timestamp; older ones come first
