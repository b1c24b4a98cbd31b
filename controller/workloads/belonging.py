"""How objects made for a set say that they are, and with whom they go: labels and owners. Pure."""

from collections.abc import Mapping

from api import names
from api.jsons import JsonObject
from api.objects import owner_reference
from api.streams import Meta
from controller.workloads import naming
from controller.workloads.wants import WantedClique
from kube.resources import Resource


def labels_of_set(set_name: str, name: str, component: str, replica: int) -> dict[str, str]:
    """Label an object of one replica of a set."""
    return {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.PART_OF_LABEL: set_name,
        names.NAME_LABEL: name,
        names.COMPONENT_LABEL: component,
        names.SET_REPLICA_LABEL: str(replica),
    }


def labels_of_clique(set_name: str, clique: WantedClique) -> dict[str, str]:
    """Label a clique and its pods by where it stands; no template may say otherwise."""
    place = clique.place
    component = "pcsg-podclique" if place.group else "pcs-podclique"
    labels = labels_of_set(set_name, clique.name, component, place.replica)
    labels[names.PODGANG_LABEL] = place.gang
    if place.base:
        labels[names.BASE_PODGANG_LABEL] = place.base
    if place.group:
        labels[names.SCALING_GROUP_LABEL] = place.group_name
        labels[names.SCALING_GROUP_REPLICA_LABEL] = str(place.copy)
    return labels


def follows_template(owner: Meta) -> bool:
    """Tell whether the set's author wants live counts to follow its templates."""
    return owner.annotations.get(names.REPLICAS_ANNOTATION) == names.REPLICAS_OF_TEMPLATE


def headless_host(meta: Meta, replica: int) -> str:
    """Name the domain of a replica's pods."""
    return f"{naming.base_gang(meta.name, replica)}.{meta.namespace}.svc.cluster.local"


def owned_by(kind: Resource, owner: Meta) -> JsonObject:
    """Refer to the owner that controls an object."""
    return owner_reference(kind.api_version, kind.kind, owner, blocks_deletion=True)


def lacks(there: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether any label that is wanted is missing or other than wanted."""
    return not wanted.items() <= there.items()


def without_finalizer(meta: Meta, finalizer: str) -> JsonObject:
    """Write the patch that takes a finalizer off and leaves those of others."""
    return {"metadata": {"finalizers": [*(f for f in meta.finalizers if f != finalizer)]}}
