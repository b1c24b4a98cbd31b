"""The pretend nodes of a lab: what they are, making them all at once, waiting for them."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError, Invalid
from kube.resources import NODES, SERVICEACCOUNTS, Resource
from penstock.lab.errors import LabError
from penstock.lab.progress import Reporter, duration
from penstock.lab.spec import LabSpec
from penstock.lab.topology import parse_topology

GPU: Final = "nvidia.com/gpu"
MANY: Final = 200
WORKERS: Final = 32
POLL_SECONDS: Final = 0.25
READY_SECONDS: Final = 60.0
SECONDS_PER_NODE: Final = 0.1

_FIRST_ADDRESS: Final = int(ipaddress.IPv4Address("172.16.0.0"))
_NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"

_CONDITIONS: Final = (
    ("Ready", "True", "KubeletReady"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
)


class Server(Protocol):
    """An API server that is asked how it is."""

    async def raw_get(self, path: str) -> bytes:
        """Return what is at the path."""
        ...


class Registry(Protocol):
    """Where nodes are registered: the API server."""

    async def create(self, resource: Resource, body: object) -> bytes:
        """Create one object and return it as stored; raises the types of kube.errors."""
        ...

    async def json_patch(
        self, resource: Resource, name: str, operations: Sequence[Mapping[str, Json]]
    ) -> bytes:
        """Patch one object; raises Invalid where a `test` in it fails."""
        ...


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Taint(msgspec.Struct):
    key: str


class _Spec(msgspec.Struct):
    taints: list[_Taint] = msgspec.field(default_factory=list)


class _Status(msgspec.Struct):
    conditions: list[_Condition] = msgspec.field(default_factory=list)


class _Named(msgspec.Struct):
    name: str


class NodeView(msgspec.Struct):
    """What readiness is told from."""

    metadata: _Named
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def serves(self) -> bool:
        """Tell whether pods can be scheduled here: Ready, and the taint of new nodes is gone."""
        conditions = self.status.conditions
        ready = any(item.type == "Ready" and item.status == "True" for item in conditions)
        return ready and all(taint.key != _NOT_READY_TAINT for taint in self.spec.taints)


def make_nodes(spec: LabSpec, now: str) -> list[JsonObject]:
    """Return every node of a lab, in the order of the topology; `now` is an instant in RFC 3339."""
    topology = parse_topology(spec.topology)
    width = len(str(max(spec.nodes - 1, 0)))
    return [
        _node(
            Place(
                name=f"node-{index:0{width}d}",
                address=str(ipaddress.IPv4Address(_FIRST_ADDRESS + index + 1)),
                labels=topology.labels(topology.leaf_of(index, spec.nodes)),
            ),
            spec,
            now,
        )
        for index in range(spec.nodes)
    ]


@dataclass(frozen=True)
class Place:
    """What tells one node of a lab from another."""

    name: str
    address: str
    labels: Mapping[str, str]


def _node(place: Place, spec: LabSpec, now: str) -> JsonObject:
    resources: JsonObject = {"cpu": spec.cpu, "memory": spec.memory, "pods": str(spec.pods)}
    labels: JsonObject = {
        names.HOSTNAME_KEY: place.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        # A controller would add these two in a write of its own.
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"lab-{spec.gpus}gpu",
        "type": "kwok",
        **place.labels,
    }
    if spec.gpus:
        resources[GPU] = str(spec.gpus)
        labels["nvidia.com/gpu.present"] = "true"
    fake: JsonObject = {"kwok.x-k8s.io/node": "fake"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": place.name, "labels": labels, "annotations": fake},
        # The server keeps the status a node is created with, as kubelets rely on: no second write.
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [_condition(*each, now) for each in _CONDITIONS],
            "addresses": [
                {"type": "InternalIP", "address": place.address},
                {"type": "Hostname", "address": place.name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": spec.kubernetes,
                "containerRuntimeVersion": "kwok://lab",
                "kernelVersion": "lab",
                "osImage": "Penstock lab",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
                "kubeProxyVersion": "",
            },
        },
    }


def _condition(kind: str, status: str, reason: str, now: str) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


async def create_nodes(registry: Registry, bodies: Sequence[JsonObject]) -> None:
    """Create nodes, many at a time; those that exist already are left as they are."""
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:  # shared by all workers: each takes the next
            try:
                stored = await registry.create(NODES, body)
            except AlreadyExists:
                continue
            await _untaint(registry, msgspec.json.decode(stored, type=NodeView))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(WORKERS, len(bodies))):
            group.create_task(work())


async def _untaint(registry: Registry, node: NodeView) -> None:
    """Take away the taint of new nodes, which are Ready; a controller would, at 20 a second."""
    keys = [taint.key for taint in node.spec.taints]
    if _NOT_READY_TAINT not in keys:
        return
    path = f"/spec/taints/{keys.index(_NOT_READY_TAINT)}"
    operations: list[Mapping[str, Json]] = [
        {"op": "test", "path": f"{path}/key", "value": _NOT_READY_TAINT},
        {"op": "remove", "path": path},
    ]
    with contextlib.suppress(Invalid):  # the controller was faster
        await registry.json_patch(NODES, node.metadata.name, operations)


async def populate(client: Client, spec: LabSpec, clock: Clock, reporter: Reporter) -> None:
    """Create the lab's nodes and return when pods can be made and scheduled on all of them."""
    what = f"Bringing up {spec.nodes} nodes"
    started = clock.monotonic()
    deadline = started + READY_SECONDS + spec.nodes * SECONDS_PER_NODE
    if spec.nodes > MANY:
        async with reporter.step(what, spec.nodes * 0.015):
            await _bring_up(client, spec, clock, deadline)
    else:
        await _bring_up(client, spec, clock, deadline)
        reporter.say(f"{what}: done in {duration(clock.monotonic() - started)}")


async def _bring_up(client: Client, spec: LabSpec, clock: Clock, deadline: float) -> None:
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    bodies = make_nodes(spec, now)
    await until_healthy(client, clock, deadline)
    await until_created(client, bodies, clock, deadline)
    while True:
        ready = await _serving(client)
        if ready >= spec.nodes and await _accounts_made(client):
            return
        if clock.monotonic() > deadline and ready >= spec.nodes:
            raise LabError(
                "the nodes are ready, but nobody makes accounts for pods; see "
                f"`penstock lab logs --name {spec.name} kube-controller-manager`"
            )
        if clock.monotonic() > deadline:
            raise LabError(
                f"only {ready} of {spec.nodes} nodes are ready; see "
                f"`penstock lab logs --name {spec.name} kwok-controller`"
            )
        await clock.sleep(POLL_SECONDS if spec.nodes <= MANY else 4 * POLL_SECONDS)


async def until_healthy(server: Server, clock: Clock, deadline: float) -> None:
    """Return once the API server has all it began with, or at the deadline.

    On a busy machine the making of a thousand nodes keeps it from that, and
    kube-controller-manager, which waits for it ten seconds and no longer, ends.
    """
    while clock.monotonic() < deadline:
        try:
            await server.raw_get("/healthz")
        except ApiError:
            await clock.sleep(POLL_SECONDS)
        else:
            return


async def until_created(
    registry: Registry, bodies: Sequence[JsonObject], clock: Clock, deadline: float
) -> None:
    """Create the nodes; raises LabError with the last refusal if they are not there in time.

    An API server that has just started answers before all that it judges by has arrived: for a
    while it may refuse anything, most of all where it was started again on a busy machine.
    """
    while True:
        try:
            return await create_nodes(registry, bodies)
        except* ApiError as errors:
            first = errors.exceptions[0]
            if any(isinstance(each, Invalid) for each in errors.exceptions) or (
                clock.monotonic() > deadline
            ):
                raise LabError(f"creating the nodes failed: {first}") from errors
        await clock.sleep(POLL_SECONDS)


async def _serving(client: Client) -> int:
    try:
        listing = await client.list_pages(NODES, NodeView)
    except ApiError:
        return 0  # it has just started and may not answer everything yet; we look again
    return sum(node.serves() for node in listing.items)


async def _accounts_made(client: Client) -> bool:
    # Without this account, which a controller makes, the API server refuses every pod.
    path = SERVICEACCOUNTS.path("default", "default")
    try:
        await client.raw_get(path)
    except ApiError:
        return False
    return True
