"""The same pods: by themselves, let go by hand, as native gangs, and as sets for Penstock.

They are the same to the last label and variable: all are as `workloads` makes those of a set.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Node
from controller import pace
from kube.client import Client
from kube.resources import NODES, PODCLIQUESETS, PODS, Resource
from tests.support.worlds import World

LABEL: Final = "bench.example/gang"
GATE: Final = "bench.example/hold"
NODE_GPUS: Final = 8
LEVELS: Final = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
NETWORK: Final = "bench"
RACK_PODS: Final = (*(8,) * 7, 4, 4)  # GPUs of nine pods, 64 together
AT_ONCE: Final = 32
POD_GROUPS: Final = Resource(
    "scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", namespaced=True
)
BINDINGS: Final = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding", namespaced=False
)

BINDING: Final[JsonObject] = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": NETWORK},
    "spec": {
        "levels": [
            {"domain": "zone", "key": names.ZONE_KEY},
            {"domain": "block", "key": names.BLOCK_KEY},
            {"domain": "rack", "key": names.RACK_KEY},
        ]
    },
}


@dataclass(frozen=True)
class Load:
    """Gangs that are asked for together: how many, and the GPUs of each one's pods.

    `bare` pods have nothing of a set's, so that they may be made beside Penstock.
    """

    gangs: int
    gpus: tuple[int, ...]
    racked: bool
    bare: bool = False

    @property
    def pods(self) -> int:
        return self.gangs * len(self.gpus)

    def names(self) -> list[str]:
        return [f"g{number}" for number in range(self.gangs)]


def racks(gangs: int) -> Load:
    """Sets of nine pods, each of which must lie in one rack."""
    return Load(gangs, RACK_PODS, racked=True)


def single(pods: int) -> Load:
    """One gang of so many pods, wherever there is room."""
    return Load(1, (4,) * pods, racked=False)


async def make_plain(client: Client, load: Load, space: str) -> None:
    """Make the pods with no gang at all."""
    await _create(client, PODS, _pods(load, {}), space)


async def make_by_hand(client: Client, load: Load, space: str) -> None:
    """Make the pods behind a gate, and let each gang go by hand once all of its pods are made.

    That is all that gates and pins cost, without anybody who watches, decides or keeps a ledger.
    """
    racks = await _racks(client)
    room = asyncio.Semaphore(AT_ONCE)

    async def within(request: Awaitable[object]) -> None:
        async with room:
            await request

    async def gang(number: int, bodies: list[JsonObject]) -> None:
        places = _places(load, racks, number)
        called = [f"{load.names()[number]}-{pod}" for pod in range(len(bodies))]
        created = (client.create(PODS, _gated(body), space) for body in bodies)
        await asyncio.gather(*map(within, created))
        lifts = (
            client.json_patch(PODS, name, _lift(node), space)
            for name, node in zip(called, places, strict=True)
        )
        await asyncio.gather(*map(within, lifts))

    every = list(_pods(load, {}))
    size = len(load.gpus)
    async with asyncio.TaskGroup() as group:
        for number in range(load.gangs):
            group.create_task(gang(number, every[number * size : (number + 1) * size]))


async def make_native(client: Client, load: Load, space: str) -> None:
    """Make the pods as kube-scheduler's own gangs."""
    groups = [_pod_group(name, load) for name in load.names()]
    await _create(client, POD_GROUPS, groups, space)
    await _create(client, PODS, _pods(load, {"schedulingGroup": True}), space)


async def make_sets(client: Client, load: Load, space: str) -> None:
    """Make PodCliqueSets of the same pods."""
    await _create(client, PODCLIQUESETS, [_set(name, load) for name in load.names()], space)


def gang_of(labels: dict[str, str]) -> str:
    """Name the gang that a pod of any of these belongs to."""
    return labels.get(LABEL) or labels.get(names.PART_OF_LABEL, "")


async def _create(
    client: Client, resource: Resource, bodies: Iterable[JsonObject], space: str
) -> None:
    async def make(body: JsonObject) -> None:
        await client.create(resource, body, space)

    requests = [partial(make, body) for body in bodies]
    for error in await pace.all_of(requests, AT_ONCE):
        raise error


async def _racks(client: Client) -> list[list[str]]:
    """Name the nodes, rack by rack."""
    found: dict[tuple[str, ...], list[str]] = {}
    for node in (await client.list_pages(NODES, Node)).items:
        labels = node.metadata.labels
        rack = tuple(labels[key] for key in LEVELS)
        found.setdefault(rack, []).append(node.metadata.name)
    return [sorted(nodes) for _, nodes in sorted(found.items())]


def _places(load: Load, racks: list[list[str]], number: int) -> list[str]:
    """Name a node for each pod of a gang: those of a rack, or as they come."""
    nodes = racks[number] if load.racked else [node for rack in racks for node in rack]
    places: list[str] = []
    taken, left = 0, NODE_GPUS
    for gpus in load.gpus:
        if left < gpus:
            taken, left = taken + 1, NODE_GPUS
        places.append(nodes[taken])
        left -= gpus
    return places


def _gated(body: JsonObject) -> JsonObject:
    spec = body["spec"]
    assert isinstance(spec, dict)
    return {**body, "spec": {**spec, "schedulingGates": [{"name": GATE}]}}


def _lift(node: str) -> list[JsonObject]:
    only: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms: JsonObject = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    pin: JsonObject = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    gate = "/spec/schedulingGates/0"
    return [
        {"op": "test", "path": f"{gate}/name", "value": GATE},
        {"op": "add", "path": "/spec/affinity", "value": pin},
        {"op": "remove", "path": gate},
    ]


def _spec(gpus: int) -> JsonObject:
    container: JsonObject = {
        "name": "engine",
        "image": "registry.example/engine:1.0",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def _pods(load: Load, more: JsonObject) -> Iterable[JsonObject]:
    kinds = [({}, _spec(gpus)) for gpus in load.gpus] if load.bare else of_set(load)
    for name in load.names():
        group: JsonObject = {"schedulingGroup": {"podGroupName": name}} if more else {}
        for number, (labels, spec) in enumerate(kinds):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{number}", "labels": {**labels, LABEL: name}},
                "spec": {**spec, **group},
            }


@cache
def of_set(load: Load) -> list[tuple[JsonObject, JsonObject]]:
    """Give labels and spec of each pod that `workloads` makes for a set, without its gate.

    To be asked once before time is taken, as it is work.
    """
    world = World(PodCliqueSetSpec.model_validate(_set("", load)["spec"]))
    world.settle()
    found: list[tuple[JsonObject, JsonObject]] = []
    for body in world.of(PODS).values():
        metadata, spec = body["metadata"], body["spec"]
        assert isinstance(metadata, dict)
        assert isinstance(spec, dict)
        labels = metadata["labels"]
        assert isinstance(labels, dict)
        found.append((labels, {k: v for k, v in spec.items() if k != "schedulingGates"}))
    return found


def _pod_group(name: str, load: Load) -> JsonObject:
    spec: JsonObject = {"schedulingPolicy": {"gang": {"minCount": len(load.gpus)}}}
    if load.racked:
        spec["schedulingConstraints"] = {"topology": [{"key": names.RACK_KEY}]}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _set(name: str, load: Load) -> JsonObject:
    cliques: list[Json] = []
    for size in sorted(set(load.gpus), reverse=True):
        clique: JsonObject = {
            "roleName": f"of{size}", "replicas": load.gpus.count(size), "podSpec": _spec(size)
        }  # fmt: skip
        cliques.append({"name": f"of{size}", "spec": clique})
    template: JsonObject = {"cliques": cliques}
    if load.racked:
        template["topologyConstraint"] = {
            "topologyName": NETWORK, "pack": {"required": "rack"}
        }  # fmt: skip
    return {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }
