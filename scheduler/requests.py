"""What gangs ask the engine for: wants, how close together they must be, and what is there already.

The tree of a gang, its groups and their cliques is said by groups of cliques: of two groups either
one lies within the other or they share nothing. A clique with a wish of its own is a group of one.
"""

from dataclasses import dataclass, field

from api.quantities import Amounts
from scheduler.eligible import Constraints
from scheduler.filters.constraints import Requirements, selects


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
class Sibling:
    """A replica that was there before the plan, and the nodes that its gangs are on."""

    replica: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Kin:
    """Who a gang is to those that keep apart from others.

    All gangs of one replica count once: a gang does not keep apart from those of its own.
    """

    replica: str = ""
    family: str = ""  # its set; empty for one of none
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Spread:
    """How evenly replicas are to be spread over the domains of a level.

    No domain that a gang goes to may then have more than `skew` replicas more than the one that has
    fewest. A hard one refuses what a soft one only avoids. Which domains count, and how, is said by
    the rest, as it is for pods. Gangs of one plan count for those that come after them.
    """

    level: str
    taken: tuple[Sibling, ...] = ()  # of those that it is about, its own replica included
    hard: bool = False
    skew: int = 1
    among: Requirements | None = None  # by the labels of gangs; None means those of its family
    min_domains: int = 1  # with fewer the emptiest counts as having nobody
    by_affinity: bool = True  # only nodes that its pods select count
    by_taints: bool = False  # only nodes whose taints its pods tolerate count

    def concerns(self, asking: "GangRequest", namespace: str, kin: Kin) -> bool:
        """Whether such a gang is one of those among whom the asking one is spread."""
        if namespace != asking.namespace:
            return False
        if self.among is None:
            return bool(kin.family) and kin.family == asking.kin.family
        return selects(self.among, dict(kin.labels))


@dataclass(frozen=True)
class Share:
    """What is kept on one node."""

    node: str
    amounts: Amounts


@dataclass(frozen=True)
class Kept:
    """Room that the snapshot counts as taken, and that the gang may draw on all the same.

    Requests that name the same room share it: what one draws, the next no longer finds. Of room
    that is for `once`, only one gang draws.
    """

    name: str
    shares: tuple[Share, ...]  # each node once
    once: bool = False


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
    spread: tuple[Spread, ...] = ()
    kin: Kin = field(default_factory=Kin)
    zone: str = ""  # a value of the topology's widest level that is preferred to others
    priority: int = 0
    born: str = ""  # as a sortable timestamp; older ones come first
    kept: Kept | None = None  # is drawn on before other room, where that can be
