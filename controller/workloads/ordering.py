"""Who waits for whom before it starts, and why an order can never complete. Pure.

A clique waits for cliques of its own gang only: what a scaled gang's cliques would wait for outside
of it, the base gang has, and a scaled gang starts after its base gang. Inside a scaling group a
clique waits for those of its own copy.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice

from api.cliques import CliqueTemplate
from api.podclique import MAX_PARENTS
from api.podcliqueset import PodCliqueSetSpec, ScalingGroupTemplate, StartupType
from controller.workloads import naming
from controller.workloads.views import SetView
from controller.workloads.wants import Parent, Place, Wanted, WantedClique
from policies import startup_graph


def parents(spec: PodCliqueSetSpec, set_name: str, place: Place, clique: str) -> tuple[Parent, ...]:
    """List whom a clique in this place waits for; `clique` is its name in the set.

    A parent that the set does not have is listed too: nobody may start before it, so nobody does,
    and `order_trouble` says why.
    """
    names = dict.fromkeys(_predecessors(spec, place, clique))
    found = [_copies(spec, set_name, place, name) for name in names]
    return found[0][:MAX_PARENTS] if len(found) == 1 else tuple(chain(*found))[:MAX_PARENTS]


def order_trouble(view: SetView, wanted: Wanted) -> str:
    """Say why the set's cliques can never all start, as a sentence; empty if they can."""
    return next(_troubles(view, wanted), "")


def _predecessors(spec: PodCliqueSetSpec, place: Place, clique: str) -> Sequence[str]:
    cliques = spec.template.cliques
    match spec.template.clique_startup_type:
        case StartupType.EXPLICIT:
            after = next((c.spec.starts_after for c in cliques if c.name == clique), [])
            return [name for name in after if _counts(spec, place, name)]
        case StartupType.IN_ORDER:
            names = [c.name for c in cliques]
            earlier = reversed(names[: names.index(clique)])
            return list(islice((name for name in earlier if _counts(spec, place, name)), 1))
        case StartupType.ANY_ORDER:
            return []


def _counts(spec: PodCliqueSetSpec, place: Place, name: str) -> bool:
    """Tell whether a clique of this name is in the gang, or should be."""
    group = _group_of(spec, name)
    if place.base:
        return group is not None and group.name == place.group
    return group is None or group.min_available > 0


def _copies(spec: PodCliqueSetSpec, set_name: str, place: Place, name: str) -> tuple[Parent, ...]:
    template = _template(spec, name)
    minimum = template.spec.minimum if template else 1
    group = _group_of(spec, name)
    if group is None:
        return (Parent(naming.clique(set_name, place.replica, name), minimum),)
    own = group.name == place.group
    copies = (place.copy, place.copy + 1) if own else (0, group.min_available)
    return _members(set_name, (place.replica, group.name), name, minimum, copies)


# Each clique of one large group may wait for all copies of another: they share one list of them.
@lru_cache(maxsize=256)
def _members(
    set_name: str, group: tuple[int, str], name: str, minimum: int, copies: tuple[int, int]
) -> tuple[Parent, ...]:
    return tuple(
        Parent(naming.grouped_clique(set_name, *group, number, name), minimum)
        for number in range(*copies)
    )


def _template(spec: PodCliqueSetSpec, name: str) -> CliqueTemplate | None:
    return next((c for c in spec.template.cliques if c.name == name), None)


def _group_of(spec: PodCliqueSetSpec, name: str) -> ScalingGroupTemplate | None:
    groups = spec.template.pod_clique_scaling_groups
    return next((group for group in groups if name in group.clique_names), None)


def _troubles(view: SetView, wanted: Wanted) -> Iterator[str]:
    cliques = wanted.cliques
    # One without pods has nobody who could wait.
    waiting = [clique for clique in cliques.values() if clique.waits_for and clique.replicas]
    edges = {clique.name: [parent.clique for parent in clique.waits_for] for clique in waiting}
    for cycle in startup_graph.cycles(edges):
        yield f"cliques wait for each other: {' → '.join([*cycle, cycle[0]])}"
    left_out = _left_out(view, wanted) if waiting else {}
    for clique in waiting:
        if len(clique.waits_for) >= MAX_PARENTS:
            yield f"{clique.name} waits for more PodCliques than the {MAX_PARENTS} that it can name"
        for parent in clique.waits_for:
            if why := _never_up(cliques.get(parent.clique), parent, left_out):
                yield f"{clique.name} waits for {parent.clique}, {why}"


def _never_up(there: WantedClique | None, parent: Parent, left_out: Mapping[str, str]) -> str:
    if there is None and parent.clique in left_out:
        group = left_out[parent.clique]
        return f"which is not there as long as {group} has too few copies; scale that up"
    if there is None:
        return "which the set does not have"
    if there.replicas < parent.minimum:
        return (
            f"which must have {parent.minimum} pods up and is scaled to {there.replicas};"
            " scale it up"
        )
    return ""


def _left_out(view: SetView, wanted: Wanted) -> dict[str, str]:
    """Map members of base gangs that their groups were scaled below to these groups."""
    name = view.metadata.name
    return {
        naming.grouped_clique(name, group.replica, group.template.name, number, member): group.name
        for group in wanted.groups
        for number in range(group.copies, group.template.min_available)
        for member in group.template.clique_names
    }
