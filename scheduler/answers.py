"""What the engine answers: placements and refusals, as values."""

from collections.abc import Mapping
from dataclasses import dataclass

from api.quantities import Amounts
from scheduler.requests import GangRequest, Want


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


@dataclass(frozen=True)
class Plan:
    """The whole result of a cycle."""

    placements: tuple[Placement, ...]
    refusals: tuple[NoFit, ...]
