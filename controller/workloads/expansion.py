"""What a set wants to exist: its groups and gangs, and in each gang its cliques. Pure.

One replica of a set is one base gang, with every clique that stands by itself and the copies
0 to minAvailable-1 of every scaling group. Each further copy of a group is a scaled gang of its
own, which starts only after its base gang. How many copies a group and pods a clique have, their
own objects say once they are there: people and autoscalers scale those.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from api.cliques import CliqueTemplate
from api.podcliqueset import MAX_PODS, PodCliqueSetSpec, ScalingGroupTemplate
from controller.workloads import naming, ordering
from controller.workloads.updates import adopting
from controller.workloads.updates.adopting import Versions
from controller.workloads.views import SetView
from controller.workloads.wants import (
    Parent,
    Place,
    Wanted,
    WantedClique,
    WantedGang,
    WantedGroup,
)


def expand(view: SetView) -> Wanted:
    """List all that the set wants, base gangs before the scaled ones they carry."""
    expanding = _Expanding.of(view)
    replicas = range(view.spec.replicas)
    return Wanted(
        groups=tuple(group for replica in replicas for group in expanding.groups(replica)),
        gangs=tuple(gang for replica in replicas for gang in expanding.gangs(replica)),
        generation_hash=expanding.versions.generation,
    )


def is_too_large(view: SetView) -> bool:
    """Tell whether the set, as its groups and cliques are scaled, asks for more than anybody means.

    The definition bounds what is written into a set, but nothing bounds what is scaled one by one.
    """
    if view.spec.pods > MAX_PODS:
        return True
    sizes = {clique.name: max(1, clique.spec.replicas) for clique in view.spec.template.cliques}
    groups = view.spec.template.pod_clique_scaling_groups
    grouped = {name for group in groups for name in group.clique_names}
    alone = sum(size for name, size in sizes.items() if name not in grouped)
    members = {group.name: sum(sizes.get(n, 0) for n in group.clique_names) for group in groups}
    total = 0
    for replica in range(view.spec.replicas):
        total += alone + sum(_copies(view, replica, g) * members[g.name] for g in groups)
        if total > MAX_PODS:
            return True
    return sum(clique.spec.replicas for clique in view.cliques.values()) > MAX_PODS


def _copies(view: SetView, replica: int, group: ScalingGroupTemplate) -> int:
    there = view.groups.get(naming.scaling_group(view.metadata.name, replica, group.name))
    return group.replicas if there is None else there.spec.replicas


@dataclass(frozen=True)
class _Expanding:
    """A set under expansion, with what is worked out once for all of its replicas."""

    view: SetView
    alone: tuple[CliqueTemplate, ...]
    members: dict[str, tuple[CliqueTemplate, ...]]
    versions: Versions

    @classmethod
    def of(cls, view: SetView) -> "_Expanding":
        template = view.spec.template
        groups = template.pod_clique_scaling_groups
        grouped = {name for group in groups for name in group.clique_names}
        return cls(
            view,
            tuple(clique for clique in template.cliques if clique.name not in grouped),
            {
                g.name: tuple(c for c in template.cliques if c.name in g.clique_names)
                for g in groups
            },
            adopting.versions(view),
        )

    @property
    def spec(self) -> PodCliqueSetSpec:
        return self.view.spec

    @property
    def name(self) -> str:
        return self.view.metadata.name

    def groups(self, replica: int) -> Iterator[WantedGroup]:
        for group in self.spec.template.pod_clique_scaling_groups:
            full = naming.scaling_group(self.name, replica, group.name)
            yield WantedGroup(full, group, replica, _copies(self.view, replica, group))

    def gangs(self, replica: int) -> Iterator[WantedGang]:
        base = naming.base_gang(self.name, replica)
        groups = tuple(self.groups(replica))
        first = [self._clique(template, Place(replica, base)) for template in self.alone]
        for group in groups:
            for number in range(min(group.template.min_available, group.copies)):
                place = Place(
                    replica, base, group=group.template.name, group_name=group.name, copy=number
                )
                first += self._members(place)
        yield WantedGang(base, replica, "", tuple(first))
        for group in groups:
            for number in range(group.template.min_available, group.copies):
                yield self._scaled(base, group, number)

    def _scaled(self, base: str, group: WantedGroup, number: int) -> WantedGang:
        short = group.template.name
        ordinal = number - group.template.min_available
        name = naming.scaled_gang(self.name, group.replica, short, ordinal)
        place = Place(group.replica, name, base, short, group.name, number)
        cliques = tuple(self._members(place))
        return WantedGang(name, group.replica, base, cliques, group.name, number)

    def _members(self, place: Place) -> Iterator[WantedClique]:
        return (self._clique(template, place) for template in self.members[place.group])

    def _clique(self, template: CliqueTemplate, place: Place) -> WantedClique:
        short = template.name
        if place.group:
            name = naming.grouped_clique(self.name, place.replica, place.group, place.copy, short)
        else:
            name = naming.clique(self.name, place.replica, short)
        there = self.view.cliques.get(name)
        replicas = template.spec.replicas if there is None else there.spec.replicas
        return WantedClique(
            name=name,
            template=template,
            place=place,
            replicas=replicas,
            # One that was scaled to nothing holds nobody back.
            minimum=min(template.spec.minimum, replicas),
            template_hash=self.versions.labels[short],
            waits_for=self._waits_for(place, short),
        )

    def _waits_for(self, place: Place, short: str) -> tuple[Parent, ...]:
        return ordering.parents(self.spec, self.name, place, short)
