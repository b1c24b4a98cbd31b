"""Nodes of a network of their own in the session's lab, and sets that only go there.

Halls are zones of two blocks of three racks of two nodes with 8 GPUs each. Beside that a hall has
four rows, each of which has a node in three racks. Each test has a hall for itself, and no other
test's pods come here, for a taint keeps them away.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from api import names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.streams import Pod
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import NODES, PODS, TOPOLOGY_BINDINGS
from penstock.lab.nodes import create_nodes, make_nodes
from penstock.lab.spec import LabSpec
from penstock.tree import SetSeen

HALL = "topology-test"  # a label and a taint; whoever chooses nodes for another test sees the label
ROW = "test.penstock.dev/row"
NETWORK, ROWS = "hall-network", "hall-rows"  # bindings
COUNT = 12  # nodes of a hall
HALLS = 8

BINDINGS: dict[str, Json] = {
    NETWORK: [
        {"domain": "zone", "key": names.ZONE_KEY},
        {"domain": "block", "key": names.BLOCK_KEY},
        {"domain": "rack", "key": names.RACK_KEY},
        {"domain": "host", "key": names.HOSTNAME_KEY},
    ],
    ROWS: [{"domain": "row", "key": ROW}],
}


def bodies() -> list[JsonObject]:
    """The nodes as they are made."""
    spec = LabSpec(nodes=COUNT * HALLS, gpus=8, topology=f"hall={HALLS},block=2,rack=3")
    made = make_nodes(spec, timestamp(SystemClock().now()))
    for index, node in enumerate(made):
        meta = node["metadata"]
        assert isinstance(meta, dict)
        labels = meta["labels"]
        assert isinstance(labels, dict)
        hall, number = divmod(index, COUNT)
        name = name_of(hall, number)
        labels[names.ZONE_KEY] = zone_of(hall)
        labels |= {names.HOSTNAME_KEY: name, HALL: "yes", ROW: f"hall-{hall}-row-{number % 4}"}
        meta["name"] = name
        node["spec"] = {"taints": [{"key": HALL, "effect": "NoSchedule"}]}
    return made


def zone_of(hall: int) -> str:
    """What the hall is called as a zone."""
    return f"hall-{hall}"


def name_of(hall: int, number: int) -> str:
    """What one of its nodes is called."""
    return f"hall-{hall}-node-{number:02}"


@asynccontextmanager
async def halls(client: Client) -> AsyncIterator[None]:
    """The nodes and the bindings that name their levels, until all pods have left them."""
    for name, levels in BINDINGS.items():
        spec: JsonObject = {"levels": levels}
        kind = TOPOLOGY_BINDINGS
        meta: JsonObject = {"name": name}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
        await client.create(kind, body)
    await create_nodes(client, bodies())
    try:
        yield
    finally:
        await empty(client)
        await asyncio.gather(*(client.delete(NODES, name_in(node)) for node in bodies()))
        for name in BINDINGS:
            await client.delete(TOPOLOGY_BINDINGS, name)


async def empty(client: Client) -> None:
    """Wait until no pod is on these nodes."""
    async with asyncio.timeout(40):
        while any(
            pod.spec.node_name.startswith("hall-")
            for pod in (await client.list_pages(PODS, Pod)).items
        ):
            await asyncio.sleep(0.1)


async def cordon(client: Client, hall: int, *numbers: int, off: bool = False) -> None:
    """Let no more pods onto these nodes, or let them there again."""
    body: JsonObject = {"spec": {"unschedulable": None if off else True}}
    for number in numbers:
        await client.merge_patch(NODES, name_of(hall, number), body)


def name_in(body: JsonObject) -> str:
    """Read an object's name."""
    meta = body["metadata"]
    assert isinstance(meta, dict)
    return str(meta["name"])


def role(
    name: str, pods: int, gpus: int, hall: int, near: JsonObject | None = None, **more: Json
) -> Json:
    """A clique whose pods take so many GPUs of a hall; the rest is said in their podSpec."""
    limits: JsonObject = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    container: Json = {
        "name": "main", "image": "registry.example/engine:1.0", "resources": {"limits": limits},
    }  # fmt: skip
    pod_spec: JsonObject = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {names.ZONE_KEY: zone_of(hall)},
        "tolerations": [{"key": HALL, "operator": "Exists"}],
        **more,
    }
    spec: JsonObject = {"roleName": name, "replicas": pods, "podSpec": pod_spec}
    clique: JsonObject = {"name": name, "spec": spec}
    return clique | {"topologyConstraint": near} if near else clique


def daemonset(name: str, gpus: int, hall: int) -> JsonObject:
    """A DaemonSet whose pods take so many GPUs of each of a hall's nodes, and never start."""
    container: Json = {
        "name": "main", "image": "registry.example/agent:1.0",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }  # fmt: skip
    labels: JsonObject = {"app": name}
    pod_spec: JsonObject = {
        "containers": [container],
        "schedulingGates": [{"name": "test.penstock.dev/never"}],
        "nodeSelector": {names.ZONE_KEY: zone_of(hall)},
        "tolerations": [{"key": HALL, "operator": "Exists"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        },
    }


def volume(name: str, namespace: str, rack: str) -> tuple[JsonObject, JsonObject]:
    """A volume that only a rack's nodes reach, and a claim that it is bound to."""
    size: JsonObject = {"storage": "1Gi"}
    in_rack: Json = [{"key": names.RACK_KEY, "operator": "In", "values": [rack]}]
    common: JsonObject = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    made: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            **common,
            "capacity": size,
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": namespace, "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": in_rack}]}},
        },
    }
    claim: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**common, "volumeName": name, "resources": {"requests": size}},
    }
    return made, claim


def near(required: str = "", preferred: str = "", network: str = NETWORK) -> JsonObject:
    """Closeness as a set says it."""
    levels = {"required": required, "preferred": preferred}
    return {"topologyName": network, "pack": {how: word for how, word in levels.items() if word}}


def placed_set(
    name: str,
    roles: Sequence[Json],
    *,
    replicas: int = 1,
    groups: Sequence[Json] = (),
    whole: JsonObject | None = None,
    annotations: JsonObject | None = None,
) -> JsonObject:
    """A set; `whole` is the closeness of each replica."""
    template: JsonObject = {"cliques": [*roles], "podCliqueScalingGroups": [*groups]}
    template |= {"topologyConstraint": whole} if whole else {}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"replicas": replicas, "template": template},
    }


def domains(seen: SetSeen, key: str, of: str = "") -> list[str]:
    """In which domains of a level those of the set's pods are whose names begin so, each once."""
    return sorted(
        {
            seen.nodes[pod.spec.node_name].metadata.labels[key]
            for name, pod in seen.pods.items()
            if name.startswith(of)
        }
    )
