"""Pods that were lifted and cannot be bound: found another place, or taken back with their gang."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import pytest

from api import names
from api.jsons import JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs.views import Reservation, pinned_node
from kube.clock import SystemClock
from kube.resources import NODES, PODS
from penstock.lab import daemons
from penstock.lab.folders import Folder
from penstock.lab.nodes import create_nodes, make_nodes
from penstock.lab.state import Lab
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.ordered import NEVER_READY, clique, let_be_ready, of_clique, ordered

pytestmark = pytest.mark.cluster

# Seconds: pods have 45 to be bound, and a gang is kept half for 30 more; several times as long.
BOUND_LATE = 200.0
TRIES = 5  # to have something happen to a pod's room before kube-scheduler gives it to the pod


@contextmanager
def asleep(lab: Lab) -> Iterator[None]:
    """Have kube-scheduler do nothing meanwhile."""
    pid = daemons.started(Folder(lab.name, lab.directory))["kube-scheduler"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def vanished(cluster: Cluster, lab: Lab, name: str) -> AsyncIterator[None]:
    """Take a node away, and bring it back as it was made at last."""
    await cluster.client.delete(NODES, name)
    try:
        yield
    finally:
        await back(cluster, lab, name)


async def back(cluster: Cluster, lab: Lab, name: str, label: str = "") -> None:
    now = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")
    (body,) = [b for b in make_nodes(lab.spec, now) if named(b) == name]
    await create_nodes(cluster.client, [body])
    if label:
        await cluster.client.merge_patch(NODES, name, {"metadata": {"labels": {label: "yes"}}})


def named(body: JsonObject) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


async def lifted(cluster: Cluster, set_name: str, count: int) -> dict[str, Pod]:
    """Wait until all pods of the set are released; gives them by node."""

    async def attempt() -> dict[str, Pod] | None:
        pods = await cluster.pods(set_name, count)
        return {pinned_node(p): p for p in pods} if not any(p.gates for p in pods) else None

    return await cluster.until(attempt, f"{count} pods of {set_name} lifted")


async def all_gated(cluster: Cluster, set_name: str, count: int) -> bool | None:
    pods = await cluster.pods(set_name, count)
    return all(pod.gates == (names.GATE,) for pod in pods) or None


async def reservation(cluster: Cluster, state: State, patience: float) -> Reservation:
    async def attempt() -> Reservation | None:
        found = await cluster.reservations()
        return found[0] if found and found[0].state is state else None

    return await cluster.until(attempt, f"a reservation that says {state}", patience)


async def test_a_pod_whose_node_vanishes_before_it_is_bound_gets_another_and_no_other_pod_moves(
    cluster: Cluster, kubectl: Kubectl, lab: Lab
) -> None:
    await cluster.label_nodes("vanish-test", count=3)
    with asleep(lab):
        kubectl.apply(engine_set("vanish", pods=2, gpus=8, selector="vanish-test"))
        before = await lifted(cluster, "vanish", 2)
        gone, stays = sorted(before)
        async with vanished(cluster, lab, gone):

            async def replaced() -> dict[str, Pod] | None:
                pods = await lifted(cluster, "vanish", 2)
                return pods if gone not in pods else None

            after = await cluster.until(replaced, "another pod on another node")
    assert after[stays].metadata.uid == before[stays].metadata.uid
    await cluster.running("vanish")
    booked = await reservation(cluster, State.BOUND, 10)
    assert booked.spec.repairs == 0, "a node that is gone speaks against nobody"
    assert {slot.node for _, slot, _ in booked.slots()} == after.keys()


@pytest.mark.long
async def test_a_pod_whose_room_was_stolen_after_the_lift_gets_other_room(
    cluster: Cluster, kubectl: Kubectl, lab: Lab
) -> None:
    await cluster.label_nodes("stolen-test", count=3)
    for _ in range(TRIES):
        with asleep(lab):
            kubectl.apply(engine_set("stolen", pods=2, gpus=8, selector="stolen-test"))
            before = await lifted(cluster, "stolen", 2)
            victim, stays = sorted(before)
            await steal(cluster, victim)
        seen = await all_bound(cluster, "stolen", BOUND_LATE)
        if victim not in seen:
            break
        # It woke up to both, and bound the pod before it had heard of the thief.
        await started_over(cluster, kubectl, "podcliqueset/stolen", "pod/thief")
    else:
        pytest.fail(f"kube-scheduler never heard of the thief in time, {TRIES} times")
    assert seen[stays].metadata.uid == before[stays].metadata.uid
    booked = await reservation(cluster, State.BOUND, 10)
    assert booked.spec.repairs == 1
    assert booked.spec.refused is not None
    assert booked.spec.refused.nodes == [victim]


async def steal(cluster: Cluster, node: str) -> None:
    """Put a pod there that asks nobody."""
    container: JsonObject = {
        "name": "thief", "image": "registry.example/thief:1.0",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }  # fmt: skip
    body: JsonObject = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "thief"},
        "spec": {"nodeName": node, "containers": [container]},
    }  # fmt: skip
    await cluster.client.create(PODS, body, cluster.namespace)


async def all_bound(cluster: Cluster, set_name: str, patience: float) -> dict[str, Pod]:
    """Wait until both pods of a set are bound; gives them by node."""

    async def attempt() -> dict[str, Pod] | None:
        found = {pod.spec.node_name: pod for pod in await cluster.pods(set_name, 2)}
        return found if "" not in found else None

    return await cluster.until(attempt, f"both pods of {set_name} bound", patience)


async def started_over(cluster: Cluster, kubectl: Kubectl, *things: str) -> None:
    """Delete what there is, and wait until it is gone."""
    kubectl.run("delete", *things, check=True)

    async def gone() -> bool | None:
        pods = (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items
        return not (pods or await cluster.reservations()) or None

    await cluster.until(gone, "nothing left of it")


@pytest.mark.long
async def test_a_gang_without_another_place_is_rolled_back_whole_and_runs_when_there_is_one(
    cluster: Cluster, kubectl: Kubectl, lab: Lab
) -> None:
    await cluster.label_nodes("rolled-test", count=2)
    kubectl.apply(engine_set("rolled", pods=2, gpus=8, selector="rolled-test"))
    with asleep(lab):
        first = await lifted(cluster, "rolled", 2)
        gone, stays = sorted(first)
        async with vanished(cluster, lab, gone):
            assert (await reservation(cluster, State.LIFTING, 10)).spec.attempt == 0
            kept = await reservation(cluster, State.ROLLED_BACK, BOUND_LATE)
            assert "no other" in kept.status.message
            await cluster.until(partial(all_gated, cluster, "rolled", 2), "nothing left released")
            gang = await cluster.gang("rolled-0", reason=names.REASON_ROLLED_BACK)
            assert "tried again at" in gang.message
    await cluster.client.merge_patch(NODES, gone, {"metadata": {"labels": {"rolled-test": "yes"}}})
    seen = await cluster.running("rolled")
    assert {pod.spec.node_name for pod in seen.pods.values()} == {gone, stays}
    assert (await reservation(cluster, State.BOUND, 10)).spec.attempt == 1


async def test_room_that_waits_for_its_turn_is_kept_from_strangers(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """A pod of equal priority finds no room where a gated pod of an ordered set is nominated."""
    (node,) = await cluster.label_nodes("held-test", count=1)
    cliques = [
        clique("first", notes=NEVER_READY, selector="held-test"),
        clique("then", "first", gpus=8, selector="held-test"),
    ]
    kubectl.apply(ordered("held", "CliqueStartupTypeExplicit", cliques))

    async def nominated() -> list[Pod] | None:
        pods = await cluster.pods("held", 2)
        (then,) = of_clique(pods, "held-0-then")
        return pods if then.status.nominated_node_name == node else None

    pods = await cluster.until(nominated, "the waiting pod is nominated")
    container: JsonObject = {
        "name": "main", "image": "registry.example/stranger:1.0",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }  # fmt: skip
    stranger: JsonObject = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"},
        "spec": {"containers": [container], "nodeSelector": {"held-test": "yes"}},
    }  # fmt: skip
    await cluster.client.create(PODS, stranger, cluster.namespace)

    async def refused() -> bool | None:
        found = await cluster.client.get(PODS, Pod, "stranger", cluster.namespace)
        said = [c for c in found.status.conditions if c.type == "PodScheduled"]
        return True if said and said[0].reason == "Unschedulable" else None

    await cluster.until(refused, "kube-scheduler has refused the stranger")
    await let_be_ready(cluster, of_clique(pods, "held-0-first"))
    await cluster.running("held")
    found = await cluster.client.get(PODS, Pod, "stranger", cluster.namespace)
    assert not found.spec.node_name
