"""The whole way of a gang on a real control plane: gated, placed, reserved, lifted, bound."""

from pathlib import Path

import pytest

from api import names
from api.jsons import JsonObject
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_an_applied_set_ends_up_whole_bound_and_close_together(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply_file(EXAMPLES / "disaggregated.yaml")
    seen = await cluster.running("chat")
    assert sorted(gang.metadata.name for gang in seen.gangs) == ["chat-0", "chat-0-decode-0"]
    assert len(seen.pods) == 12
    for pod in seen.pods.values():
        assert pod.gates == ()
    reservations = await cluster.reservations()
    assert {r.metadata.name: r.status.state.value for r in reservations} == {
        "chat-0": "Bound",
        "chat-0-decode-0": "Bound",
    }
    planned = {
        (slot_group, slot.index): slot.node
        for reservation in reservations
        for slot_group, slot, _ in reservation.slots()
    }
    for pod in seen.pods.values():
        clique = pod.metadata.labels[names.PODCLIQUE_LABEL]
        index = int(pod.metadata.labels[names.POD_INDEX_LABEL])
        assert pod.spec.node_name == planned[clique, index]
    for gang in seen.gangs:
        nodes = [
            seen.nodes[seen.pods[ref.name].spec.node_name]
            for group in gang.spec.pod_groups
            for ref in group.pod_references
        ]
        blocks = {node.metadata.labels[names.BLOCK_KEY] for node in nodes}
        assert len(blocks) == 1, f"{gang.metadata.name} is spread over {blocks}"
        assert gang.status.placement_score is not None


async def test_every_pod_is_born_gated_and_keeps_its_authors_gates(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("gated", pods=2, gpus=8, gates=["quota.example/hold"]))
    pods = await cluster.pods("gated", 2)
    for pod in pods:
        assert pod.gates == ("quota.example/hold", names.GATE)
    gang = await cluster.gang("gated-0", reason=names.REASON_FOREIGN_GATES)
    assert "quota.example/hold" in gang.message
    assert await cluster.reservations() == []


async def test_a_cycle_is_refused_with_its_path_named(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "-f", str(EXAMPLES / "cycle.yaml"))
    assert refused.returncode != 0
    assert "prefill → router → prefill" in refused.stderr
    assert "startsAfter" in refused.stderr
    assert "not found" in kubectl.run("get", "pcs", "circular").stderr.lower()


async def test_an_oversubscribed_gang_stays_gated_whole_and_says_what_is_missing(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    # 40 nodes of 8 GPUs: other tests may use some, but never are there 41.
    kubectl.apply(engine_set("large", pods=41, gpus=8))
    gang = await cluster.gang("large-0", reason=names.REASON_NEVER_FITS)
    assert gang.status == "False"
    assert "nvidia.com/gpu: 328 needed" in gang.message
    assert "short" in gang.message
    pods = await cluster.pods("large", 41)
    assert all(pod.gates == (names.GATE,) and not pod.spec.node_name for pod in pods)
    assert await cluster.reservations() == []


async def test_a_refused_gang_starts_by_itself_when_room_comes_free(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("first", pods=2, gpus=8, selector="room-test"))
    await cluster.label_nodes("room-test", count=2)
    await cluster.running("first")
    kubectl.apply(engine_set("second", pods=2, gpus=8, selector="room-test"))
    await cluster.gang("second-0", reason=names.REASON_INSUFFICIENT)
    kubectl.delete("first")
    await cluster.running("second")


async def test_extras_start_as_room_allows_and_never_hold_back_the_minimum(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("extras-test", count=2)
    kubectl.apply(engine_set("elastic", pods=3, minimum=2, gpus=8, selector="extras-test"))
    gang = await cluster.gang("elastic-0", reason=names.REASON_BOUND)
    assert gang.message == "1 further pods wait for room"
    await cluster.label_nodes("extras-test", count=3)
    await cluster.running("elastic")


async def test_a_gang_whose_extras_wait_is_left_in_peace(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("peace-test", count=1)
    kubectl.apply(engine_set("peace", pods=2, minimum=1, gpus=8, selector="peace-test"))
    await cluster.gang("peace-0", reason=names.REASON_BOUND)
    await cluster.quiet("reservations", "podgangs", "pods")


async def test_a_reservation_that_cannot_be_made_is_told_and_not_hammered_for(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    spec: JsonObject = {"gang": {"name": "taken-0", "uid": "nobody"}, "groups": []}
    stranger: JsonObject = {
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "taken-0"},
        "spec": {**spec, "deadline": "2026-01-01T00:00:00Z"},
    }
    kubectl.apply(stranger)
    kubectl.apply(engine_set("taken", pods=1, gpus=1))
    gang = await cluster.gang("taken-0", reason=names.REASON_NOT_RESERVED)
    assert "already exists" in gang.message
    assert await cluster.writes("POST", "reservations", seconds=3) <= 3
    kubectl.run("delete", "reservation", "taken-0", check=True)
    await cluster.running("taken")


async def test_a_deleted_pod_comes_back_to_its_slot(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(engine_set("slots", pods=2, gpus=8))
    seen = await cluster.running("slots")
    name, pod = min(seen.pods.items())
    kubectl.run("delete", "pod", name, check=True)
    again = await cluster.running("slots", without=pod.metadata.uid)
    assert again.pods[name].metadata.uid != pod.metadata.uid
    assert again.pods[name].spec.node_name == pod.spec.node_name


async def test_fewer_replicas_take_whole_gangs_away(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(engine_set("scaled", pods=1, gpus=1, replicas=2))
    await cluster.running("scaled", gangs=2)
    kubectl.run("scale", "pcs", "scaled", "--replicas=1", check=True)
    await cluster.gone("podgang", "scaled-1")
    seen = await cluster.running("scaled", gangs=1)
    assert [gang.metadata.name for gang in seen.gangs] == ["scaled-0"]


async def test_a_deleted_set_leaves_nothing_behind(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(engine_set("brief", pods=2, gpus=1))
    await cluster.running("brief")
    kubectl.delete("brief")
    await cluster.gone("podgang", "brief-0")
    await cluster.gone("reservation", "brief-0")
    await cluster.pods("brief", 0)
