"""Clusters for the engine's benchmark: equal GPU nodes in a network of three levels, partly full.

Full means GPUs. Gangs of many sizes are laid into the racks until it is fuller than asked for, and
then gangs and single pods are taken out at random, so that what is free is ragged as in a cluster
that has lived.
To these come small pods that ask for processors and bytes only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from api import names
from api.jsons import JsonObject
from api.streams import Node, Pod
from scheduler import snapshot
from scheduler.needs import of_pod
from scheduler.snapshot import Hold, Snapshot
from scheduler.topology import Ints, Levels

LEVELS: Final = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
GPU: Final = "nvidia.com/gpu"
TAPE: Final = "example.com/tape"  # on one node in a thousand
RACK: Final = 20  # nodes; ten racks are a block, five blocks a zone
BLOCK: Final = 10 * RACK
ZONE: Final = 5 * BLOCK
GPUS: Final = 8
PODS_EACH: Final = 8
SMALL: Final = {"cpu": "250m", "memory": "512Mi"}

_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_SIZE_ODDS: Final = (0.25, 0.2, 0.2, 0.15, 0.1, 0.06, 0.04)
_WIDTHS: Final = (1, 2, 4, 8)
_WIDTH_ODDS: Final = (0.3, 0.3, 0.2, 0.2)
_MISSES: Final = 200  # in a row, after which it is as full as it gets


@dataclass(frozen=True)
class Tenant:
    """A pod that is there: on a node, by its row, with so many GPUs."""

    row: int
    gpus: int


def nodes(count: int) -> list[Node]:
    """Nodes in racks of 20, blocks of 10 racks and zones of 5 blocks, with what real ones carry."""
    return [msgspec.json.decode(each, type=Node) for each in node_documents(count)]


def node_documents(count: int) -> Iterator[bytes]:
    return (msgspec.json.encode(_node(number)) for number in range(count))


def _node(number: int) -> JsonObject:
    zone, block, rack = number // ZONE, number // BLOCK, number // RACK
    room: JsonObject = {GPU: str(GPUS), "cpu": "96", "memory": "768Gi", "pods": "110"}
    name = f"node-{number:05}"
    return {
        "metadata": {
            "name": name,
            "labels": {
                names.ZONE_KEY: f"z{zone}",
                names.BLOCK_KEY: f"b{block}",
                names.RACK_KEY: f"r{rack}",
                names.HOSTNAME_KEY: name,
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "gpu-8",
            },
        },
        "spec": {
            "taints": [{"key": GPU, "effect": "NoSchedule"}],
            # One in two hundred is out of use.
            "unschedulable": number % 200 == 77,
        },
        "status": {
            "allocatable": room if number % ZONE else {**room, TAPE: "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def tenants(count: int, full: float, seed: int = 6) -> list[Tenant]:
    """Fill so many nodes so far; equal arguments give equal tenants."""
    random = np.random.default_rng(seed)
    free = np.full(count, GPUS, dtype=np.int64)
    gangs: list[list[Tenant]] = []
    used, wanted, misses = 0, int(count * GPUS * full), 0
    fuller = min(count * GPUS, int(wanted * 1.15 + 8))
    while used < fuller and misses < _MISSES:
        width = int(random.choice(_WIDTHS, p=_WIDTH_ODDS))
        size = int(random.choice(_SIZES, p=_SIZE_ODDS))
        rows = _first(free, width, size, int(random.integers(0, count, dtype=np.int64)))
        if rows.size < size:
            misses += 1
            continue
        misses, used = 0, used + width * size
        np.subtract.at(free, rows, width)
        gangs.append([Tenant(int(row), width) for row in rows])
    _thin(gangs, used - (used - wanted) // 2, used, random)
    singly = [[tenant] for gang in gangs for tenant in gang]
    _thin(singly, wanted, sum(tenant.gpus for (tenant,) in singly), random)
    large = [tenant for gang in singly for tenant in gang]
    small = random.integers(0, count, max(0, count * PODS_EACH - len(large)))
    return [*large, *(Tenant(int(row), 0) for row in small)]


def _thin(gangs: list[list[Tenant]], wanted: int, used: int, random: np.random.Generator) -> None:
    """Take some out until no more GPUs than wanted are used, or just not fewer."""
    for index in random.permutation(len(gangs)):
        gpus = sum(tenant.gpus for tenant in gangs[index])
        if used - gpus >= wanted:
            used -= gpus
            gangs[index] = []


def _first(free: Ints, width: int, size: int, start: int) -> Ints:
    """Rows for so many pods, from the first rack at or after a place, around the cluster."""
    rows = np.roll(np.arange(len(free)), -(start // RACK * RACK))
    # A slice is looked at first; most gangs find all they need in it.
    found = rows[:0]
    for some in (rows[: 40 * size], rows):
        if found.size < size:
            found = np.repeat(some, np.maximum(free[some] // width, 0))[:size]
    return found


def pod_document(number: int, tenant: Tenant) -> bytes:
    """A running pod as the API server would stream it."""
    asked = requests(tenant.gpus)
    said: JsonObject = {"name": "main", "ready": True, "started": True}
    return msgspec.json.encode(
        {
            "metadata": {
                "name": f"pod-{number}",
                "namespace": "there",
                "uid": f"uid-{number}",
                "resourceVersion": str(number + 1),
                "labels": {"app": f"app-{number % 500}"},
            },
            "spec": {
                "nodeName": f"node-{tenant.row:05}",
                "schedulerName": "default-scheduler",
                "containers": [{"name": "main", "resources": {"requests": asked}}],
                "tolerations": TOLERATIONS,
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": kind, "status": "True"} for kind in CONDITIONS],
                "containerStatuses": [
                    {**said, "allocatedResources": asked, "resources": {"requests": asked}}
                ],
            },
        }
    )


def requests(gpus: int) -> JsonObject:
    """What a pod with so many GPUs asks for."""
    if not gpus:
        return dict(SMALL)
    return {GPU: str(gpus), "cpu": str(8 * gpus), "memory": f"{48 * gpus}Gi"}


TOLERATIONS: Final[list[JsonObject]] = [
    {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
]

CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def pods(there: Sequence[Tenant]) -> list[Pod]:
    return [
        msgspec.json.decode(pod_document(number, tenant), type=Pod)
        for number, tenant in enumerate(there)
    ]


def holds(there: Sequence[Tenant]) -> list[Hold]:
    """What the pods take, one hold a pod."""
    needs = {gpus: of_pod(_kind(gpus)) for gpus in {tenant.gpus for tenant in there}}
    return [Hold(f"node-{tenant.row:05}", needs[tenant.gpus]) for tenant in there]


def _kind(gpus: int) -> Pod:
    return msgspec.json.decode(pod_document(0, Tenant(0, gpus)), type=Pod)


def taken(count: int, full: float) -> Snapshot:
    """A snapshot of so many nodes, so far full."""
    return snapshot.build(nodes(count), holds(tenants(count, full)), LEVELS)
