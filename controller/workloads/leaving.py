"""How a set comes and goes: its finalizer, and what is taken away with it, in which order. Pure.

It goes from the top: a group before its cliques, a clique before its pods, each deleted only in the
state it was last seen in. So whatever was let go of meanwhile, as an orphan, stays. Then they
disappear from the bottom: the finalizers of a clique, a group and the set are taken off as the last
of what they hold is gone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from controller.podgang import Gang
from controller.workloads import belonging
from controller.workloads.making import cliques, computedomains, groups
from controller.workloads.owning import Held
from controller.workloads.stepping import Change, Remove, Step
from controller.workloads.views import Clique, Group, SetView, Thing
from controller.workloads.wants import Wanted
from kube.resources import AUTOSCALERS, PODCLIQUESETS, PODGANGS, PODS, Resource

# What the API server writes into a set whose objects are to stay without it.
_ORPHAN: Final = "orphan"


@dataclass(frozen=True)
class Estate:
    """What is left of a set. `pods` are by the full name of their clique, if that is there."""

    groups: Mapping[str, Group]
    cliques: Mapping[str, Clique]
    gangs: Mapping[str, Gang]
    pods: Mapping[str, tuple[Pod, ...]]
    things: Mapping[Resource, Mapping[str, Thing]]


def steps(view: SetView, _wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Put the finalizer on a set, so that it does not go before what it has."""
    meta = view.metadata
    if names.SET_FINALIZER not in meta.finalizers:
        finalizers = [*meta.finalizers, names.SET_FINALIZER]
        patch: JsonObject = {"metadata": {"finalizers": [*finalizers]}}
        yield Change(PODCLIQUESETS, meta.name, meta.uid, patch, meta.resource_version)


def departure(view: SetView) -> Iterator[Step]:
    """Take away all that a deleted set has, and let it go."""
    meta = view.metadata
    if _ORPHAN in meta.finalizers:
        return  # the garbage collector is about to let go of what the set has
    estate = Estate(view.groups, view.cliques, view.gangs, view.pods, view.things)
    yield from clearing(estate)
    yield from computedomains.releases(view)
    if names.SET_FINALIZER in meta.finalizers and _is_cleared(estate):
        patch = belonging.without_finalizer(meta, names.SET_FINALIZER)
        yield Change(PODCLIQUESETS, meta.name, meta.uid, patch, meta.resource_version)


def clearing(estate: Estate) -> Iterator[Step]:
    """Take away what is left of a set, what others live in before what they need."""
    yield from _all(AUTOSCALERS, estate.things.get(AUTOSCALERS, {}).values())
    for group in estate.groups.values():
        yield from groups.leaving(group, estate.cliques.values())
    above = {group.metadata.uid: group.metadata for group in estate.groups.values()}
    for name, clique in estate.cliques.items():
        owner = above.get(clique.metadata.controller_uid)
        if owner is None or owner.deletion_timestamp is not None:
            yield from cliques.leaving(clique, estate.pods.get(name, ()))
    alone = (pods for name, pods in estate.pods.items() if name not in estate.cliques)
    yield from _all(PODS, (pod for pods in alone for pod in pods))
    # Gangs and the rest go when no pod needs them any more.
    if not any(estate.pods.values()):
        yield from _all(PODGANGS, estate.gangs.values())
        for resource, things in estate.things.items():
            yield from _all(resource, things.values())


def _all(resource: Resource, held: Iterable[Held]) -> Iterator[Step]:
    for meta in (each.metadata for each in held):
        if meta.deletion_timestamp is None:
            yield Remove(resource, meta.name, meta.uid, meta.resource_version)


def _is_cleared(estate: Estate) -> bool:
    """Whether all is gone, but for what somebody else still holds."""
    if estate.groups or estate.cliques or estate.gangs:
        return False
    things = (thing for of_kind in estate.things.values() for thing in of_kind.values())
    return all(thing.metadata.deletion_timestamp is not None for thing in things)
