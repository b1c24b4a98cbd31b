"""ComputeDomains: NVLink over several nodes, one domain a group in each replica of a set. Pure.

A domain's claims come from a template that NVIDIA's driver makes for it. A finalizer of ours keeps
a domain that is being deleted until the last pod of its replica is gone.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from api import names, quantities
from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from api.quantities import BadQuantityError
from controller.workloads import belonging, naming
from controller.workloads.making import devices
from controller.workloads.making.covering import kept
from controller.workloads.stepping import Change, Step
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import COMPUTE_DOMAINS, PODCLIQUESETS
from policies import syntax

COMPONENT: Final = "pcs-computedomain"
CLAIM: Final = "mnnvl-claim"
GPU: Final = "nvidia.com/gpu"
OPT_OUT: Final = "none"


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Keep the domains that the set's groups need, and let go of those of replicas that left."""
    bodies: dict[str, JsonObject] = {}
    if view.choices.mnnvl:
        for clique in wanted.cliques.values():
            group = group_of(view, clique)
            if group and _has_gpus(clique.template):
                replica = clique.place.replica
                name = naming.compute_domain(view.metadata.name, replica, group)
                bodies.setdefault(name, _body(view, name, replica, group))
    yield from kept(COMPUTE_DOMAINS, view.things_of(COMPUTE_DOMAINS), bodies)
    yield from releases(view)


def releases(view: SetView) -> Iterator[Step]:
    """Take our finalizer off domains that are being deleted and that no pod can be using."""
    there = view.things_of(COMPUTE_DOMAINS)
    if not there:
        return
    in_use = {
        pod.metadata.labels.get(names.SET_REPLICA_LABEL)
        for pods in view.pods.values()
        for pod in pods
        if not pod.finished
    }
    for name, thing in there.items():
        meta = thing.metadata
        if meta.deletion_timestamp is None or names.DOMAIN_FINALIZER not in meta.finalizers:
            continue
        if meta.labels.get(names.SET_REPLICA_LABEL) not in in_use:
            patch = belonging.without_finalizer(meta, names.DOMAIN_FINALIZER)
            # A list is replaced as a whole, so nobody may have changed it meanwhile.
            yield Change(COMPUTE_DOMAINS, name, meta.uid, patch, meta.resource_version)


def group_of(view: SetView, clique: WantedClique) -> str:
    """Give the NVLink group of a clique: its own word, else its scaling group's, else the set's."""
    scaling = (
        group.annotations
        for group in view.spec.template.pod_clique_scaling_groups
        if group.name == clique.place.group
    )
    for annotations in (clique.template.annotations, *scaling, view.metadata.annotations):
        written = annotations.get(names.MNNVL_ANNOTATION)
        if written is not None:
            return "" if written == OPT_OUT else written
    return ""


def shaped(view: SetView, clique: WantedClique, _index: int, spec: JsonObject) -> JsonObject:
    """Refer to the domain's claim in each container that has GPUs."""
    group = group_of(view, clique) if view.choices.mnnvl else ""
    if not group or not any(map(_wants_gpus, _containers(spec))):
        return spec
    template = naming.compute_domain(view.metadata.name, clique.place.replica, group)
    entry: JsonObject = {"name": CLAIM, "resourceClaimTemplateName": template}
    return devices.with_claims(spec, [entry], _wants_gpus)


def _has_gpus(template: CliqueTemplate) -> bool:
    return any(map(_wants_gpus, _containers(template.spec.pod_spec)))


def _containers(spec: JsonObject) -> Iterator[JsonObject]:
    for kind in ("containers", "initContainers"):
        for container in devices.items(spec.get(kind)):
            if isinstance(container, dict):
                yield container


def _wants_gpus(container: JsonObject) -> bool:
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return False
    parts = (resources.get("limits"), resources.get("requests"))
    return any(isinstance(part, dict) and _is_some(part.get(GPU)) for part in parts)


def _is_some(amount: Json) -> bool:
    try:
        return amount is not None and quantities.parse(str(amount)) > 0
    except BadQuantityError:
        return False


def _body(view: SetView, name: str, replica: int, group: str) -> JsonObject:
    owner = view.metadata
    labels: Mapping[str, str] = {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.PART_OF_LABEL: owner.name,
        **({names.NAME_LABEL: name} if syntax.is_value(name) else {}),
        names.COMPONENT_LABEL: COMPONENT,
        names.SET_REPLICA_LABEL: str(replica),
        names.MNNVL_LABEL: group,
    }
    return {
        "apiVersion": COMPUTE_DOMAINS.api_version,
        "kind": COMPUTE_DOMAINS.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**labels},
            "finalizers": [names.DOMAIN_FINALIZER],
            "ownerReferences": [belonging.owned_by(PODCLIQUESETS, owner)],
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
    }
