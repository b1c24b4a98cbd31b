"""Startup order behind the gate, proved by when parents were ready and children were let go."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from kube.resources import NODES, PODS
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import (
    NEVER_READY,
    SLOW,
    blocked,
    check_order,
    clique,
    let_be_ready,
    of_clique,
    ordered,
    said,
    since,
    when,
)

pytestmark = pytest.mark.cluster


async def test_a_diamond_starts_from_its_tip(cluster: Cluster, kubectl: Kubectl) -> None:
    cliques = [
        clique("last", "left", "right"),
        clique("left", "tip", replicas=2, notes=SLOW),
        clique("right", "tip"),
        clique("tip", replicas=2, notes=SLOW),
    ]
    kubectl.apply(ordered("gem", "CliqueStartupTypeExplicit", cliques))
    names_of = [f"gem-0-{name}" for name in ("last", "left", "right", "tip")]
    pods = await when(cluster, "gem", 6, ready=names_of)
    check_order(pods, "gem-0-left", "gem-0-tip")
    check_order(pods, "gem-0-right", "gem-0-tip")
    check_order(pods, "gem-0-last", "gem-0-left", "gem-0-right")
    # Room for the last was kept from before the first was let go.
    (booked,) = await cluster.reservations()
    assert booked.size == 6
    first = min(since(pod, "PodScheduled") for pod in pods)
    assert booked.metadata.creation_timestamp is not None
    assert booked.metadata.creation_timestamp <= first


async def test_a_groups_copy_waits_for_its_own_leader_and_says_so(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Copy 1 is a scaled gang, which starts although its base gang is still on its way."""
    cliques = [clique("leader", replicas=2, notes=NEVER_READY), clique("worker")]
    group: JsonObject = {"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 2}
    kubectl.apply(ordered("band", "CliqueStartupTypeInOrder", cliques, [group]))
    leaders, workers = ([f"band-0-g-{i}-{role}" for i in (0, 1)] for role in ("leader", "worker"))

    async def leading() -> list[Pod] | None:
        found = await cluster.pods("band", 6)
        running = [p for p in found if p.status.phase == "Running"]
        return found if len(running) == 4 else None

    pods = await cluster.until(leading, "all leaders at work")
    waiting = [of_clique(pods, name)[0] for name in workers]
    for worker, leader in zip(waiting, leaders, strict=True):
        assert worker.gates == (names.GATE,)
        why = await blocked(cluster, worker.metadata.name, "True")
        assert why.message == f"waits for {leader}: 0 of 2 pods ready"
    gang = await cluster.gang("band-0", reason=names.REASON_WAITING_FOR_PARENTS)
    assert gang.status == "False"
    assert gang.message == f"{workers[0]} waits for {leaders[0]}: 0 of 2 pods ready"
    await let_be_ready(cluster, of_clique(pods, leaders[1]))
    pods = await when(cluster, "band", 6, ready=[leaders[1], workers[1]])
    check_order(pods, workers[1], leaders[1])
    (still,) = of_clique(pods, workers[0])
    assert still.gates == (names.GATE,)
    await blocked(cluster, of_clique(pods, workers[1])[0].metadata.name, "False")
    await let_be_ready(cluster, of_clique(pods, leaders[0]))
    pods = await when(cluster, "band", 6, ready=[*leaders, *workers])
    check_order(pods, workers[0], leaders[0])
    await cluster.gang("band-0", reason=names.REASON_BOUND)


async def test_in_no_order_nobody_waits(cluster: Cluster, kubectl: Kubectl) -> None:
    cliques = [clique("first", notes=NEVER_READY), clique("second")]
    kubectl.apply(ordered("free", "CliqueStartupTypeAnyOrder", cliques))
    pods = await when(cluster, "free", 2, ready=["free-0-second"])
    (first,) = of_clique(pods, "free-0-first")
    assert not first.containers_ready
    assert [said(pod, names.STARTUP_BLOCKED) for pod in pods] == [None, None]


@pytest.mark.long
async def test_in_order_all_base_copies_are_waited_for_and_who_is_not_in_the_gang_is_skipped(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """The router stands between leader and worker: copy 2, a gang of its own, has no router."""
    cliques = [clique("leader", notes=NEVER_READY), clique("router"), clique("worker")]
    members: list[Json] = ["leader", "worker"]
    group: JsonObject = {"name": "g", "cliqueNames": members, "replicas": 3, "minAvailable": 2}
    kubectl.apply(ordered("row", "CliqueStartupTypeInOrder", cliques, [group]))
    leaders, workers = ([f"row-0-g-{j}-{role}" for j in range(3)] for role in ("leader", "worker"))
    router = "row-0-router"

    async def leading() -> list[Pod] | None:
        found = await cluster.pods("row", 7)
        there = [pod for name in leaders for pod in of_clique(found, name)]
        return found if all(pod.status.phase == "Running" for pod in there) else None

    pods = await cluster.until(leading, "all leaders at work")
    for child, parents in ((router, leaders[:2]), *((w, [router]) for w in workers[:2]),
                           (workers[2], leaders[2:])):  # fmt: skip
        (pod,) = of_clique(pods, child)
        why = await blocked(cluster, pod.metadata.name, "True")
        waits = " and ".join(f"{name}: 0 of 1 pods ready" for name in parents)
        assert why.message == f"waits for {waits}"
    await let_be_ready(cluster, of_clique(pods, leaders[0]))
    # Half of those it waits for is not enough.
    pods = await when(cluster, "row", 7, ready=leaders[:1])
    await let_be_ready(cluster, of_clique(pods, leaders[2]))
    pods = await when(cluster, "row", 7, ready=[leaders[2], workers[2]])
    check_order(pods, workers[2], leaders[2])
    assert all(
        pod.gates == (names.GATE,)
        for name in (router, *workers[:2])
        for pod in of_clique(pods, name)
    )
    await let_be_ready(cluster, of_clique(pods, leaders[1]))
    pods = await when(cluster, "row", 7, ready=[router, *leaders, *workers])
    check_order(pods, router, *leaders[:2])
    check_order(pods, workers[0], router)
    check_order(pods, workers[1], router)


async def test_a_parent_that_is_made_anew_leaves_its_children_alone(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Only who starts is asked whether its parents are up: a child's successor waits again."""
    cliques = [clique("parent", notes=NEVER_READY), clique("child", replicas=2, minimum=1)]
    kubectl.apply(ordered("kin", "CliqueStartupTypeInOrder", cliques))
    pods = await cluster.pods("kin", 3)
    await let_be_ready(cluster, of_clique(pods, "kin-0-parent"))
    pods = await when(cluster, "kin", 3, ready=["kin-0-parent", "kin-0-child"])
    (parent,), (stays, goes) = (of_clique(pods, f"kin-0-{role}") for role in ("parent", "child"))
    await cluster.client.delete(PODS, parent.metadata.name, cluster.namespace)

    async def back() -> list[Pod] | None:
        found = await cluster.pods("kin", 3)
        (new,) = of_clique(found, "kin-0-parent")
        other = new.metadata.uid != parent.metadata.uid
        return found if other and new.status.phase == "Running" else None

    pods = await cluster.until(back, "the parent's successor at work")
    await cluster.client.delete(PODS, goes.metadata.name, cluster.namespace)

    async def waits() -> list[Pod] | None:
        found = await cluster.pods("kin", 3)
        gated = [p for p in of_clique(found, "kin-0-child") if p.gates == (names.GATE,)]
        return found if len(gated) == 1 else None

    pods = await cluster.until(waits, "the child's successor behind its gate")
    await blocked(cluster, goes.metadata.name, "True")
    left = {pod.metadata.uid: pod for pod in pods}[stays.metadata.uid]
    assert left.containers_ready
    assert not any(c.last_state.terminated for c in left.status.container_statuses)
    await let_be_ready(cluster, of_clique(pods, "kin-0-parent"))
    pods = await when(cluster, "kin", 3, ready=["kin-0-parent", "kin-0-child"])
    assert stays.metadata.uid in {pod.metadata.uid for pod in pods}


@pytest.mark.long
async def test_room_that_is_lost_while_its_pod_waits_for_others_is_found_anew(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """First there is none: the order holds, and nobody is let go without room."""
    nodes = await cluster.label_nodes("order-test", count=2)
    where = "order-test"
    parent = clique("parent", notes=NEVER_READY, gpus=8, selector=where)
    cliques = [parent, clique("child", gpus=8, selector=where)]
    body = ordered("moved", "CliqueStartupTypeInOrder", cliques)
    kubectl.apply(body)
    pods = await cluster.pods("moved", 2)
    (child,) = of_clique(pods, "moved-0-child")
    await blocked(cluster, child.metadata.name, "True")
    kept = await kept_for(cluster)
    assert {*kept.values()} == {*nodes}
    lost = kept["moved-0-child"]
    await cordon(cluster, lost, unschedulable=True)
    try:
        await let_be_ready(cluster, of_clique(pods, "moved-0-parent"))
        await when(cluster, "moved", 2, ready=["moved-0-parent"])
        await cluster.quiet("pods", "reservations")
        (child,) = of_clique(await cluster.pods("moved", 2), "moved-0-child")
        assert child.gates == (names.GATE,)
        (fresh,) = set(await cluster.label_nodes("order-test", count=3)) - set(nodes)
        pods = await when(cluster, "moved", 2, ready=["moved-0-parent", "moved-0-child"])
    finally:
        await cordon(cluster, lost, unschedulable=None)
    (child,) = of_clique(pods, "moved-0-child")
    assert child.spec.node_name == fresh == (await kept_for(cluster))["moved-0-child"]
    check_order(pods, "moved-0-child", "moved-0-parent")


async def kept_for(cluster: Cluster) -> dict[str, str]:
    """The node reserved for each clique, of cliques of one pod."""
    return {
        name: slot.node for each in await cluster.reservations() for name, slot, _ in each.slots()
    }


async def cordon(cluster: Cluster, node: str, *, unschedulable: bool | None) -> None:
    await cluster.client.merge_patch(NODES, node, {"spec": {"unschedulable": unschedulable}})
