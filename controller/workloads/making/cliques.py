"""The PodCliques of a set: made, kept in order, and taken away after their pods. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from api import names
from api.jsons import Json, JsonObject
from api.streams import Meta, Pod
from controller.workloads import belonging
from controller.workloads.making import environment
from controller.workloads.stepping import Change, Create, Remove, Step
from controller.workloads.updates import adopting, merging
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODS, SCALING_GROUPS
from policies import membership


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Make cliques that are missing, put them right, and let go of those wanted no more."""
    for clique in wanted.cliques.values():
        there = view.cliques.get(clique.name)
        if there is None:
            if owner(view, clique) is not None and clique.name not in view.unread:
                yield Create(PODCLIQUES, body(view, clique))
        elif not is_leaving(view, clique, there):
            yield from _repairs(view, clique, there)
    keep = wanted.cliques
    for name, there in view.cliques.items():
        if name not in keep or is_leaving(view, keep[name], there):
            pods = view.pods_of(name)
            yield from leaving(there, pods)
            if there.metadata.deletion_timestamp is None:
                yield from _removals(pods)


def is_leaving(view: SetView, clique: WantedClique, there: Clique) -> bool:
    """Tell whether a clique is on its way out, though one of its name is wanted."""
    return (
        there.metadata.deletion_timestamp is not None
        # One that was left by a group which is gone is not its successor's.
        or _owner(view, clique).uid != there.metadata.controller_uid
        or owner(view, clique) is None
    )


def leaving(clique: Clique, pods: Sequence[Pod]) -> Iterator[Step]:
    """Take a clique away, then its pods; it is gone when the last of these is.

    Its pods go only once it is sure to go: until then it may turn out to be somebody else's.
    """
    meta = clique.metadata
    if meta.deletion_timestamp is None:
        yield Remove(PODCLIQUES, meta.name, meta.uid, meta.resource_version)
    elif pods:
        yield from _removals(pods)
    elif names.CLIQUE_FINALIZER in meta.finalizers:
        patch = belonging.without_finalizer(meta, names.CLIQUE_FINALIZER)
        yield Change(PODCLIQUES, meta.name, meta.uid, patch, meta.resource_version)


def _removals(pods: Sequence[Pod]) -> Iterator[Remove]:
    for pod in pods:
        meta = pod.metadata
        if meta.deletion_timestamp is None:
            yield Remove(PODS, meta.name, meta.uid, meta.resource_version)


def owner(view: SetView, clique: WantedClique) -> Meta | None:
    """Give the set or group that a clique is to belong to, if that is there to stay."""
    found = _owner(view, clique)
    return found if found.uid and found.deletion_timestamp is None else None


def body(view: SetView, clique: WantedClique) -> JsonObject:
    """Write a clique as it is made from the newest template. Its owner must be there."""
    kind = SCALING_GROUPS if clique.place.group else PODCLIQUESETS
    return {
        "apiVersion": PODCLIQUES.api_version,
        "kind": PODCLIQUES.kind,
        "metadata": {
            "name": clique.name,
            "namespace": view.metadata.namespace,
            "labels": {**labels(view, clique)},
            "annotations": {**annotations(clique)},
            "ownerReferences": [belonging.owned_by(kind, _owner(view, clique))],
            "finalizers": [names.CLIQUE_FINALIZER],
        },
        "spec": _spec(view, clique),
    }


def labels(view: SetView, clique: WantedClique) -> dict[str, str]:
    """Give all labels of a clique made from the newest template."""
    # Admission refuses the others, but not in sets that were stored while it was away.
    written = clique.template.labels
    own = {key: text for key, text in written.items() if not membership.is_forbidden_label(key)}
    told = belonging.labels_of_clique(view.metadata.name, clique)
    return {**own, **told, names.TEMPLATE_HASH_LABEL: clique.template_hash}


def annotations(clique: WantedClique) -> dict[str, str]:
    """Give the annotations of a clique made from the newest template."""
    written = clique.template.annotations
    forbidden = membership.is_forbidden_annotation
    return {
        key: text
        for key, text in written.items()
        if not forbidden(key) and key != names.TOPOLOGY_NAME_ANNOTATION
    }


def pod_spec(view: SetView, clique: WantedClique) -> JsonObject:
    """Give the podSpec of a clique made from the newest template."""
    written = clique.template.spec.pod_spec
    if not clique.place.group:
        return written
    return environment.given(written, environment.of_group(view.spec, clique.place))


def _spec(view: SetView, clique: WantedClique) -> JsonObject:
    template = clique.template.spec
    spec: JsonObject = {
        "roleName": template.role_name,
        "replicas": template.replicas,
        "minAvailable": template.minimum,
        "podSpec": pod_spec(view, clique),
    }
    if clique.waits_for:
        spec["startsAfter"] = [parent.clique for parent in clique.waits_for]
    if template.auto_scaling_config is not None:
        spec["autoScalingConfig"] = _scaling(clique)
    return spec


def _scaling(clique: WantedClique) -> Json:
    config = clique.template.spec.auto_scaling_config
    return None if config is None else config.model_dump(mode="json", by_alias=True)


def _repairs(view: SetView, clique: WantedClique, there: Clique) -> Iterator[Step]:
    """Put right what is another than it was made with; scale belongs to whoever scales it."""
    meta = there.metadata
    # One of an older template is given the newest as a whole, when its turn comes.
    is_newest = meta.labels.get(names.TEMPLATE_HASH_LABEL) == clique.template_hash
    patch: JsonObject = {}
    if metadata := _mended_metadata(view, clique, meta, is_newest=is_newest):
        patch["metadata"] = metadata
    spec: JsonObject = {}
    template = clique.template.spec
    if is_newest and (mended := _mended_pods(view, clique, there)):
        spec["podSpec"] = mended
    if there.spec.auto_scaling_config != template.auto_scaling_config:
        spec["autoScalingConfig"] = _scaling(clique)
    if (
        belonging.follows_template(view.metadata)
        and template.auto_scaling_config is None
        and there.spec.replicas != template.replicas
    ):
        spec["replicas"] = template.replicas
    if spec:
        patch["spec"] = spec
    if patch:
        yield Change(PODCLIQUES, meta.name, meta.uid, patch)
    if lasting := _mended_for_good(clique, there):
        # By itself, since our own definition refuses it, and Grove's does not.
        yield Change(PODCLIQUES, meta.name, meta.uid, {"spec": lasting})


def _mended_metadata(
    view: SetView, clique: WantedClique, meta: Meta, *, is_newest: bool
) -> JsonObject:
    """Write back labels and annotations that are missing; what others have added stays."""
    mended: JsonObject = {}
    wanted = (
        labels(view, clique)
        if is_newest
        else belonging.labels_of_clique(view.metadata.name, clique)
    )
    if belonging.lacks(meta.labels, wanted):
        mended["labels"] = {**wanted}
    told = annotations(clique) if is_newest else {}
    if belonging.lacks(meta.annotations, told):
        mended["annotations"] = {**told}
    return mended


def _mended_pods(view: SetView, clique: WantedClique, there: Clique) -> JsonObject:
    """Give the patch for a podSpec that would make other pods than its label says; else nothing."""
    wanted, written = pod_spec(view, clique), there.spec.pod_spec
    # Hardly ever are they not the same to the letter.
    if written == wanted or adopting.makes_pods_of(there, clique.template):
        return {}
    return merging.patch(written, wanted)


def _mended_for_good(clique: WantedClique, there: Clique) -> JsonObject:
    """Give what a clique is made with and keeps for good, where it says otherwise."""
    template, spec = clique.template.spec, there.spec
    mended: JsonObject = {}
    if spec.role_name != template.role_name:
        mended["roleName"] = template.role_name
    if spec.minimum != template.minimum:
        mended["minAvailable"] = template.minimum
    parents = {parent.clique for parent in clique.waits_for}
    if {*spec.starts_after} != parents and not adopting.is_groves_order(clique, spec.starts_after):
        mended["startsAfter"] = [parent.clique for parent in clique.waits_for] or None
    return mended


_NOBODY = Meta(name="")


def _owner(view: SetView, clique: WantedClique) -> Meta:
    if not clique.place.group:
        return view.metadata
    group = view.groups.get(clique.place.group_name)
    return group.metadata if group else _NOBODY
