"""What a set wants to exist, as values: its groups, gangs and cliques, each with its full name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from api.cliques import CliqueTemplate
from api.podcliqueset import ScalingGroupTemplate


@dataclass(frozen=True)
class Place:
    """Where a clique stands: in which replica and gang, and in which copy of which group, if any.

    `group` is the group's name in the set, `group_name` its full name. `base` is the gang that a
    scaled gang must wait for.
    """

    replica: int
    gang: str
    base: str = ""
    group: str = ""
    group_name: str = ""
    copy: int = 0


@dataclass(frozen=True)
class Parent:
    """A clique, by its full name, that must have so many pods with all containers ready."""

    clique: str
    minimum: int


@dataclass(frozen=True)
class WantedClique:
    """One clique in one gang. `replicas` is what it was scaled to, else what its template says."""

    name: str
    template: CliqueTemplate
    place: Place
    replicas: int
    minimum: int
    template_hash: str  # stands for the newest template; the PodClique's label tells which it has
    waits_for: tuple[Parent, ...] = ()


@dataclass(frozen=True)
class WantedGroup:
    """One scaling group in one replica of the set; `copies` as it was scaled."""

    name: str
    template: ScalingGroupTemplate
    replica: int
    copies: int


@dataclass(frozen=True)
class WantedGang:
    """A gang; `replica` is the set's replica it belongs to, `base` the gang it must wait for.

    `group` and `copy` say which copy of which group (by its full name) a scaled gang is.
    """

    name: str
    replica: int
    base: str
    cliques: tuple[WantedClique, ...]
    group: str = ""
    copy: int = 0


@dataclass(frozen=True)
class Wanted:
    """All that the set wants. Base gangs stand before the scaled gangs they carry."""

    groups: tuple[WantedGroup, ...]
    gangs: tuple[WantedGang, ...]
    generation_hash: str

    @cached_property
    def cliques(self) -> Mapping[str, WantedClique]:
        """All cliques by full name, in the order of the gangs."""
        return {clique.name: clique for gang in self.gangs for clique in gang.cliques}

    def of_replica(self, replica: int) -> Iterator[WantedClique]:
        """List the cliques of one replica of the set."""
        return (clique for clique in self.cliques.values() if clique.place.replica == replica)

    def of_group(self, name: str) -> Iterator[WantedClique]:
        """List the member cliques of a scaling group, named in full, over all its copies."""
        return (clique for clique in self.cliques.values() if clique.place.group_name == name)
