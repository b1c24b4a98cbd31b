"""What the guide's examples promise of who starts, when, and where."""

from collections.abc import Mapping

import msgspec

from api import names
from api.jsons import JsonObject
from api.objects import condition_of
from api.streams import Custom, Node, Pod
from controller.podgang import read_gang
from kube.errors import NotFound
from kube.resources import NODES, PODGANGS, PODS, RESOURCE_CLAIMS, Resource
from tests.support.guiderooms import (
    FEATURES,
    ROOMS,
    open_next,
    part,
    staged,
)
from tests.support.living import Cluster

NO_ROOM = (names.REASON_INSUFFICIENT, names.REASON_NEVER_FITS)


async def stored(cluster: Cluster, kind: Resource, name: str) -> JsonObject:
    """An object as it is stored."""
    raw = await cluster.client.raw_get(kind.path(cluster.namespace, name))
    body: JsonObject = msgspec.json.decode(raw)
    return body


async def pods_of(cluster: Cluster, gang: str) -> list[Pod]:
    """The pods of a gang, whoever makes them."""
    listed = await cluster.client.list_pages(PODS, Pod, cluster.namespace)
    return [
        pod
        for pod in listed.items
        if gang
        in {pod.metadata.labels.get(names.PODGANG_LABEL), pod.metadata.labels.get(names.GANG_LABEL)}
    ]


async def waits(cluster: Cluster, gang: str) -> None:
    """Wait until the gang is said to have no room."""

    async def attempt() -> bool | None:
        try:
            found = read_gang(await cluster.client.get(PODGANGS, Custom, gang, cluster.namespace))
        except NotFound:
            return None
        told = condition_of(found.status.conditions, names.SCHEDULED) if found else None
        return (told is not None and told.reason in NO_ROOM) or None

    await cluster.until(attempt, f"{gang} waits for room")


async def started(cluster: Cluster, gang: str, count: int, of: int) -> list[Pod]:
    """Wait until so many of a gang's pods have a node; the others are gated still."""

    async def attempt() -> list[Pod] | None:
        pods = await pods_of(cluster, gang)
        bound = [pod for pod in pods if pod.spec.node_name]
        return pods if (len(bound), len(pods)) == (count, of) else None

    pods = await cluster.until(attempt, f"{count} of {of} pods of {gang} have a node")
    assert all(bool(pod.spec.node_name) != (names.GATE in pod.gates) for pod in pods)
    return pods


async def grows(cluster: Cluster, room: str, gang: str, steps: Mapping[int, int]) -> None:
    """Open a room, by how many nodes are open: then so many pods have one each."""
    count, _, opened = ROOMS[room]
    for nodes, pods in steps.items():
        await open_next(cluster.client, room, *range(opened, nodes))
        opened = nodes
        if not pods:
            await waits(cluster, gang)
        await started(cluster, gang, pods, count)


async def extras(cluster: Cluster) -> None:
    """One could start: none does. Two do, and two more follow."""
    await grows(cluster, "extras", "extras-0", {1: 0, 2: 2, 3: 3, 4: 4})


async def labelled_deployment(cluster: Cluster) -> None:
    await grows(cluster, "labelled-deployment", "embed", {1: 0, 2: 2, 3: 3})


async def labelled_job(cluster: Cluster) -> None:
    await grows(cluster, "labelled-job", "train", {3: 0, 4: 4})


async def labelled_statefulset(cluster: Cluster) -> None:
    pods = await started(cluster, "peers", 4, 4)
    nodes = (await cluster.client.list_pages(NODES, Node)).items
    racks = {node.metadata.name: node.metadata.labels.get(names.RACK_KEY) for node in nodes}
    assert len({racks[pod.spec.node_name] for pod in pods}) == 1


def lower(name: str) -> JsonObject:
    """The same set without its priority."""
    made = next(each for each in staged(FEATURES / "first-in-line.yaml") if "spec" in each)
    part(made, "metadata")["name"] = name
    del part(made, "spec", "template")["priorityClassName"]
    return made


async def first_in_line(cluster: Cluster) -> None:
    """It came last of those that wait, has the first room, and leaves alone who runs."""
    await waits(cluster, "second-0")
    await waits(cluster, "first-in-line-0")
    before = await started(cluster, "running-0", 2, 2)
    await open_next(cluster.client, "first-in-line", 2, 3)
    await started(cluster, "first-in-line-0", 2, 2)
    await started(cluster, "second-0", 0, 2)
    after = await started(cluster, "running-0", 2, 2)
    assert {pod.metadata.uid for pod in after} == {pod.metadata.uid for pod in before}


async def timeout(cluster: Cluster) -> None:
    async def attempt() -> bool | None:
        found = read_gang(
            await cluster.client.get(PODGANGS, Custom, "timeout-0", cluster.namespace)
        )
        told = condition_of(found.status.conditions, names.TIMED_OUT) if found else None
        return (
            told is not None and (told.status, told.reason) == ("True", names.REASON_TIMED_OUT)
        ) or None

    await waits(cluster, "timeout-0")
    await cluster.until(attempt, "it says that it is late")
    await started(cluster, "timeout-0", 0, 2)


async def racks_of(cluster: Cluster, name: str) -> dict[str, set[str]]:
    """In which racks the pods of each gang of a set are."""
    seen = await cluster.running(name)
    found: dict[str, set[str]] = {}
    for pod in seen.pods.values():
        where = found.setdefault(pod.metadata.labels[names.PODGANG_LABEL], set())
        where.add(seen.nodes[pod.spec.node_name].metadata.labels[names.RACK_KEY])
    return found


async def close(cluster: Cluster) -> None:
    (racks,) = (await racks_of(cluster, "close")).values()
    assert len(racks) == 1
    workers = [pod for pod in await pods_of(cluster, "close-0") if "worker" in pod.metadata.name]
    assert len(workers) == 2
    assert len({pod.spec.node_name for pod in workers}) == 1


async def apart(cluster: Cluster) -> None:
    one, other = (await racks_of(cluster, "apart")).values()
    assert not one & other


async def zone(cluster: Cluster) -> None:
    seen = await cluster.running("zone")
    (pod,) = seen.pods.values()
    assert seen.nodes[pod.spec.node_name].metadata.labels[names.ZONE_KEY] == "zone-1"


async def in_kept_room(cluster: Cluster) -> None:
    """Its pods are where the room was kept, all of which is in one rack."""
    pods = await started(cluster, "in-kept-room-0", 2, 2)
    (racks,) = (await racks_of(cluster, "in-kept-room")).values()
    assert len(racks) == 1
    (entry,) = (r for r in await cluster.reservations() if r.metadata.name == "in-kept-room-0")
    assert entry.spec.uses is not None
    assert entry.spec.uses.name == "evening"
    drawn = {share.node: share.requests["nvidia.com/gpu"] for share in entry.spec.uses.shares}
    assert drawn == {pod.spec.node_name: "8" for pod in pods}


async def shared_claim(cluster: Cluster) -> None:
    await cluster.running("shared-claim")
    raw = await cluster.client.raw_get(RESOURCE_CLAIMS.path(cluster.namespace))
    claims = msgspec.json.decode(raw)["items"]
    assert len(claims) == 1
    users = {user["name"] for user in claims[0]["status"]["reservedFor"]}
    assert users == {pod.metadata.name for pod in await pods_of(cluster, "shared-claim-0")}
    assert len(users) == 2
