"""Slots on a real control plane: holes that scale-in leaves, lost nodes, pods that have grown."""

import json

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.resources import NODES, PODS
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.ordered import NEVER_READY, clique, let_be_ready, ordered

pytestmark = pytest.mark.cluster


async def slots(cluster: Cluster, gang: str, *, indices: set[int]) -> dict[int, str]:
    """Wait until just these slots are reserved; returns the node of each."""

    async def attempt() -> dict[int, str] | None:
        found = {r.metadata.name: r for r in await cluster.reservations()}
        booked = found[gang].slots() if gang in found else ()
        nodes = {slot.index: slot.node for _, slot, _ in booked}
        return nodes if nodes.keys() == indices else None

    return await cluster.until(attempt, f"slots {indices} of {gang}")


def index_of(pod: Pod) -> int:
    return int(pod.metadata.labels[names.POD_INDEX_LABEL])


async def test_scale_in_leaves_a_hole_and_scale_out_fills_it(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """The one that is not ready goes, and it is not the last."""
    engine = clique("engine", replicas=3, minimum=1, notes=NEVER_READY)
    kubectl.apply(ordered("holes", "CliqueStartupTypeAnyOrder", [engine]))
    await slots(cluster, "holes-0", indices={0, 1, 2})
    pods = {index_of(pod): pod for pod in await cluster.pods("holes", 3)}
    await let_be_ready(cluster, [pods[0], pods[2]])

    async def two_ready() -> bool | None:
        return sum(p.containers_ready for p in await cluster.pods("holes", 3)) == 2 or None

    await cluster.until(two_ready, "two of three ready")
    kubectl.run("scale", "pclq", "holes-0-engine", "--replicas=2", check=True)
    left = await cluster.pods("holes", 2)
    assert {index_of(pod) for pod in left} == {0, 2}
    nodes = await slots(cluster, "holes-0", indices={0, 2})
    kubectl.run("scale", "pclq", "holes-0-engine", "--replicas=3", check=True)
    assert (await slots(cluster, "holes-0", indices={0, 1, 2})).items() >= nodes.items()
    await cluster.running("holes")
    assert {index_of(pod) for pod in await cluster.pods("holes", 3)} == {0, 1, 2}


async def test_a_pod_whose_node_was_lost_comes_back_near_the_others(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    engine = clique("engine", replicas=2, gpus=8)
    kubectl.apply(ordered("lost", "CliqueStartupTypeAnyOrder", [engine]))
    seen = await cluster.running("lost")
    first = next(pod for pod in seen.pods.values() if index_of(pod) == 0)
    node = first.spec.node_name
    cordon: JsonObject = {"spec": {"unschedulable": True}}
    await cluster.client.merge_patch(NODES, node, cordon)
    try:
        await cluster.client.delete(PODS, first.metadata.name, cluster.namespace)
        seen = await cluster.running("lost", without=first.metadata.uid)
    finally:
        cordon = {"spec": {"unschedulable": None}}
        await cluster.client.merge_patch(NODES, node, cordon)
    (booked,) = await cluster.reservations()
    planned = {slot.index: slot.node for _, slot, _ in booked.slots()}
    there = {index_of(pod): pod.spec.node_name for pod in seen.pods.values()}
    assert planned == there
    assert there[0] != node
    blocks = {seen.nodes[name].metadata.labels[names.BLOCK_KEY] for name in there.values()}
    assert len(blocks) == 1


@pytest.mark.long
async def test_pods_that_an_update_lets_grow_are_measured_anew_where_they_were(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """There is no other room: each of two nodes is taken whole by one pod."""
    await cluster.label_nodes("grown-test", count=2)
    kubectl.apply(engine_set("grown", pods=2, gpus=8, selector="grown-test"))
    await cluster.running("grown")
    resources = "/spec/template/cliques/0/spec/podSpec/containers/0/resources"
    more = json.dumps([{"op": "add", "path": f"{resources}/requests", "value": {"cpu": "2"}}])
    kubectl.run("patch", "pcs", "grown", "--type=json", "-p", more, check=True)

    async def measured() -> bool | None:
        (booked,) = await cluster.reservations()
        kept = [requests.get("cpu") for _, _, requests in booked.slots()]
        return kept == ["2", "2"] or None

    await cluster.until(measured, "both slots keep what the new pods take")
    await cluster.running("grown")
