"""Reads a set and all that belongs to it, once, to be shown."""

from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.streams import Custom, Node, Pod
from controller.podgang import read_gang
from kube.client import Client
from kube.resources import NODES, PODCLIQUESETS, PODGANGS, PODS
from penstock.tree import SetSeen


async def look(client: Client, namespace: str, name: str) -> SetSeen:
    """Read the set; raises kube.errors.NotFound if there is none."""
    found = await client.get(PODCLIQUESETS, Custom, name, namespace)
    uid = found.metadata.uid
    gangs = [
        gang
        for raw in (await client.list_pages(PODGANGS, Custom, namespace)).items
        if raw.metadata.controller_uid == uid and (gang := read_gang(raw)) is not None
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
