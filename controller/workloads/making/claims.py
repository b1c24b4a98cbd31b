"""ResourceClaims that pods share: at the level of the set, of a scaling group, of a clique. Pure.

A claim is owned by what shares it, and is made from a template: one written into the set, or a
ResourceClaimTemplate of the cluster. What a claim asks for is never changed afterwards. A pod is
made only when all its claims are there, since it could not start without them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api import names
from api.jsons import JsonObject
from api.sharing import GroupResourceSharing, ResourceSharing, SetResourceSharing, SharingScope
from api.streams import Meta
from controller.voicing import Tell
from controller.workloads import belonging, naming
from controller.workloads.making import devices
from controller.workloads.making.covering import kept
from controller.workloads.making.slots import index_of, slots
from controller.workloads.stepping import Step
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.objects import Key
from kube.resources import (
    CLAIM_TEMPLATES,
    PODCLIQUES,
    PODCLIQUESETS,
    RESOURCE_CLAIMS,
    SCALING_GROUPS,
    Resource,
)

COMPONENT: Final = "resource-claim"
TEMPLATE_NOT_FOUND: Final = "ResourceClaimTemplateNotFound"


@dataclass(frozen=True)
class _Owner:
    """What shares claims: a set, a group or a clique. `numbered` labels what one replica has."""

    kind: Resource
    metadata: Meta
    numbered: str
    labels: tuple[tuple[str, str], ...] = ()

    def claims(self, sharing: ResourceSharing, replicas: Iterable[int]) -> Iterator["_Claim"]:
        """List what comes of one rule of sharing."""
        name = self.metadata.name
        if sharing.scope is SharingScope.ALL_REPLICAS:
            yield _Claim(naming.claim_for_all(name, sharing.name), sharing, self, self.labels)
            return
        for index in replicas:
            labels = (*self.labels, (self.numbered, str(index)))
            yield _Claim(naming.claim_for_one(name, index, sharing.name), sharing, self, labels)


@dataclass(frozen=True)
class _Claim:
    """A claim there should be."""

    name: str
    sharing: ResourceSharing
    owner: _Owner
    labels: tuple[tuple[str, str], ...]


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Keep the claims that the set's parts share, and none of parts that are gone."""
    there = view.things_of(RESOURCE_CLAIMS)
    bodies: dict[str, JsonObject] = {}
    without: dict[str, None] = {}
    for claim in _claims(view, wanted):
        body = _head(view, claim)
        if claim.name not in there:
            template = _template(view, claim.sharing)
            if template is None:
                without["/".join(_key(view, claim.sharing))] = None
                continue
            body = _made_from(template, body)
        bodies[claim.name] = body
    yield from kept(RESOURCE_CLAIMS, there, bodies)
    if without:
        note = f"there is no {CLAIM_TEMPLATES.kind} {', '.join(without)}: pods that share it wait"
        owner = view.metadata
        yield Tell(PODCLIQUESETS, owner.name, owner.uid, TEMPLATE_NOT_FOUND, note, warning=True)


def names_for(view: SetView, clique: WantedClique, index: int) -> tuple[str, ...]:
    """List the claims that a pod of the clique uses: the set's, then the group's, then its own."""
    template, place = view.spec.template, clique.place
    found = list(
        _names(
            (s for s in template.resource_sharing if _takes_part(s, clique)),
            view.metadata.name,
            place.replica,
        )
    )
    for group in template.pod_clique_scaling_groups:
        if group.name == place.group:
            shared = (s for s in group.resource_sharing if _is_member(s, clique))
            found += _names(shared, place.group_name, place.copy)
    found += _names(clique.template.resource_sharing, clique.name, index)
    return tuple(found)


def missing_for(view: SetView, clique: WantedClique, index: int) -> tuple[str, ...]:
    """List the claims of a pod that are not there yet: until they are, it is not to be made."""
    there = view.things_of(RESOURCE_CLAIMS)
    return tuple(name for name in names_for(view, clique, index) if name not in there)


def shaped(view: SetView, clique: WantedClique, index: int, spec: JsonObject) -> JsonObject:
    """Refer to the claims that a pod uses, in each of its author's containers."""
    entries: list[JsonObject] = [
        {"name": devices.entry(name), "resourceClaimName": name}
        for name in names_for(view, clique, index)
    ]
    return devices.with_claims(spec, entries, lambda _: True) if entries else spec


def _names(shared: Iterable[ResourceSharing], owner: str, index: int) -> Iterator[str]:
    """Name what an owner's replica uses: what all replicas share, then what is its own."""
    known = list(shared)
    for sharing in known:
        if sharing.scope is SharingScope.ALL_REPLICAS:
            yield naming.claim_for_all(owner, sharing.name)
    for sharing in known:
        if sharing.scope is SharingScope.PER_REPLICA:
            yield naming.claim_for_one(owner, index, sharing.name)


def _takes_part(sharing: SetResourceSharing, clique: WantedClique) -> bool:
    let_in = sharing.filter
    return let_in is None or (
        clique.template.name in let_in.child_clique_names
        or clique.place.group in let_in.child_scaling_group_names
    )


def _is_member(sharing: GroupResourceSharing, clique: WantedClique) -> bool:
    return sharing.filter is None or clique.template.name in sharing.filter.child_clique_names


def _claims(view: SetView, wanted: Wanted) -> Iterator[_Claim]:
    """List the claims of all owners that are there."""
    for sharing in view.spec.template.resource_sharing:
        of_set = _Owner(PODCLIQUESETS, view.metadata, names.SET_REPLICA_LABEL)
        yield from of_set.claims(sharing, range(view.spec.replicas))
    for group in wanted.groups:
        there = view.groups.get(group.name)
        if there is not None and there.metadata.deletion_timestamp is None:
            of_group = _Owner(
                SCALING_GROUPS,
                there.metadata,
                names.SCALING_GROUP_REPLICA_LABEL,
                ((names.SCALING_GROUP_LABEL, group.name),),
            )
            for shared in group.template.resource_sharing:
                yield from of_group.claims(shared, range(group.copies))
    for clique in wanted.cliques.values():
        if clique.template.resource_sharing:
            yield from _claims_of_clique(view, clique)


def _claims_of_clique(view: SetView, clique: WantedClique) -> Iterator[_Claim]:
    there = view.cliques.get(clique.name)
    if there is None or there.metadata.deletion_timestamp is not None:
        return
    of_clique = _Owner(
        PODCLIQUES,
        there.metadata,
        names.POD_INDEX_LABEL,
        ((names.PODCLIQUE_LABEL, clique.name),),
    )
    # As long as there is a pod in a place, on its way out too, its claim stays.
    taken = {index_of(pod, clique.name) for pod in view.pods_of(clique.name)}
    places = sorted(taken.union(slots(view, clique).make))
    for sharing in clique.template.resource_sharing:
        yield from of_clique.claims(sharing, places)


def _template(view: SetView, sharing: ResourceSharing) -> JsonObject | None:
    """Find what the claim is made from: a template of the set first, then one of the cluster."""
    if not sharing.namespace:
        for in_line in view.spec.template.resource_claim_templates:
            if in_line.name == sharing.name:
                return in_line.template_spec
    found = view.claim_templates.get(_key(view, sharing))
    spec = found.get("spec") if found else None
    return spec if isinstance(spec, dict) else None


def _key(view: SetView, sharing: ResourceSharing) -> Key:
    return sharing.namespace or view.metadata.namespace, sharing.name


def _head(view: SetView, claim: _Claim) -> JsonObject:
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "name": claim.name,
            "namespace": view.metadata.namespace,
            "labels": {
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
                names.PART_OF_LABEL: view.metadata.name,
                names.COMPONENT_LABEL: COMPONENT,
                **dict(claim.labels),
            },
            "ownerReferences": [belonging.owned_by(claim.owner.kind, claim.owner.metadata)],
        },
    }


def _made_from(template: JsonObject, head: JsonObject) -> JsonObject:
    """Write a claim as it is made: with the template's own labels, but ours win."""
    told, own = template.get("metadata"), head["metadata"]
    metadata = {**own} if isinstance(own, dict) else {}
    for key in ("labels", "annotations"):
        more, ours = told.get(key) if isinstance(told, dict) else None, metadata.get(key)
        if isinstance(more, dict):
            metadata[key] = {**more, **(ours if isinstance(ours, dict) else {})}
    return {**head, "metadata": metadata, "spec": template.get("spec") or {}}
