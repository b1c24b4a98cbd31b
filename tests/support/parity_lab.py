"""A cluster of odd nodes, and what kube-scheduler and the engine say of pods in it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, TypeVar

import msgspec

from api import names
from api.claims import PersistentVolume, PersistentVolumeClaim, StorageClass
from api.daemonsets import DaemonSet
from api.jsons import Json, JsonObject
from api.streams import Node, Pod
from controller import pace
from kube.client import Client, Deletion
from kube.resources import NODES, PODS, Resource
from penstock.lab import nodes as lab_nodes
from penstock.lab.spec import LabSpec
from scheduler import cycle, needs
from scheduler.filters.claims import Claims
from scheduler.filters.constraints import Constraints
from scheduler.requests import GangRequest, Want
from scheduler.snapshot import Snapshot
from scheduler.stock import Stock, hold_of
from scheduler.topology import Levels
from tests.support.parity_drawing import (
    OVERHEAD,
    RUNTIME_CLASS,
    Case,
    DrawnNode,
    Target,
    daemonset,
    drawn_case,
    drawn_node,
    foreign_pod,
)

T = TypeVar("T")

VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True
)
CLASSES: Final = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False
)
DAEMONSETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
RUNTIMES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)

_AT_ONCE: Final = 24
_PATIENCE: Final = 60.0
_AT_REST: Final = 0.4  # seconds; kube-scheduler hears of what is gone a little later than we do

_ANYWHERE: Final[JsonObject] = {}
_REACH: Final[Mapping[str, JsonObject]] = {
    "anywhere": _ANYWHERE,
    "zone-a": {"key": "zone", "operator": "In", "values": ["a"]},
    "not-b": {"key": "zone", "operator": "NotIn", "values": ["b"]},
    "numbered": {"key": "slots", "operator": "Gt", "values": ["6"]},
    "diskless": {"key": "disk", "operator": "DoesNotExist"},
    "zoned": _ANYWHERE,
}


@dataclass(frozen=True)
class Verdict:
    """One case, and what both say: the node's name where the pod may have it."""

    case: Case
    theirs: bool
    ours: bool
    said: str  # by kube-scheduler
    excluding: tuple[str, ...]  # our filters and resources that say no

    @property
    def agrees(self) -> bool:
        return self.theirs == self.ours

    def told(self) -> str:
        """Everything that is needed to look into it."""
        body = msgspec.json.encode(self.case.body).decode()
        return (
            f"{self.case.node}: kube-scheduler {self.theirs} ({self.said}), engine {self.ours} "
            f"({', '.join(self.excluding)}): {body}"
        )


@dataclass
class OddCluster:
    """Draws, asks both, and counts. Everything random comes from one seed."""

    client: Client
    namespace: str
    chance: Random
    drawn: int = 0
    yes: Counter[str] = field(default_factory=Counter)
    no: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)  # what said no while all others said yes

    async def build(self, count: int) -> None:
        """Make nodes, DaemonSets, volumes and foreign pods, and wait until all are at rest."""
        pattern = lab_nodes.make_nodes(LabSpec(nodes=1), "2026-01-01T00:00:00Z")[0]
        bodies = [_body(pattern, drawn_node(self.chance, i)) for i in range(count)]
        await asyncio.gather(
            lab_nodes.create_nodes(self.client, bodies), self._claim_volumes(), self._admit()
        )
        await self._until(self._daemons_run, "pods of all DaemonSets")
        await self._until(self._claims_bound, "all claims bound")
        hosts = [str(_name(body)) for body in bodies]
        foreign = [foreign_pod(self.chance, i, self.chance.choice(hosts)) for i in range(count)]
        await self._all(partial(self._create, body) for body in foreign)

    async def _admit(self) -> None:
        """Let there be a class of pods that take more than they ask for, and two DaemonSets."""
        overhead: JsonObject = {"podFixed": dict(OVERHEAD)}
        await self.client.create(
            RUNTIMES, {"metadata": {"name": RUNTIME_CLASS}, "handler": "x", "overhead": overhead}
        )
        tolerant: JsonObject = {"tolerations": [{"operator": "Exists"}]}
        choosy: JsonObject = {"nodeSelector": {"disk": "ssd"}}
        for body in (daemonset("ported", tolerant), daemonset("choosy", choosy)):
            await self.client.create(DAEMONSETS, body, self.namespace)

    async def batches(self, count: int) -> list[Verdict]:
        """Hold pods against the cluster, so many for each node, one after the other."""
        verdicts: list[Verdict] = []
        for left in reversed(range(count)):
            judged = await self._batch()
            verdicts += judged
            if left:
                await self._clear(judged)
        return verdicts

    async def _batch(self) -> list[Verdict]:
        """Hold one pod for each node against the state there is."""
        nodes = (await self.client.list_pages(NODES, Node)).items
        snapshot, claims = await self._look(nodes)
        drawn = []
        for node in sorted(nodes, key=lambda node: node.metadata.name):
            row = snapshot.row_of[node.metadata.name]
            free = dict(zip(snapshot.resources, map(int, snapshot.free[row]), strict=True))
            target = Target(node, free, [*_REACH, "unbound", "missing"])
            drawn.append(drawn_case(self.chance, f"case-{self.drawn}", target))
            self.drawn += 1
        made = await asyncio.gather(*(self._create(case.body) for case in drawn))
        pods = await self._until(lambda: self._judged(drawn), "a verdict on each pod")
        placed = _planned(snapshot, claims, made)
        verdicts = [
            _verdict(case, pods[pod.metadata.name], placed, _excluding(snapshot, claims, pod, case))
            for case, pod in zip(drawn, made, strict=True)
        ]
        self._count(verdicts)
        return verdicts

    async def _clear(self, verdicts: Iterable[Verdict]) -> None:
        """Take most pods away, so that the next ones meet another state, but not a full one."""
        gone = [v.case for v in verdicts if not v.theirs or self.chance.random() < 0.9]
        await self._all(partial(self._delete, case) for case in gone)
        await asyncio.sleep(_AT_REST)

    async def _look(self, nodes: Sequence[Node]) -> tuple[Snapshot, Claims]:
        pods = (await self.client.list_pages(PODS, Pod)).items
        stock = Stock((Levels("", ("zone",)),))
        for daemon in (await self.client.list_pages(DAEMONSETS, DaemonSet)).items:
            stock.put_daemonset(daemon)
        for node in nodes:
            stock.put_node(node)
        for pod in pods:
            hold = hold_of(pod)
            if hold is not None:
                stock.put((pod.metadata.namespace, pod.metadata.name), hold)
        volumes = (await self.client.list_pages(VOLUMES, PersistentVolume)).items
        claims = (await self.client.list_pages(CLAIMS, PersistentVolumeClaim)).items
        classes = (await self.client.list_pages(CLASSES, StorageClass)).items
        known = Claims(
            {(c.metadata.namespace, c.metadata.name): c for c in claims},
            {v.metadata.name: v for v in volumes},
            {c.metadata.name: c for c in classes},
        )
        return stock.snapshot(), known

    async def _judged(self, drawn: Iterable[Case]) -> Mapping[str, Pod] | None:
        found = await self.client.list_pages(PODS, Pod, self.namespace, labels="case=yes")
        pods = {pod.metadata.name: pod for pod in found.items}
        asked = [pods[str(_name(case.body))] for case in drawn]
        return pods if all(pod.spec.node_name or _said(pod) for pod in asked) else None

    async def _daemons_run(self) -> bool | None:
        found = (await self.client.list_pages(PODS, Pod, self.namespace)).items
        nodes = (await self.client.list_pages(NODES, Node)).items
        ported = [pod for pod in found if pod.metadata.labels.get("daemon") == "ported"]
        bound = all(pod.spec.node_name for pod in found)
        return True if bound and len(ported) == len(nodes) < len(found) else None

    async def _claim_volumes(self) -> None:
        """Bind claims to volumes by hand, as there is no storage to make them."""
        for name, reach in _REACH.items():
            reference: JsonObject = {"namespace": self.namespace, "name": name}
            spec: JsonObject = {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "hostPath": {"path": "/nowhere"},
                "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **reference},
            }
            if reach:
                terms: list[Json] = [{"matchExpressions": [reach]}]
                spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
            labels: JsonObject = (
                {"topology.kubernetes.io/zone": "north__east"} if name == "zoned" else {}
            )
            body: JsonObject = {"metadata": {"name": name, "labels": labels}, "spec": spec}
            await self.client.create(VOLUMES, body)
            await self.client.create(CLAIMS, _claim(name, name), self.namespace)
        await self.client.create(CLAIMS, _claim("unbound", ""), self.namespace)

    async def _claims_bound(self) -> bool | None:
        found = await self.client.list_pages(CLAIMS, PersistentVolumeClaim, self.namespace)
        return sum(claim.status.phase == "Bound" for claim in found.items) == len(_REACH) or None

    def _count(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.theirs:
                self.yes.update(verdict.case.demands)
            else:
                self.no.update(set(verdict.excluding))
                if len(verdict.excluding) == 1:
                    self.alone.update(verdict.excluding)

    async def _create(self, body: JsonObject) -> Pod:
        answer = await self.client.create(PODS, body, self.namespace)
        return msgspec.json.decode(answer, type=Pod)

    async def _delete(self, case: Case) -> None:
        await self.client.delete(
            PODS, str(_name(case.body)), self.namespace, Deletion(grace_seconds=0)
        )

    async def _all(self, requests: "Iterable[Callable[[], Awaitable[object]]]") -> None:
        async def one(request: Callable[[], Awaitable[object]]) -> None:
            await request()

        refused = await pace.all_of([partial(one, request) for request in requests], _AT_ONCE)
        assert not refused, refused

    async def _until(self, attempt: Callable[[], Awaitable[T | None]], what: str) -> T:
        try:
            async with asyncio.timeout(_PATIENCE):
                while (found := await attempt()) is None:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"not within {_PATIENCE:.0f} s: {what}") from None
        return found


def _body(pattern: JsonObject, drawn: DrawnNode) -> JsonObject:
    """Lay what was drawn over a node of a lab."""
    body: JsonObject = msgspec.json.decode(msgspec.json.encode(pattern))
    metadata, status = body["metadata"], body["status"]
    assert isinstance(metadata, dict)
    assert isinstance(status, dict)
    fixed = {names.HOSTNAME_KEY: drawn.name, "kubernetes.io/os": "linux"}
    metadata["name"], metadata["labels"] = drawn.name, {**fixed, **drawn.labels}
    body["spec"] = drawn.spec
    status["capacity"] = status["allocatable"] = {**drawn.offer}
    return body


def _claim(name: str, volume: str) -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def _planned(snapshot: Snapshot, claims: Claims, pods: Iterable[Pod]) -> frozenset[str]:
    """Ask the engine as the product asks; names of the pods that it has a node for."""
    asked = [
        GangRequest(pod.metadata.namespace, pod.metadata.name, (_want(claims, pod),))
        for pod in pods
    ]
    return frozenset(placement.gang.name for placement in cycle.plan(snapshot, asked).placements)


def _want(claims: Claims, pod: Pod) -> Want:
    return Want("pod", 0, needs.of_pod(pod), Constraints.of(pod, claims.of(pod)))


def _excluding(snapshot: Snapshot, claims: Claims, pod: Pod, case: Case) -> tuple[str, ...]:
    """Name every filter and every resource that keeps the pod off its node."""
    row = snapshot.row_of[case.node]
    barriers = snapshot.masks.barriers(Constraints.of(pod, claims.of(pod)))
    free = dict(zip(snapshot.resources, snapshot.free[row], strict=True))
    short = [name for name, need in needs.of_pod(pod).items() if need and need > free.get(name, 0)]
    return (*(name for name, excluded in barriers if excluded[row]), *short)


def _verdict(case: Case, pod: Pod, placed: frozenset[str], excluding: tuple[str, ...]) -> Verdict:
    theirs, ours = bool(pod.spec.node_name), pod.metadata.name in placed
    return Verdict(case, theirs, ours, _said(pod), excluding)


def _said(pod: Pod) -> str:
    """What kube-scheduler says of a pod that it has no node for."""
    return next(
        (
            c.message
            for c in pod.status.conditions
            if c.type == "PodScheduled" and c.status == "False" and c.reason == "Unschedulable"
        ),
        "",
    )


def _name(body: JsonObject) -> Json:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return metadata["name"]
