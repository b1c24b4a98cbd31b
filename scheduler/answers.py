"""What the engine answers: placements and refusals, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from api.quantities import Amounts
from scheduler.requests import GangRequest, Share, Want

FILTERED: Final = "filters"
ANCHORED: Final = "anchors"
SPREAD: Final = "spread"
FRAGMENTED: Final = "fragmented"
GROUPED: Final = "groups"  # one of its own groups fits into no domain of it
STOPS: Final = (FILTERED, ANCHORED, SPREAD, FRAGMENTED, GROUPED)
"""What stops a domain beside a resource it has too little of."""


@dataclass(frozen=True)
class Placed:
    """One want and the node it got."""

    want: Want
    node: str


@dataclass(frozen=True)
class Placement:
    """A node for every want of the minimum, and for as many extras as there was room for."""

    gang: GangRequest
    placed: tuple[Placed, ...]
    domain: tuple[str, ...]
    score: float  # mean over pairs of pods of their deepest shared level, by the number of levels
    fragmentation: float = 0.0  # whole free domains broken for it, weighed by level; 0 is none
    steps: int = 0  # of the search's budget
    drawn: tuple[Share, ...] = ()  # of what is kept for the gang, by node


class Cause(StrEnum):
    """Why a gang was refused, by the first bound that says so; stable, for tools."""

    TOPOLOGY = "NoSuchTopology"
    LEVEL = "NoSuchLevel"
    NESTING = "GroupsNotNested"
    RESOURCE = "ResourceUnknown"
    LARGE = "PodLargerThanAnyNode"
    FILTERS = "FiltersLeaveTooFewNodes"
    TOTAL = "NotEnoughInTotal"
    NODES = "FragmentedOnNodes"
    APART = "AnchorsApart"
    ANCHORS = "AnchorsDomainFull"
    SPREAD = "SpreadLeavesNoDomain"
    DOMAINS = "NotEnoughInAnyDomain"
    GROUP = "GroupFitsNoDomain"
    COMPANY = "PodsKeepApart"
    BUDGET = "BudgetExhausted"
    COMBINATION = "NoCombinationFits"


@dataclass(frozen=True)
class CliqueReport:
    """Pods of a clique, all alike: how many are asked for, and which nodes they may use."""

    clique: str
    asked: int
    fits: int  # in the nearest domain, beside the rest of the gang
    room: int  # on all nodes they may use, if nobody else of the gang came
    usable: int
    obstacles: Mapping[str, int]  # nodes they may not use, by the filter that says so
    need: Amounts = field(default_factory=dict)  # of one pod


@dataclass(frozen=True)
class DomainReport:
    """How far a domain is from taking a part of the gang."""

    path: tuple[str, ...]
    fits: int  # pods of the part that were packed there, first fit
    lacks: Amounts  # by which the free room of its usable nodes falls short in sum
    stopped: str  # a resource, or one of STOPS


@dataclass(frozen=True)
class LevelReport:
    """The domains of one level, held against one part of the gang."""

    part: str  # a group or clique; empty for the whole gang
    level: str  # a node label key; empty for the cluster as one domain
    required: bool
    domains: int
    enough: int  # how many pass every bound
    stopped: Mapping[str, int]  # the others, by the first bound that stops them
    best: tuple[DomainReport, ...] = ()


@dataclass(frozen=True)
class Nearest:
    """The domain that comes closest to taking the part."""

    part: str
    level: str
    domain: tuple[str, ...]
    fits: int
    asked: int
    lacks: Amounts  # empty if there is enough in sum, but not where the pods could use it
    left_out: Mapping[str, int]  # pods that found no node, by clique


@dataclass(frozen=True)
class FreeRoom:
    """Free so much on these nodes of the domain."""

    domain: tuple[str, ...]
    amounts: Amounts
    nodes: Mapping[str, Amounts]


@dataclass(frozen=True)
class MoreNodes:
    """Add so many empty nodes like this one to the domain."""

    domain: tuple[str, ...]
    count: int
    like: str


@dataclass(frozen=True)
class Uncordon:
    """Let pods onto these nodes again."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Widen:
    """Require a wider level of this part: the gang was packed into the domain, first fit."""

    part: str
    level: str
    wider: str  # empty: require none
    domain: tuple[str, ...]


@dataclass(frozen=True)
class Loosen:
    """Let replicas be spread over this level less evenly."""

    level: str


@dataclass(frozen=True)
class AskFewer:
    """Ask for no more pods than the nearest domain takes, by clique."""

    domain: tuple[str, ...]
    pods: Mapping[str, int]


Remedy: TypeAlias = FreeRoom | MoreNodes | Uncordon | Widen | Loosen | AskFewer
"""One thing that would unblock the gang, by itself, as far as first fit can tell."""


@dataclass(frozen=True)
class NoFit:
    """Why there is no room. Nothing was found; more room, or other constraints, may change that."""

    gang: GangRequest
    fitted: int  # pods of the minimum that would have fitted
    needed: Amounts  # of the whole minimum, or of the extras where nothing else is asked for
    free: Amounts  # on nodes that at least one of its pods may use
    usable: int  # how many such nodes there are
    nodes: int
    obstacles: Mapping[str, int]  # nodes no pod of it may use, by the filter that says so
    exhausted: bool = False  # the search ended with its budget, so room may have been overlooked
    steps: int = 0
    cause: Cause = Cause.TOTAL
    part: str = ""  # the group or clique that the cause speaks of; empty for the whole gang
    level: str = ""  # the level that the cause speaks of, as a node label key
    subject: str = ""  # what else the cause names: a resource, a topology, a group
    levels: tuple[LevelReport, ...] = ()
    cliques: tuple[CliqueReport, ...] = ()
    nearest: Nearest | None = None
    remedies: tuple[Remedy, ...] = ()
    never: bool = False  # so it would be on these nodes if nobody else were there


@dataclass(frozen=True)
class Plan:
    """The whole result of a cycle."""

    placements: tuple[Placement, ...]
    refusals: tuple[NoFit, ...]
