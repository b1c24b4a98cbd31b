"""The guide's examples as a test applies them: some in a room of their own, some sped up.

A room is a few nodes that take one pod of its example each, and nobody else's. Most are closed at
first, so that it is seen who starts with how much room.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast

import yaml

from api import names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import NODES
from penstock.lab.nodes import create_nodes, make_nodes
from penstock.lab.spec import LabSpec
from tests.repo import checkout
from tests.support.ordered import NEVER_READY

EXAMPLES: Final = checkout.ROOT / "examples"
FEATURES: Final = EXAMPLES / "features"
JOB: Final = EXAMPLES / "labelled-job.yaml"
KEPT: Final = FEATURES / "kept-room.yaml"
NVLINK: Final = FEATURES / "nvlink.yaml"
QUEUED: Final = FEATURES / "queued.yaml"

ROOM: Final = "room-test"  # a label and a taint; whoever chooses nodes for another test sees it
RACK: Final = "rack"  # a room for anybody: one rack of four whole nodes
# By example: how many nodes with how many GPUs, and how many of them are open at first.
ROOMS: Final = {
    "extras": (4, 4, 1),
    "labelled-deployment": (3, 1, 1),
    "labelled-job": (4, 8, 3),
    "first-in-line": (4, 4, 2),
    "timeout": (0, 0, 0),
}
# Whose pods come up when the test says so.
HELD: Final = {
    "in-order": ("store", "engine"),
    "in-init-container": ("store",),
    "ready-together": ("engine",),
}
BY_HAND: Final = (*HELD, "made-anew")
# What would take ten minutes takes a second.
SOON: Final = {
    "timeout": "scheduling.koordinator.sh/gang-timeout: 10m",
    "made-anew": "terminationDelay: 10m",
}


def manifests(path: Path) -> list[JsonObject]:
    """An example as it is."""
    return cast("list[JsonObject]", list(yaml.safe_load_all(path.read_text(encoding="utf-8"))))


def staged(path: Path) -> list[JsonObject]:
    """An example in its room, and sped up or held where that is how its effect is seen."""
    text = path.read_text(encoding="utf-8")
    if path.stem in SOON:
        slow = SOON[path.stem]
        assert slow in text
        text = text.replace(slow, slow.replace("10m", "1s"))
    made = cast("list[JsonObject]", list(yaml.safe_load_all(text)))
    for pod_spec in pod_specs([*made]) if path.stem in ROOMS else ():
        into(pod_spec, path.stem)
    for clique in cliques(made):
        if clique["name"] in HELD.get(path.stem, ()):
            clique["annotations"] = {**part(clique, "annotations"), **NEVER_READY}
    if path.stem in BY_HAND:
        part(made[0], "metadata")["annotations"] = {
            **part(made[0], "metadata", "annotations"), names.UNPROTECTED_ANNOTATION: "true",
        }  # fmt: skip
    return made


def part(body: Json, *path: str) -> JsonObject:
    """What is at the path, or nothing."""
    for step in path:
        assert isinstance(body, dict)
        body = body.get(step, {})
    assert isinstance(body, dict)
    return body


def cliques(made: list[JsonObject]) -> Iterator[JsonObject]:
    """The cliques of all sets."""
    for each in made:
        found = part(each, "spec", "template").get("cliques", []) if "spec" in each else []
        yield from cast("list[JsonObject]", found)


def pod_specs(made: Json) -> Iterator[JsonObject]:
    """Whatever has containers."""
    if isinstance(made, dict):
        if "containers" in made:
            yield made
        for each in made.values():
            yield from pod_specs(each)
    elif isinstance(made, list):
        for each in made:
            yield from pod_specs(each)


def into(pod_spec: JsonObject, room: str) -> None:
    """Have a pod go into a room and nowhere else."""
    pod_spec["nodeSelector"] = {ROOM: room}
    pod_spec["tolerations"] = [{"key": ROOM, "operator": "Exists"}]


def _nodes(room: str, count: int, gpus: int, opened: int) -> list[JsonObject]:
    spec = LabSpec(nodes=count, gpus=gpus, topology="zone=1,block=1,rack=1")
    made = make_nodes(spec, timestamp(SystemClock().now()))
    for index, node in enumerate(made):
        meta = part(node, "metadata")
        meta["name"] = f"room-{room}-{index}"
        labels = part(meta, "labels")
        labels[names.HOSTNAME_KEY] = meta["name"]
        for key in (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY):
            labels[key] = f"room-{room}"
        if room != RACK:
            labels[ROOM] = room
            node["spec"] = {"taints": [{"key": ROOM, "effect": "NoSchedule"}]}
        if index >= opened:
            node["spec"] = {**part(node, "spec"), "unschedulable": True}
    return made


@asynccontextmanager
async def rooms(client: Client) -> AsyncIterator[None]:
    """All rooms of examples."""
    made = [node for room, size in ROOMS.items() if size[0] for node in _nodes(room, *size)]
    async with _there(client, made):
        yield


@asynccontextmanager
async def rack(client: Client) -> AsyncIterator[None]:
    """Four whole nodes in one rack, which the lab has not."""
    async with _there(client, _nodes(RACK, 4, 8, 4)):
        yield


@asynccontextmanager
async def _there(client: Client, made: list[JsonObject]) -> AsyncIterator[None]:
    await create_nodes(client, made)
    try:
        yield
    finally:
        called = [str(part(node, "metadata")["name"]) for node in made]
        await asyncio.gather(*(client.delete(NODES, name) for name in called))


async def open_next(client: Client, room: str, *indices: int) -> None:
    """Let pods onto further nodes of a room."""
    for index in indices:
        body: JsonObject = {"spec": {"unschedulable": None}}
        await client.merge_patch(NODES, f"room-{room}-{index}", body)
