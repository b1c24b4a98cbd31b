"""Reads a set and all that belongs to it, once, to be shown."""

from contextlib import suppress
from functools import partial
from typing import Final

from api import names
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Custom, Node, Pod
from controller import pace
from controller.podgang import read_gang
from controller.workloads.views import Clique, Group
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.resources import NODES, PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SCALING_GROUPS
from penstock.tree import SetSeen

# As many nodes are asked for one by one; where pods are on more, the list costs less.
FEW: Final = 100
AT_ONCE: Final = 16


async def look(client: Client, namespace: str, name: str) -> SetSeen:
    """Read the set; raises kube.errors.NotFound if there is none.

    Whoever may not read nodes, as one who may read one namespace only, is told nothing of racks.
    """
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
    nodes = await _nodes(client, {pod.spec.node_name for pod in pods} - {""})
    return SetSeen(
        found.metadata,
        PodCliqueSetSpec.model_validate_json(bytes(found.spec)),
        PodCliqueSetStatus.model_validate_json(bytes(found.status)),
        gangs,
        {pod.metadata.name: pod for pod in pods if pod.metadata.controller_uid in makers},
        nodes,
        cliques,
        groups,
    )


async def _nodes(client: Client, wanted: set[str]) -> dict[str, Node]:
    """Read the nodes that the set's pods are on, of the tens of thousands that there may be."""
    found: dict[str, Node] = {}

    async def read(name: str) -> None:
        with suppress(NotFound, Forbidden):  # gone meanwhile, or not for us to see
            found[name] = await client.get(NODES, Node, name)

    if len(wanted) <= FEW:
        for error in await pace.all_of([partial(read, name) for name in sorted(wanted)], AT_ONCE):
            raise error
        return found
    with suppress(Forbidden):
        every = (await client.list_pages(NODES, Node)).items
        found.update({node.metadata.name: node for node in every})
    return found
