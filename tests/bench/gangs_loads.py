"""The same pods in three ways: by themselves, as native gangs, and as sets for Penstock."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from controller import pace
from kube.client import Client
from kube.resources import PODCLIQUESETS, PODS, Resource

LABEL: Final = "bench.example/gang"
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
    """Gangs that are asked for together: how many, and the GPUs of each one's pods."""

    gangs: int
    gpus: tuple[int, ...]
    racked: bool

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


def _spec(gpus: int) -> JsonObject:
    container: JsonObject = {
        "name": "engine",
        "image": "registry.example/engine:1.0",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def _pods(load: Load, more: JsonObject) -> Iterable[JsonObject]:
    for name in load.names():
        group: JsonObject = {"schedulingGroup": {"podGroupName": name}} if more else {}
        for number, gpus in enumerate(load.gpus):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{number}", "labels": {LABEL: name}},
                "spec": {**_spec(gpus), **group},
            }


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
