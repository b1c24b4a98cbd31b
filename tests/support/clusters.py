"""Builders of nodes and pods as the API server would stream them."""

from collections.abc import Mapping

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.streams import Node, Pod

Labels = Mapping[str, str]


def node(
    name: str,
    allocatable: Mapping[str, str] | None = None,
    *,
    labels: Labels | None = None,
    ready: bool = True,
    spec: JsonObject | None = None,
) -> Node:
    """A node with 8 GPUs, 96 CPUs and room for 110 pods, unless told otherwise."""
    room = {"nvidia.com/gpu": "8", "cpu": "96", "memory": "768Gi", "pods": "110"}
    raw = {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec or {},
        "status": {
            "allocatable": dict(allocatable) if allocatable is not None else room,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return msgspec.convert(raw, Node)


def racks(zones: int, blocks: int, rack_count: int, nodes_each: int) -> list[Node]:
    """Nodes in a tree of zones, blocks and racks; label values are unique by path."""
    return [
        node(
            f"n-{z}-{b}-{r}-{n}",
            labels={
                names.ZONE_KEY: f"z{z}",
                names.BLOCK_KEY: f"z{z}-b{b}",
                names.RACK_KEY: f"z{z}-b{b}-r{r}",
            },
        )
        for z in range(zones)
        for b in range(blocks)
        for r in range(rack_count)
        for n in range(nodes_each)
    ]


def pod(
    name: str,
    requests: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    spec: Mapping[str, Json] | None = None,
    status: Mapping[str, Json] | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> Pod:
    """A pod with one container that asks for one GPU, unless told otherwise."""
    container = {
        "name": "main",
        "resources": {"requests": dict(requests or {"nvidia.com/gpu": "1"})},
    }
    raw = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            **(metadata or {}),
        },
        "spec": {"containers": [container], **(spec or {})},
        "status": status or {},
    }
    return msgspec.convert(raw, Pod)
