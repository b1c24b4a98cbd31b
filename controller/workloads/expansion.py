"""What a set wants to exist: its gangs, and in each its cliques and pods. Pure.

One replica of a set is one base gang, with every clique that stands by itself and the copies
0 to minAvailable-1 of every scaling group. Each further copy of a group is a scaled gang of its
own, which starts only after its base gang.
"""

import copy
from collections.abc import Container, Iterator
from dataclasses import dataclass

from api import names
from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from api.objects import owner_reference
from api.podcliqueset import PodCliqueSetSpec, ScalingGroupTemplate
from api.streams import Meta
from controller.workloads import naming
from kube.resources import PODCLIQUESETS, PODGANGS, PODS
from policies import gating, membership


@dataclass(frozen=True)
class _Copy:
    """Where a clique stands: in which replica, and in which copy of which group, if any."""

    replica: int
    gang: str
    base: str = ""
    group: str = ""
    copy: int = 0


@dataclass(frozen=True)
class WantedPod:
    """One pod and its slot; `body` writes it out when it is to be made."""

    name: str
    index: int
    _owner: Meta
    _clique: str
    _template: CliqueTemplate
    _where: _Copy

    def body(self, scheduler: str) -> JsonObject:
        """Write the pod as it is made.

        `scheduler` takes the place of the author's, unless it is empty: the webhook may have
        written another name than the author, and all pods of a set go to one scheduler.
        """
        body = _pod_body(self._owner, self._template, self._where, self._clique, self.index)
        spec = body["spec"]
        if scheduler and isinstance(spec, dict):
            spec["schedulerName"] = scheduler
        return body


@dataclass(frozen=True)
class WantedClique:
    """The pods of one clique in one gang."""

    name: str
    minimum: int
    pods: tuple[WantedPod, ...]


@dataclass(frozen=True)
class WantedGang:
    """A gang; `replica` is the set's replica it belongs to, `base` the gang it must wait for."""

    name: str
    replica: int
    base: str
    cliques: tuple[WantedClique, ...]


def expand(owner: Meta, spec: PodCliqueSetSpec) -> tuple[WantedGang, ...]:
    """List all gangs of the set, base gangs before the scaled ones they carry."""
    return tuple(
        gang for replica in range(spec.replicas) for gang in _gangs_of(owner, spec, replica)
    )


def _gangs_of(owner: Meta, spec: PodCliqueSetSpec, replica: int) -> Iterator[WantedGang]:
    base = naming.base_gang(owner.name, replica)
    groups = spec.template.pod_clique_scaling_groups
    grouped = {name for group in groups for name in group.clique_names}
    alone = _Copy(replica, base)
    cliques = [
        _clique(owner, clique, alone)
        for clique in spec.template.cliques
        if clique.name not in grouped
    ]
    for group in groups:
        for number in range(min(group.min_available, group.replicas)):
            where = _Copy(replica, base, group=group.name, copy=number)
            cliques += _members(owner, spec, group, where)
    yield WantedGang(base, replica, "", tuple(cliques))
    for group in groups:
        for number in range(group.min_available, group.replicas):
            ordinal = number - group.min_available
            name = naming.scaled_gang(owner.name, replica, group.name, ordinal)
            where = _Copy(replica, name, base=base, group=group.name, copy=number)
            yield WantedGang(name, replica, base, tuple(_members(owner, spec, group, where)))


def _members(
    owner: Meta, spec: PodCliqueSetSpec, group: ScalingGroupTemplate, where: _Copy
) -> list[WantedClique]:
    members = set(group.clique_names)
    return [
        _clique(owner, clique, where) for clique in spec.template.cliques if clique.name in members
    ]


def _clique(owner: Meta, clique: CliqueTemplate, where: _Copy) -> WantedClique:
    if where.group:
        name = naming.grouped_clique(
            owner.name, where.replica, where.group, where.copy, clique.name
        )
    else:
        name = naming.clique(owner.name, where.replica, clique.name)
    pods = tuple(
        WantedPod(naming.pod(owner.uid, name, index), index, owner, name, clique, where)
        for index in range(clique.spec.replicas)
    )
    return WantedClique(name, clique.spec.minimum, pods)


def _pod_body(
    owner: Meta, clique: CliqueTemplate, where: _Copy, name: str, index: int
) -> JsonObject:
    spec = copy.deepcopy(clique.spec.pod_spec)
    gates = spec.get("schedulingGates")
    # Written here and not left to the webhook, whose outage must neither hold up our pods nor let
    # them start alone. The author's own gates stay: others count on them.
    spec["schedulingGates"] = gating.gated(gates if isinstance(gates, list) else [])
    spec["hostname"] = naming.hostname(name, index)
    spec["subdomain"] = naming.base_gang(owner.name, where.replica)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": naming.pod(owner.uid, name, index),
            "namespace": owner.namespace,
            "labels": {**_own_labels(clique), **_labels(owner, where, name, index)},
            "annotations": _own_annotations(clique),
            "ownerReferences": [_owned_by(owner)],
        },
        "spec": spec,
    }


def _own_labels(clique: CliqueTemplate) -> JsonObject:
    # Admission refuses the others, but not in sets that were stored while it was away.
    return {k: v for k, v in clique.labels.items() if not membership.is_forbidden_label(k)}


def _own_annotations(clique: CliqueTemplate) -> JsonObject:
    forbidden = membership.is_forbidden_annotation
    return {key: value for key, value in clique.annotations.items() if not forbidden(key)}


def _owned_by(owner: Meta) -> JsonObject:
    kind = PODCLIQUESETS
    return owner_reference(kind.api_version, kind.kind, owner, blocks_deletion=True)


def _labels(owner: Meta, where: _Copy, clique: str, index: int) -> dict[str, str]:
    labels = {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.PART_OF_LABEL: owner.name,
        names.NAME_LABEL: clique,
        names.COMPONENT_LABEL: "pcsg-podclique" if where.group else "pcs-podclique",
        names.SET_REPLICA_LABEL: str(where.replica),
        names.PODGANG_LABEL: where.gang,
        names.PODCLIQUE_LABEL: clique,
        names.POD_INDEX_LABEL: str(index),
    }
    if where.base:
        labels[names.BASE_PODGANG_LABEL] = where.base
    if where.group:
        group = naming.scaling_group(owner.name, where.replica, where.group)
        labels[names.SCALING_GROUP_LABEL] = group
        labels[names.SCALING_GROUP_REPLICA_LABEL] = str(where.copy)
    return labels


def gang_body(owner: Meta, spec: PodCliqueSetSpec, gang: WantedGang) -> JsonObject:
    """Write a gang as it is made: all its cliques, with no pods referred to yet."""
    labels: dict[str, str] = {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.PART_OF_LABEL: owner.name,
        names.NAME_LABEL: gang.name,
        names.COMPONENT_LABEL: "podgang",
        names.SET_REPLICA_LABEL: str(gang.replica),
    }
    if gang.base:
        labels[names.BASE_PODGANG_LABEL] = gang.base
    body: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {
            "name": gang.name,
            "namespace": owner.namespace,
            "labels": {**labels},
            "ownerReferences": [_owned_by(owner)],
        },
        "spec": {
            "podgroups": pod_groups(owner, gang, {}),
            "priorityClassName": spec.template.priority_class_name,
        },
    }
    return body


def pod_groups(owner: Meta, gang: WantedGang, made: Container[str]) -> list[Json]:
    """Write the gang's cliques, referring to those of their pods that were made."""
    return [
        {
            "name": clique.name,
            "minReplicas": clique.minimum,
            "podReferences": [
                {"namespace": owner.namespace, "name": name}
                for name in sorted(pod.name for pod in clique.pods if pod.name in made)
            ],
        }
        for clique in gang.cliques
    ]
