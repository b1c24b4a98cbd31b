"""How a set's cliques, groups and replicas stand, counted from live objects. Pure.

Statuses are counted from pods each time and never from other statuses, so that none can lag behind.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from api import names
from controller.workloads.story import clique_status
from controller.workloads.story.clique_status import Counts
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted


@dataclass(frozen=True)
class Standing:
    """How one clique stands, as far as its copy and replica depend on it."""

    there: bool = False
    scheduled: bool = False
    available: bool = False
    follows: bool = False  # its PodClique, and all of its pods, have the newest template
    breached: bool = False


_MISSING = Standing()


@dataclass(frozen=True)
class Copies:
    """A group's copies, counted. A copy is what all of its cliques are."""

    there: int = 0  # any of its cliques is there
    whole: int = 0  # all of its cliques are there
    scheduled: int = 0
    available: int = 0
    following: int = 0
    updated: int = 0  # following, and available
    fine: int = 0  # whole, and none of its cliques is breached


@dataclass(frozen=True)
class Replica:
    """One replica of the set."""

    there: bool  # any of its cliques or groups is there
    available: bool
    updated: bool


@dataclass(frozen=True)
class Stand:
    """A set at one instant; cliques and groups by their full names, replicas by index."""

    counts: Mapping[str, Counts]
    cliques: Mapping[str, Standing]
    groups: Mapping[str, Copies]
    replicas: tuple[Replica, ...]


def stand(view: SetView, wanted: Wanted, newest: Mapping[str, str]) -> Stand:
    """Count everything the set wants; `newest` is the hash of each clique's newest template."""
    counts: dict[str, Counts] = {}
    cliques: dict[str, Standing] = {}
    copies: dict[str, dict[int, list[Standing]]] = defaultdict(lambda: defaultdict(list))
    alone: dict[int, list[Standing]] = defaultdict(list)
    begun: set[int] = set()  # replicas of which anything is there
    for name, want in wanted.cliques.items():
        there = view.cliques.get(name)
        template = newest.get(name, want.template_hash)
        counts[name] = clique_status.count(view.pods_of(name), template)
        cliques[name] = _standing(there, template, counts[name]) if there else _MISSING
        if cliques[name].there:
            begun.add(want.place.replica)
        if want.place.group_name:
            copies[want.place.group_name][want.place.copy].append(cliques[name])
        else:
            alone[want.place.replica].append(cliques[name])
    groups = {group.name: _copies(copies[group.name].values()) for group in wanted.groups}
    short: dict[int, set[str]] = defaultdict(set)
    behind: dict[int, set[str]] = defaultdict(set)
    for group in wanted.groups:
        if group.name in view.groups:
            begun.add(group.replica)
        minimum = min(group.template.min_available, group.copies)
        if groups[group.name].available < minimum:
            short[group.replica].add(group.name)
        if groups[group.name].following < group.copies:
            behind[group.replica].add(group.name)
    replicas = []
    for index in range(view.spec.replicas):
        available = not short[index] and all(c.available for c in alone[index])
        follows = not behind[index] and all(c.follows for c in alone[index])
        replicas.append(Replica(index in begun, available, available and follows))
    return Stand(counts, cliques, groups, tuple(replicas))


def _standing(clique: Clique, newest: str, counts: Counts) -> Standing:
    if clique.metadata.deletion_timestamp is not None:
        return _MISSING
    minimum = clique_status.minimum(clique)
    label = clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL)
    return Standing(
        there=True,
        scheduled=counts.scheduled >= minimum,
        available=counts.ready + counts.completed >= minimum,
        follows=label == newest and counts.updated == counts.there,
        breached=clique_status.breached(clique, counts),
    )


def _copies(copies: Iterable[list[Standing]]) -> Copies:
    found = list(copies)
    return Copies(
        there=sum(any(c.there for c in copy) for copy in found),
        whole=sum(all(c.there for c in copy) for copy in found),
        scheduled=sum(all(c.scheduled for c in copy) for copy in found),
        available=sum(all(c.available for c in copy) for copy in found),
        following=sum(all(c.follows for c in copy) for copy in found),
        updated=sum(all(c.follows and c.available for c in copy) for copy in found),
        fine=sum(all(c.there and not c.breached for c in copy) for copy in found),
    )
