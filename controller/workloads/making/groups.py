"""The scaling groups of a set: made, kept in order, and taken away after their members. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from api import names
from api.jsons import JsonObject
from controller.workloads import belonging
from controller.workloads.stepping import Change, Create, Remove, Step
from controller.workloads.views import Clique, Group, SetView
from controller.workloads.wants import Wanted, WantedGroup
from kube.resources import PODCLIQUESETS, SCALING_GROUPS

COMPONENT = "pcs-podcliquescalinggroup"


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Make groups that are missing, put labels right, and let go of those wanted no more."""
    for group in wanted.groups:
        there = view.groups.get(group.name)
        if there is None and group.name in view.unread:
            continue
        if there is None:
            yield Create(SCALING_GROUPS, body(view, group))
        elif there.metadata.deletion_timestamp is None:
            yield from _repairs(view, group, there)
    keep = {group.name for group in wanted.groups}
    for name, there in view.groups.items():
        if name not in keep or there.metadata.deletion_timestamp is not None:
            yield from leaving(there, view.cliques.values())


def leaving(group: Group, cliques: Iterable[Clique]) -> Iterator[Step]:
    """Take a group away; it is gone when its last member among these cliques is."""
    meta = group.metadata
    if meta.deletion_timestamp is None:
        yield Remove(SCALING_GROUPS, meta.name, meta.uid, meta.resource_version)
    elif names.GROUP_FINALIZER in meta.finalizers and not _has_members(group, cliques):
        patch = belonging.without_finalizer(meta, names.GROUP_FINALIZER)
        yield Change(SCALING_GROUPS, meta.name, meta.uid, patch, meta.resource_version)


def body(view: SetView, group: WantedGroup) -> JsonObject:
    """Write a group as it is made; later on its replicas are whoever's who scales it."""
    return {
        "apiVersion": SCALING_GROUPS.api_version,
        "kind": SCALING_GROUPS.kind,
        "metadata": {
            "name": group.name,
            "namespace": view.metadata.namespace,
            "labels": {**_labels(view, group)},
            "annotations": {**_annotations(view, group)},
            "ownerReferences": [belonging.owned_by(PODCLIQUESETS, view.metadata)],
            "finalizers": [names.GROUP_FINALIZER],
        },
        "spec": {
            "replicas": group.copies,
            "minAvailable": group.template.min_available,
            "cliqueNames": [*group.template.clique_names],
        },
    }


def _repairs(view: SetView, group: WantedGroup, there: Group) -> Iterator[Step]:
    meta = there.metadata
    labels, annotations = _labels(view, group), _annotations(view, group)
    patch: JsonObject = {}
    if belonging.lacks(meta.labels, labels) or belonging.lacks(meta.annotations, annotations):
        patch["metadata"] = {"labels": {**labels}, "annotations": {**annotations}}
    template = group.template
    if (
        belonging.follows_template(view.metadata)
        and template.scale_config is None
        and there.spec.replicas != template.replicas
    ):
        patch["spec"] = {"replicas": template.replicas}
    if patch:
        yield Change(SCALING_GROUPS, meta.name, meta.uid, patch)
    lasting: JsonObject = {}
    if there.spec.min_available != template.min_available:
        lasting["minAvailable"] = template.min_available
    if {*there.spec.clique_names} != {*template.clique_names}:
        lasting["cliqueNames"] = [*template.clique_names]
    if lasting:
        # By itself, since our own definition refuses it, and Grove's does not.
        yield Change(SCALING_GROUPS, meta.name, meta.uid, {"spec": lasting})


def _labels(view: SetView, group: WantedGroup) -> dict[str, str]:
    return belonging.labels_of_set(view.metadata.name, group.name, COMPONENT, group.replica)


def _annotations(view: SetView, group: WantedGroup) -> dict[str, str]:
    inherited = view.metadata.annotations.get(names.MNNVL_ANNOTATION)
    told = {names.MNNVL_ANNOTATION: inherited} if inherited is not None else {}
    return {**told, **group.template.annotations}


def _has_members(group: Group, cliques: Iterable[Clique]) -> bool:
    uid = group.metadata.uid
    return any(clique.metadata.controller_uid == uid for clique in cliques)
