"""Reads a set and all that belongs to it, once, to be shown."""

from collections.abc import Sequence

from api import names
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Custom, Node, Pod
from controller.podgang import read_gang
from controller.workloads.views import Clique, Group
from kube.client import Client
from kube.resources import NODES, PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SCALING_GROUPS
from penstock.tree import SetSeen


async def look(
    client: Client, namespace: str, name: str, nodes: Sequence[Node] | None = None
) -> SetSeen:
    """Read the set; raises kube.errors.NotFound if there is none. Nodes are read unless given."""
    found = await client.get(PODCLIQUESETS, Custom, name, namespace)
    uid = found.metadata.uid
    gangs = [
        gang
        for raw in (await client.list_pages(PODGANGS, Custom, namespace)).items
        if raw.metadata.controller_uid == uid and (gang := read_gang(raw)) is not None
    ]
    groups = {
        raw.metadata.name: Group(
            raw.metadata,
            PodCliqueScalingGroupSpec.model_validate_json(bytes(raw.spec)),
            PodCliqueScalingGroupStatus.model_validate_json(bytes(raw.status)),
        )
        for raw in (await client.list_pages(SCALING_GROUPS, Custom, namespace)).items
        if raw.metadata.controller_uid == uid
    }
    owners = {uid, *(group.metadata.uid for group in groups.values())}
    cliques = {
        raw.metadata.name: Clique(
            raw.metadata,
            PodCliqueSpec.model_validate_json(bytes(raw.spec)),
            PodCliqueStatus.model_validate_json(bytes(raw.status)),
        )
        for raw in (await client.list_pages(PODCLIQUES, Custom, namespace)).items
        if raw.metadata.controller_uid in owners
    }
    makers = {clique.metadata.uid for clique in cliques.values()}
    # A namespace may have tens of thousands; whose each is, its owner tells.
    mine = f"{names.PART_OF_LABEL}={name}"
    pods = (await client.list_pages(PODS, Pod, namespace, labels=mine)).items
    if nodes is None:
        nodes = (await client.list_pages(NODES, Node)).items
    return SetSeen(
        found.metadata,
        PodCliqueSetSpec.model_validate_json(bytes(found.spec)),
        PodCliqueSetStatus.model_validate_json(bytes(found.status)),
        gangs,
        {pod.metadata.name: pod for pod in pods if pod.metadata.controller_uid in makers},
        {node.metadata.name: node for node in nodes},
        cliques,
        groups,
    )
