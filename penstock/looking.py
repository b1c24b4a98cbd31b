"""Reads a set and all that belongs to it, once, to be shown."""

from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Custom, Node, Pod
from kube.client import Client
from kube.resources import NODES, PODCLIQUESETS, PODGANGS, PODS
from penstock.tree import GangSeen, SetSeen


async def look(client: Client, namespace: str, name: str) -> SetSeen:
    """Read the set; raises kube.errors.NotFound if there is none."""
    found = await client.get(PODCLIQUESETS, Custom, name, namespace)
    uid = found.metadata.uid
    gangs = [
        GangSeen(
            gang.metadata,
            PodGangSpec.model_validate_json(bytes(gang.spec)),
            PodGangStatus.model_validate_json(bytes(gang.status)),
        )
        for gang in (await client.list_pages(PODGANGS, Custom, namespace)).items
        if gang.metadata.controller_uid == uid
    ]
    pods = (await client.list_pages(PODS, Pod, namespace)).items
    nodes = (await client.list_pages(NODES, Node)).items
    return SetSeen(
        found.metadata,
        PodCliqueSetSpec.model_validate_json(bytes(found.spec)),
        PodCliqueSetStatus.model_validate_json(bytes(found.status)),
        gangs,
        {pod.metadata.name: pod for pod in pods if pod.metadata.controller_uid == uid},
        {node.metadata.name: node for node in nodes},
    )
