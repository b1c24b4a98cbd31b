"""Pods that a running gang loses are placed anew together, under what is asked of the gang."""

import asyncio

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs.views import Reservation
from kube.errors import NotFound
from kube.resources import NODES, PODS
from penstock.tree import SetSeen
from tests.support import hallnodes
from tests.support.hallnodes import ROW, ROWS, domains, name_of, near, placed_set, role
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.usefixtures("hall")]

BEHAVIOUR = "lab.penstock.dev/behaviour"


def homes(seen: SetSeen) -> dict[str, str]:
    return {pod.spec.node_name: pod.metadata.uid for pod in seen.pods.values()}


async def drain(cluster: Cluster, seen: SetSeen, *nodes: str) -> None:
    """Cordon these nodes, then delete all pods of the set on them at once."""
    for node in nodes:
        hall, number = node.removeprefix("hall-").split("-node-")
        await hallnodes.cordon(cluster.client, int(hall), int(number))
    going = [pod for pod in seen.pods.values() if pod.spec.node_name in nodes]
    await asyncio.gather(
        *(cluster.client.delete(PODS, pod.metadata.name, cluster.namespace) for pod in going)
    )


async def moved(cluster: Cluster, name: str, *lost: str) -> SetSeen:
    """Wait until the set runs and none of its pods is on these nodes."""

    async def attempt() -> SetSeen | None:
        seen = await cluster.running(name)
        return seen if not set(lost) & homes(seen).keys() else None

    return await cluster.until(attempt, f"{name} off {', '.join(lost)}")


async def booked(cluster: Cluster) -> Reservation:
    (found,) = await cluster.reservations()
    assert found.state is State.BOUND
    return found


async def test_a_pod_of_a_drained_node_gets_the_spare_node_of_the_row_that_is_required(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(placed_set("spare", [role("main", 2, 8, 0)], whole=near("row", network=ROWS)))
    before = await cluster.running("spare")
    (row,) = domains(before, ROW)
    gone, stays = sorted(homes(before))
    await drain(cluster, before, gone)
    after = await moved(cluster, "spare", gone)
    assert domains(after, ROW) == [row]
    assert homes(after)[stays] == homes(before)[stays], "nobody else has moved"
    kept = await booked(cluster)
    assert {slot.node for _, slot, _ in kept.slots()} == homes(after).keys()
    assert (kept.spec.repairs, kept.spec.attempt) == (0, 0)


async def test_pods_that_are_lost_together_go_where_there_is_room_for_all_of_them(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """The row they come from has room for one more, and the next row too."""
    client = cluster.client
    await hallnodes.cordon(client, 1, *(n for n in range(hallnodes.COUNT) if n not in (0, 4)))
    kubectl.apply(placed_set("both", [role("main", 2, 8, 1)], whole=near("row", network=ROWS)))
    before = await cluster.running("both")
    assert homes(before).keys() == {name_of(1, 0), name_of(1, 4)}
    await hallnodes.cordon(client, 1, 8, 1, 2, 6, off=True)
    await drain(cluster, before, *homes(before))
    after = await moved(cluster, "both", *homes(before))
    assert homes(after).keys() == {name_of(1, 2), name_of(1, 6)}
    assert (await booked(cluster)).spec.repairs == 0


async def test_a_row_without_room_is_waited_for_and_the_others_stay(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    roomy = near("row", network=ROWS)
    kubectl.apply(placed_set("full", [role("main", 3, 8, 2)], whole=roomy))
    before = await cluster.running("full")
    gone, *stay = sorted(homes(before))
    await drain(cluster, before, gone)
    said = await cluster.gang("full-0", reason=names.REASON_INSUFFICIENT)
    assert "must stay in one row" in said.message
    pods = {pod.spec.node_name: pod.metadata.uid for pod in await cluster.pods("full", 3)}
    assert {node: pods[node] for node in stay} == {node: homes(before)[node] for node in stay}
    number = int(gone.rpartition("-")[2])
    await hallnodes.cordon(cluster.client, 2, number, off=True)
    after = await cluster.running("full")
    assert homes(after).keys() == homes(before).keys(), "its own node was back first"


async def test_a_pod_that_kube_scheduler_preempted_gets_other_room_without_being_tried_in_vain(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("preempt-test", count=3)
    kubectl.apply(engine_set("preempted", pods=2, gpus=8, selector="preempt-test"))
    before = await cluster.running("preempted")
    victim, stays = sorted(homes(before))
    urgent = f"urgent-{cluster.namespace}"
    kubectl.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": urgent}, "value": 1000,
        }
    )  # fmt: skip
    try:
        kubectl.apply(pushing("intruder", urgent, victim))
        intruder = await bound_pod(cluster, "intruder")
        after = await moved(cluster, "preempted", victim)
    finally:
        kubectl.run("delete", "priorityclass", urgent, check=True)
    assert intruder.spec.node_name == victim
    assert homes(after)[stays] == homes(before)[stays]
    kept = await booked(cluster)
    assert kept.spec.repairs == 0, "its successor was not lifted onto the room that was gone"
    assert {slot.node for _, slot, _ in kept.slots()} == homes(after).keys()


def pushing(name: str, priority: str, node: str) -> JsonObject:
    """A pod that takes a whole node, and may push others off it."""
    container: JsonObject = {
        "name": "main", "image": "registry.example/intruder:1.0",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "priorityClassName": priority,
            "nodeSelector": {names.HOSTNAME_KEY: node},
        },
    }


async def bound_pod(cluster: Cluster, name: str) -> Pod:
    async def attempt() -> Pod | None:
        try:
            pod = await cluster.client.get(PODS, Pod, name, cluster.namespace)
        except NotFound:
            return None
        return pod if pod.spec.node_name else None

    return await cluster.until(attempt, f"{name} bound")


async def test_pods_of_nodes_that_fail_together_are_placed_anew_while_the_rest_runs_on(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """The nodes stay, and are NotReady: kube-controller-manager evicts whom they had."""
    await cluster.label_nodes("failing-test", count=5)
    body = engine_set("failing", pods=3, gpus=8, selector="failing-test")
    impatient: JsonObject = {
        "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 1,
    }  # fmt: skip
    pod_spec_of(body)["tolerations"] = [impatient]
    kubectl.apply(body)
    before = await cluster.running("failing")
    *failed, stays = sorted(homes(before))
    try:
        await asyncio.gather(*(silence(cluster, node) for node in failed))
        after = await moved(cluster, "failing", *failed)
    finally:
        await asyncio.gather(*(silence(cluster, node, off=True) for node in failed))
    assert homes(after)[stays] == homes(before)[stays]
    kept = await booked(cluster)
    assert {slot.node for _, slot, _ in kept.slots()} == homes(after).keys()
    assert (kept.spec.repairs, kept.spec.attempt) == (0, 0)


def pod_spec_of(body: JsonObject) -> JsonObject:
    """The pod spec of a set's only clique."""
    spec = as_object(as_object(body["spec"])["template"])
    cliques = spec["cliques"]
    assert isinstance(cliques, list)
    return as_object(as_object(as_object(cliques[0])["spec"])["podSpec"])


def as_object(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found


async def silence(cluster: Cluster, node: str, *, off: bool = False) -> None:
    """Have a node report no more that it is ready, or again."""
    patch: JsonObject = {"metadata": {"annotations": {BEHAVIOUR: None if off else "not-ready"}}}
    await cluster.client.merge_patch(NODES, node, patch)
