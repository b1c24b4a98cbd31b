"""Gangs that lack their minimum for too long are made anew; pods that ended are replaced."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Custom, Pod
from kube.cache import Cache, Change, Deleted
from kube.client import Scope
from kube.resources import NODES, PODCLIQUES, PODGANGS, PODS, SCALING_GROUPS, Resource
from tests.support.chance import dice
from tests.support.living import PATIENCE, Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

BEHAVIOUR = "lab.penstock.dev/behaviour"
# Tests tell pods how to behave, which nobody else may change.
MADE_FREE = {names.UNPROTECTED_ANNOTATION: "true"}
FREE: dict[str, Json] = {**MADE_FREE}


def clique(name: str, pods: int, *, gpus: int = 1, selector: str = "") -> JsonObject:
    spec: JsonObject = {
        "roleName": name,
        "replicas": pods,
        "podSpec": {
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {selector: "yes"} if selector else {},
            "containers": [{
                "name": "engine", "image": "registry.example/engine:1.0",
                "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
            }],
        },
    }  # fmt: skip
    return {"name": name, "spec": spec}


def patient_set(
    name: str, *cliques: JsonObject, replicas: int = 1, delay: str, **more: Json
) -> JsonObject:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "annotations": FREE},
        "spec": {
            "replicas": replicas,
            "template": {"cliques": list(cliques), "terminationDelay": delay, **more},
        },
    }


def grouped(copies: int, minimum: int) -> Json:
    group: JsonObject = {"name": "engine", "cliqueNames": ["leader", "worker"]}
    return [{**group, "replicas": copies, "minAvailable": minimum}]


@dataclass(frozen=True)
class Census:
    """Who is there: UIDs by name."""

    pods: dict[str, str]
    gangs: dict[str, str]
    kept: dict[str, str]  # PodCliques and groups


async def census(cluster: Cluster) -> Census:
    async def uids(*resources: Resource) -> dict[str, str]:
        found = [
            await cluster.client.list_pages(resource, Custom, cluster.namespace)
            for resource in resources
        ]
        return {o.metadata.name: o.metadata.uid for page in found for o in page.items}

    return Census(await uids(PODS), await uids(PODGANGS), await uids(PODCLIQUES, SCALING_GROUPS))


async def told(cluster: Cluster, reason: str) -> list[str]:
    """What Events of this reason say of sets of the namespace."""
    path = f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events"
    found = msgspec.json.decode(await cluster.client.raw_get(path))
    return [event["note"] for event in found["items"] if event["reason"] == reason]


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Names that stand for something new; nothing may have come or gone."""
    assert before.keys() == after.keys()
    return {name for name, uid in after.items() if before[name] != uid}


def pods_of(seen: Census, *cliques: str) -> set[str]:
    return {name for name in seen.pods if name.rpartition("-")[0] in cliques}


async def renewed(
    cluster: Cluster, set_name: str, before: Census, pods: set[str], gangs: int
) -> Census:
    """Wait until these pods, and no others, have successors that run."""

    async def attempt() -> Census | None:
        seen = await cluster.running(set_name, gangs=gangs)
        uids = {pod.metadata.name: pod.metadata.uid for pod in seen.pods.values()}
        if uids.keys() != before.pods.keys() or any(uids[n] == before.pods[n] for n in pods):
            return None
        return await census(cluster)

    after = await cluster.until(attempt, f"{len(pods)} pods made anew")
    assert changed(before.pods, after.pods) == pods
    assert changed(before.kept, after.kept) == set()
    return after


async def grown_up(cluster: Cluster, name: str) -> None:
    """Wait until what a PodClique loses is a loss: it says that it had it, and is not brand-new."""

    async def attempt() -> bool | None:
        found = await cluster.client.get(PODCLIQUES, Custom, name, cluster.namespace)
        made = found.metadata.creation_timestamp
        assert made is not None
        old = cluster.client.clock.now() > made + timedelta(seconds=6)
        return (old and b"SufficientScheduledPods" in bytes(found.status)) or None

    await cluster.until(attempt, f"{name} scheduled for a while")


def spoil(kubectl: Kubectl, pod: str, behaviour: str = "never-ready") -> None:
    kubectl.run("annotate", "pod", pod, f"{BEHAVIOUR}={behaviour}", check=True)


@asynccontextmanager
async def told_of(cluster: Cluster, kind: Resource, name: str) -> AsyncIterator[None]:
    """Watch for the object to say that it is made anew, from before that can begin.

    It says so for a moment only, which whoever begins to look then may miss.
    """
    said = asyncio.Event()

    def look(change: Change[Custom]) -> None:
        if isinstance(change, Deleted) or change.new.metadata.name != name:
            return
        conditions = msgspec.json.decode(change.new.status).get("conditions", [])
        if (names.GANG_TERMINATION, "True") in {(c["type"], c["status"]) for c in conditions}:
            said.set()

    cache = Cache(cluster.client, kind, Custom, dice(), Scope(namespace=cluster.namespace))
    cache.subscribe(look)
    watching = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield
        async with asyncio.timeout(PATIENCE):
            await said.wait()
    finally:
        watching.cancel()


async def over(cluster: Cluster, kind: Resource, name: str) -> None:
    """Wait until the object does not say so any more."""

    async def attempt() -> bool | None:
        found = await cluster.client.get(kind, Custom, name, cluster.namespace)
        return names.GANG_TERMINATION.encode() not in bytes(found.status) or None

    await cluster.until(attempt, f"{name} made anew")


async def test_a_replica_that_lacks_its_minimum_is_made_anew_and_the_other_is_not(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(patient_set("pair", clique("a", 1), clique("b", 2), replicas=2, delay="1s"))
    await cluster.running("pair", gangs=2)
    before = await census(cluster)
    async with told_of(cluster, PODCLIQUES, "pair-1-b"):
        spoil(kubectl, min(pods_of(before, "pair-1-b")))
    after = await renewed(cluster, "pair", before, pods_of(before, "pair-1-a", "pair-1-b"), 2)
    await over(cluster, PODCLIQUES, "pair-1-b")
    assert changed(before.gangs, after.gangs) == {"pair-1"}

    async def notes() -> list[str] | None:
        return await told(cluster, "PodCliqueSetReplicaDeleteSuccessful") or None

    (note,) = await cluster.until(notes, "an Event, which is written beside all other work")
    assert note.startswith("replica 1 has lacked its minimum since ")


async def test_pods_that_fail_are_evicted_or_deleted_have_successors_in_their_places(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    body = engine_set("worn", pods=3, gpus=1, minimum=1)
    kubectl.apply({**body, "metadata": {"name": "worn", "annotations": FREE}})
    seen = await cluster.running("worn")
    places = {pod.spec.hostname: (name, pod.spec.node_name) for name, pod in seen.pods.items()}
    before = await census(cluster)
    failing, evicted, deleted = sorted(before.pods)
    spoil(kubectl, failing, "fail")
    eviction: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": evicted, "namespace": cluster.namespace},
    }
    await cluster.client.create_in(PODS, evicted, "eviction", eviction, cluster.namespace)
    await cluster.client.delete(PODS, deleted, cluster.namespace)
    after = await renewed(cluster, "worn", before, set(before.pods), 1)
    assert changed(before.gangs, after.gangs) == set(), "the gang was never below its minimum"
    seen = await cluster.running("worn")
    assert places == {
        pod.spec.hostname: (name, pod.spec.node_name) for name, pod in seen.pods.items()
    }, "its room was kept"


@pytest.mark.long
async def test_a_copy_that_its_group_can_spare_is_made_anew_alone(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(
        patient_set(
            "spare", clique("leader", 1), clique("worker", 2), clique("router", 1), delay="1s",
            podCliqueScalingGroups=grouped(3, 1),
        )
    )  # fmt: skip
    await cluster.running("spare", gangs=3)
    before = await census(cluster)
    spoil(kubectl, min(pods_of(before, "spare-0-engine-2-worker")))
    mine = pods_of(before, "spare-0-engine-2-leader", "spare-0-engine-2-worker")
    after = await renewed(cluster, "spare", before, mine, 3)
    assert changed(before.gangs, after.gangs) == {"spare-0-engine-1"}
    # A copy within the base gang can be spared as well while the others are well.
    spoil(kubectl, min(pods_of(after, "spare-0-engine-0-worker")))
    mine = pods_of(before, "spare-0-engine-0-leader", "spare-0-engine-0-worker")
    last = await renewed(cluster, "spare", after, mine, 3)
    assert changed(after.gangs, last.gangs) == set()
    notes = await told(cluster, "PodCliqueScalingGroupReplicaDeleteSuccessful")
    assert [note.partition(" has")[0] for note in sorted(notes)] == [
        "copy 0 of spare-0-engine",
        "copy 2 of spare-0-engine",
    ]
    assert await told(cluster, "PodCliqueSetReplicaDeleteSuccessful") == []


@pytest.mark.long
async def test_a_group_that_cannot_spare_a_copy_takes_its_replica_along(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(
        patient_set(
            "tight", clique("leader", 1), clique("worker", 1), clique("router", 1), delay="1s",
            podCliqueScalingGroups=grouped(2, 2),
        )
    )  # fmt: skip
    await cluster.running("tight", gangs=1)
    before = await census(cluster)
    async with told_of(cluster, SCALING_GROUPS, "tight-0-engine"):
        spoil(kubectl, min(pods_of(before, "tight-0-engine-1-worker")))
    after = await renewed(cluster, "tight", before, set(before.pods), 1)
    await over(cluster, SCALING_GROUPS, "tight-0-engine")
    assert changed(before.gangs, after.gangs) == {"tight-0"}


@pytest.mark.long
async def test_a_gang_that_finds_no_room_gives_up_what_it_has_once_and_waits_whole(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Two nodes for two whole-node pods; one node is cordoned and its pod is deleted."""
    label = f"{secrets.token_hex(4)}-test"
    nodes = await cluster.label_nodes(label, count=2)
    cliques = (clique(name, 1, gpus=8, selector=label) for name in ("a", "b"))
    kubectl.apply(patient_set("bulky", *cliques, delay="2s"))
    await cluster.running("bulky")
    await grown_up(cluster, "bulky-0-b")
    seen = await cluster.running("bulky")
    before = await census(cluster)
    victim = next(p for p in seen.pods.values() if p.metadata.name in pods_of(before, "bulky-0-b"))
    node = victim.spec.node_name
    assert node in nodes
    try:
        await cluster.client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
        await cluster.client.delete(PODS, victim.metadata.name, cluster.namespace)

        async def waits_whole() -> Census | None:
            found = await cluster.client.list_pages(PODS, Pod, cluster.namespace)
            now = await census(cluster)
            gated = len(found.items) == 2 and all(names.GATE in pod.gates for pod in found.items)
            return now if gated and now.gangs != before.gangs else None

        waiting = await cluster.until(waits_whole, "both pods wait behind their gates")
        await cluster.gang("bulky-0", reason=names.REASON_INSUFFICIENT)
        assert changed(before.pods, waiting.pods) == set(before.pods)
        await cluster.quiet("pods", "podgangs", "podcliques")
        assert (await census(cluster)).pods == waiting.pods, "once in an episode"
    finally:
        await cluster.client.merge_patch(NODES, node, {"spec": {"unschedulable": False}})
    await cluster.running("bulky")
    after = await census(cluster)
    assert after.pods == waiting.pods


@pytest.mark.long
async def test_a_gang_that_fails_again_and_again_is_left_alone_longer_each_time(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(patient_set("weak", clique("a", 1), delay="4s"))
    await cluster.running("weak")
    for times in ("", "2."):
        before = await census(cluster)
        spoil(kubectl, min(before.pods))
        await renewed(cluster, "weak", before, set(before.pods), 1)
        notes = await told(cluster, "PodCliqueSetReplicaDeleteSuccessful")
        assert any(times in note.partition("anew")[2] for note in notes), notes


@pytest.mark.long
async def test_a_minimum_that_is_there_again_within_the_delay_changes_nothing(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(patient_set("steady", clique("a", 2), delay="30s"))
    await cluster.running("steady")
    before = await census(cluster)
    name = min(before.pods)
    spoil(kubectl, name)

    async def breached() -> bool | None:
        status = kubectl.run("get", "pclq", "steady-0-a", "-o", "yaml", check=True).stdout
        return True if "InsufficientReadyPods" in status else None

    await cluster.until(breached, "the clique lacks its minimum")
    kubectl.run("annotate", "pod", name, f"{BEHAVIOUR}-", check=True)
    await cluster.running("steady")
    await cluster.quiet("pods", "podcliques")
    assert await census(cluster) == before


@pytest.mark.long
async def test_a_gang_that_never_had_its_minimum_on_nodes_is_left_waiting(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    cliques = (clique(name, 1, gpus=8, selector="there-are-none-test") for name in ("a", "b"))
    kubectl.apply(patient_set("hopeful", *cliques, delay="1s"))
    await cluster.gang("hopeful-0", reason=names.REASON_NEVER_FITS)
    before = await census(cluster)
    await asyncio.sleep(9)  # more than what a beginning is, and the delay
    assert await census(cluster) == before
    status = kubectl.run("get", "pclq", "hopeful-0-a", "-o", "yaml", check=True).stdout
    assert names.SCHEDULED_BELOW_MINIMUM in status
    assert await told(cluster, "PodCliqueSetReplicaDeleteSuccessful") == []
