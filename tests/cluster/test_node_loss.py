"""Nodes that are cordoned, vanish or are new, while gangs wait on them, are lifted or run there."""

import asyncio
from functools import partial

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Node, Pod
from controller.gangs.views import pinned_node
from kube.resources import NODES, PODS
from penstock.lab.nodes import create_nodes
from penstock.lab.state import Lab
from tests.cluster.test_plain_gangs import Crew, bound
from tests.cluster.test_watching import (
    TRIES,
    all_bound,
    asleep,
    lifted,
    started_over,
    vanished,
)
from tests.support import hallnodes
from tests.support.hallnodes import HALL, ROW, ROWS, domains, name_of, near, placed_set, role
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.ordered import NEVER_READY, clique, let_be_ready, of_clique, ordered

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.usefixtures("hall")]

SOON = 30.0  # seconds: sooner than what is lifted has to be bound by
COLLECTED = 120.0  # until Kubernetes has deleted the pods of a node that is gone


async def cordon(cluster: Cluster, node: str, *, off: bool = False) -> None:
    body: JsonObject = {"spec": {"unschedulable": None if off else True}}
    await cluster.client.merge_patch(NODES, node, body)


async def test_a_pod_that_waits_for_its_turn_gets_another_slot_for_nothing_when_its_node_is_drained(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """It is still gated, so it need not be made anew."""
    await cluster.label_nodes("turn-test", count=2)
    cliques = [
        clique("first", notes=NEVER_READY, selector="turn-test"),
        clique("then", "first", gpus=8, selector="turn-test"),
    ]
    kubectl.apply(ordered("turn", "CliqueStartupTypeExplicit", cliques))
    before = await slot_of(cluster, "turn-0-then")
    pods = await cluster.pods("turn", 2)
    (waiting,) = of_clique(pods, "turn-0-then")
    await cordon(cluster, before)
    try:

        async def elsewhere() -> str | None:
            now = await slot_of(cluster, "turn-0-then")
            return now if now != before else None

        after = await cluster.until(elsewhere, "another slot")
        await let_be_ready(cluster, of_clique(pods, "turn-0-first"))
        seen = await cluster.running("turn")
    finally:
        await cordon(cluster, before, off=True)
    (runs,) = of_clique(seen.pods.values(), "turn-0-then")
    assert (runs.metadata.uid, runs.spec.node_name) == (waiting.metadata.uid, after)


async def slot_of(cluster: Cluster, name: str) -> str:
    async def attempt() -> str | None:
        found = await cluster.reservations()
        nodes = [slot.node for each in found for own, slot, _ in each.slots() if own == name]
        return nodes[0] if nodes else None

    return await cluster.until(attempt, f"a slot of {name}")


async def test_a_lifted_pod_whose_node_is_cordoned_before_it_is_bound_is_not_waited_for(
    cluster: Cluster, kubectl: Kubectl, lab: Lab
) -> None:
    await cluster.label_nodes("cordoned-test", count=3)
    for _ in range(TRIES):
        with asleep(lab):
            kubectl.apply(engine_set("cordoned", pods=2, gpus=8, selector="cordoned-test"))
            before = await lifted(cluster, "cordoned", 2)
            drained, stays = sorted(before)
            await cordon(cluster, drained)
        try:
            after = await all_bound(cluster, "cordoned", SOON)
        finally:
            await cordon(cluster, drained, off=True)
        if drained not in after:
            break
        # It woke up to both, and bound the pod before it had heard that the node takes no more.
        await started_over(cluster, kubectl, "podcliqueset/cordoned")
    else:
        pytest.fail(f"kube-scheduler never heard of the cordon in time, {TRIES} times")
    assert after[stays].metadata.uid == before[stays].metadata.uid
    await cluster.running("cordoned")
    (kept,) = await cluster.reservations()
    assert (kept.state, kept.spec.repairs, kept.spec.attempt) == (State.BOUND, 0, 0)


async def test_pods_of_nodes_that_vanish_while_the_gang_runs_move_together(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Kubernetes deletes them when it is sure that the nodes stay away."""
    kubectl.apply(placed_set("gone", [role("main", 2, 8, 3)], whole=near("row", network=ROWS)))
    before = await cluster.running("gone")
    (row,) = domains(before, ROW)
    lost = {pod.spec.node_name for pod in before.pods.values()}
    bodies = [body for body in hallnodes.bodies() if hallnodes.name_in(body) in lost]
    for node in lost:
        await cluster.client.delete(NODES, node)
    try:

        async def elsewhere() -> set[str] | None:
            found = {pod.spec.node_name for pod in await cluster.pods("gone", 2)}
            return found if len(found) == 2 and "" not in found and not found & lost else None

        after = await cluster.until(elsewhere, "both pods on other nodes", COLLECTED)
    finally:
        await create_nodes(cluster.client, bodies)
    nodes = [await cluster.client.get(NODES, Node, name) for name in after]
    rows = {node.metadata.labels[ROW] for node in nodes}
    assert len(rows) == 1
    assert rows != {row}, "it has room for one only"


async def test_a_new_node_is_used_once_it_is_ready_for_pods(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Whoever prepares it says so by a taint, which its own DaemonSet tolerates."""
    client, name = cluster.client, name_of(4, 0)
    await hallnodes.cordon(client, 4, *range(1, hallnodes.COUNT))
    (body,) = [each for each in hallnodes.bodies() if hallnodes.name_in(each) == name]
    await client.delete(NODES, name)
    kubectl.apply(placed_set("fresh", [role("main", 1, 5, 4)]))
    await cluster.gang("fresh-0", reason=names.REASON_INSUFFICIENT)
    booting: Json = {"key": "test.penstock.dev/agent-not-ready", "effect": "NoSchedule"}
    usual: Json = {"key": HALL, "effect": "NoSchedule"}
    await create_nodes(client, [{**body, "spec": {"taints": [usual, booting]}}])
    await asyncio.sleep(1)  # to see that nothing happens
    (pod,) = await cluster.pods("fresh", 1)
    assert pod.gates == (names.GATE,)
    assert await cluster.reservations() == []
    kubectl.apply(hallnodes.daemonset("agent", 4, 4))
    await client.merge_patch(NODES, name, {"spec": {"taints": [usual]}})
    await asyncio.sleep(1)
    assert await cluster.reservations() == [], "room for the agent, which has not come yet, is kept"
    kubectl.run("delete", "daemonset", "agent", check=True)
    seen = await cluster.running("fresh")
    assert {each.spec.node_name for each in seen.pods.values()} == {name}


async def test_a_job_does_not_count_a_pod_whose_node_vanished_before_it_was_bound(
    cluster: Cluster, kubectl: Kubectl, lab: Lab
) -> None:
    await cluster.label_nodes("job-test", count=3)
    crew = Crew("patient", 2, gpus=8, only="job-test")
    ignore: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    body = crew.owned(
        "Job", parallelism=2, completions=2, backoffLimit=0, podFailurePolicy={"rules": [ignore]}
    )
    with asleep(lab):
        kubectl.apply(body)
        (gone, _) = sorted(await cluster.until(partial(pinned, cluster), "both lifted"))
        async with vanished(cluster, lab, gone):
            pass
    await cluster.client.merge_patch(NODES, gone, {"metadata": {"labels": {"job-test": "yes"}}})
    await bound(cluster, "patient", 2)
    failed = kubectl.run("get", "job", "patient", "-o", "jsonpath={.status.failed}", check=True)
    assert failed.stdout in ("", "0")


async def pinned(cluster: Cluster) -> set[str] | None:
    found = await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels="app=patient")
    nodes = {node for pod in found.items if (node := pinned_to(pod))}
    return nodes if len(nodes) == 2 else None


def pinned_to(pod: Pod) -> str:
    return "" if pod.gates else pinned_node(pod)
