"""A cluster that is nowhere but in memory, as a client would list and watch it; made by rules.

For sizes that no lab on a test's machine has. What it holds are the API server's own JSON objects.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Listing, Scope, WatchStart
from kube.clock import Clock
from kube.errors import NotFound
from kube.resources import (
    NODES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    RESERVATIONS,
    Resource,
)

D = TypeVar("D")

GPU = "nvidia.com/gpu"
MADE = "2026-01-02T03:00:00Z"
BOUND = "2026-01-02T03:00:04Z"
UP = "2026-01-02T03:00:09Z"
KINDS = (NODES, PODS, PODGANGS, PODCLIQUES, PODCLIQUESETS, RESERVATIONS)


@dataclass
class PretendCluster:
    """Lists and watches of a few kinds; `put` and `drop` are told to all that watch."""

    clock: Clock
    kinds: Sequence[Resource] = KINDS
    version: int = 100
    objects: dict[Resource, dict[str, JsonObject]] = field(default_factory=dict)
    watchers: dict[Resource, list[tuple[Scope, asyncio.Queue[bytes]]]] = field(default_factory=dict)

    def put(self, kind: Resource, body: JsonObject) -> None:
        """Store an object, new or as it is now."""
        key = _key(body)
        there = self.objects.setdefault(kind, {})
        self._tell(kind, "MODIFIED" if key in there else "ADDED", body)
        there[key] = body

    def drop(self, kind: Resource, namespace: str, name: str) -> None:
        """Delete an object."""
        body = self.objects[kind].pop(f"{namespace}/{name}")
        self._tell(kind, "DELETED", body)

    def _tell(self, kind: Resource, word: str, body: JsonObject) -> None:
        self.version += 1
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(self.version)
        if self.watchers.get(kind):
            line = msgspec.json.encode({"type": word, "object": body})
            for scope, queue in self.watchers[kind]:
                if _is_in(scope, body):
                    queue.put_nowait(line)

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        """Give all of a kind; of Events, those about the kind that the scope names."""
        if resource not in self.kinds:
            raise NotFound(404, "NotFound", f"{resource.full_name} are not served")
        every = self.objects.get(resource, {}).values()
        chosen = [each for each in every if _is_in(scope, each)]
        found = [decode(msgspec.Raw(msgspec.json.encode(each))) for each in chosen]
        return Listing(found, str(self.version))

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Tell what is put and dropped from now on; nothing runs between a list and this."""
        del start
        return self._watch(resource, scope)

    @asynccontextmanager
    async def _watch(self, resource: Resource, scope: Scope) -> AsyncIterator[AsyncIterator[bytes]]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.watchers.setdefault(resource, []).append((scope, queue))

        async def lines() -> AsyncIterator[bytes]:
            while True:
                yield await queue.get()

        try:
            yield lines()
        finally:
            self.watchers[resource].remove((scope, queue))


def hall(cluster: PretendCluster, nodes: int, each: int = 16) -> list[str]:
    """Put up nodes of 8 GPUs in racks, ten of these a block, eight blocks a zone."""
    made = []
    for i in range(nodes):
        rack = i // each
        zone, block = rack // 80, rack // 10 % 8
        name = f"n-{zone}-{block}-{rack % 10}-{i % each}"
        cluster.put(NODES, node(name, (f"z{zone}", f"z{zone}-b{block}", f"r{rack}")))
        made.append(name)
    return made


def node(name: str, path: Sequence[str], *, cordoned: bool = False) -> JsonObject:
    keys = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
    labels: JsonObject = dict(zip(keys, path, strict=True))
    room: JsonObject = {GPU: "8", "cpu": "96", "memory": "768Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"unschedulable": cordoned},
        "status": {"allocatable": room, "conditions": [_condition("Ready", MADE)]},
    }


def gang(
    cluster: PretendCluster,
    name: str,
    at: Sequence[str],
    *,
    pods: int = 0,
    gpus: int = 8,
    message: str = "",
) -> None:
    """Put a gang there: bound at these nodes, or as many pods that wait, for the reason given."""
    count, space, clique = len(at) or pods, "team", f"{name}-a"
    owner: list[Json] = [_owner("PodCliqueSet", name)]
    cluster.put(PODCLIQUESETS, {"metadata": _meta(name, space, "set", [])})
    cluster.put(PODCLIQUES, {"metadata": _meta(clique, space, "clique", owner), "spec": {}})
    for i in range(count):
        cluster.put(PODS, _pod(name, i, gpus, at[i] if at else ""))
    references: list[Json] = [{"namespace": space, "name": f"{clique}-{i}"} for i in range(count)]
    group: JsonObject = {"name": clique, "minReplicas": count, "podReferences": references}
    status: JsonObject = {
        "phase": "Running" if at else "Pending",
        "conditions": [_condition("Initialized", MADE), _scheduled(bool(at), message)],
    }
    if at:
        cluster.put(RESERVATIONS, _booked(name, gpus, at))
    cluster.put(
        PODGANGS,
        {
            "metadata": _meta(name, space, "gang", owner),
            "spec": {"podgroups": [group]},
            "status": status,
        },
    )


def drop_gang(cluster: PretendCluster, name: str, count: int) -> None:
    """Take one away that was bound."""
    cluster.drop(PODGANGS, "team", name)
    cluster.drop(RESERVATIONS, "team", name)
    for i in range(count):
        cluster.drop(PODS, "team", f"{name}-a-{i}")
    cluster.drop(PODCLIQUES, "team", f"{name}-a")
    cluster.drop(PODCLIQUESETS, "team", name)


def _pod(name: str, i: int, gpus: int, where: str) -> JsonObject:
    clique = f"{name}-a"
    metadata = _meta(f"{clique}-{i}", "team", "pod", [_owner("PodClique", clique, "clique")])
    metadata["labels"] = {names.PODGANG_LABEL: name}
    needs: JsonObject = {"requests": {GPU: str(gpus)}}
    gates: list[Json] = [] if where else [{"name": names.GATE}]
    conditions: list[Json] = (
        [_condition("PodScheduled", BOUND), _condition("ContainersReady", UP)] if where else []
    )
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": where, "hostname": f"{clique}-{i}", "schedulingGates": gates,
            "containers": [{"name": "main", "resources": needs}],
        },
        "status": {"phase": "Running" if where else "Pending", "conditions": conditions},
    }  # fmt: skip


def _booked(name: str, gpus: int, at: Sequence[str]) -> JsonObject:
    slots: list[Json] = [{"index": i, "node": where} for i, where in enumerate(at)]
    requests: JsonObject = {GPU: str(gpus), "pods": "1"}
    return {
        "metadata": _meta(name, "team", "booked", [_owner("PodGang", name, "gang")]),
        "spec": {
            "gang": {"name": name, "uid": f"gang-{name}"}, "deadline": MADE, "score": 1.0,
            "groups": [{"name": f"{name}-a", "requests": requests, "slots": slots}],
        },
        "status": {"state": "Bound"},
    }  # fmt: skip


def _scheduled(done: bool, message: str) -> JsonObject:  # noqa: FBT001 - it is the condition's status
    found = _condition("Scheduled", BOUND, "AllPodsBound" if done else "InsufficientCapacity")
    return {**found, "status": "True" if done else "False", "message": message}


def _condition(kind: str, when: str, reason: str = "x") -> JsonObject:
    return {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": when}


def _meta(name: str, space: str, what: str, owners: Sequence[Json]) -> dict[str, Json]:
    return {
        "name": name, "namespace": space, "uid": f"{what}-{name}",
        "creationTimestamp": MADE, "ownerReferences": [*owners],
    }  # fmt: skip


def _owner(kind: str, name: str, what: str = "set") -> JsonObject:
    return {"kind": kind, "name": name, "uid": f"{what}-{name}", "controller": True}


def _is_in(scope: Scope, body: Mapping[str, Json]) -> bool:
    about = body.get("regarding")
    kind = about.get("kind") if isinstance(about, dict) else None
    return scope.fields in ("", f"regarding.kind={kind}")


def _key(body: Mapping[str, Json]) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
