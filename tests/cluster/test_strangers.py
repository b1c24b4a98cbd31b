"""What others take of nodes counts, and what others hold back is not waited for for ever."""

import json

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs.lacking import FOR_OTHERS
from kube.resources import PODS
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

OTHERS = "quota.example/hold"


def stranger(name: str, gpus: int, **spec: Json) -> JsonObject:
    container: Json = {
        "name": "main", "image": "registry.example/stranger:1.0",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def mirror(name: str, gpus: int, node: str) -> JsonObject:
    """What a kubelet shows of a static pod."""
    made = stranger(name, gpus, nodeName=node)
    note: JsonObject = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
    return {**made, "metadata": {"name": name, "annotations": note}}


def daemonset(name: str, gpus: int, label: str) -> JsonObject:
    labels: JsonObject = {"app": name}
    spec = stranger(name, gpus, nodeSelector={label: "yes"})["spec"]
    assert isinstance(spec, dict)
    del spec["terminationGracePeriodSeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def bind(cluster: Cluster, kubectl: Kubectl, name: str, node: str) -> None:
    """Do what a scheduler does."""
    target: JsonObject = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding: JsonObject = {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target,
    }  # fmt: skip
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/binding"
    kubectl.run("create", "--raw", path, "-f", "-", text=json.dumps(binding), check=True)


@pytest.mark.long
async def test_pods_of_all_sorts_that_nobody_asked_us_about_take_their_room(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Of eight GPUs they take seven, each by another way; the gang asks for two."""
    (node,) = await cluster.label_nodes("strange-test", count=1)
    kubectl.apply(daemonset("daemon", 1, "strange-test"))
    kubectl.apply(mirror("static", 1, node))
    kubectl.apply(stranger("by-hand", 2, nodeName=node))
    kubectl.apply(stranger("elsewhere", 2, schedulerName="another"))
    await bind(cluster, kubectl, "elsewhere", node)
    kubectl.apply(stranger("ungated", 1, nodeSelector={"strange-test": "yes"}))

    async def all_there() -> bool | None:
        found = (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items
        return len([pod for pod in found if pod.spec.node_name == node]) == 5 or None

    await cluster.until(all_there, "all strangers on the node")
    kubectl.apply(engine_set("guest", pods=1, gpus=2, selector="strange-test"))
    said = await cluster.gang("guest-0", reason=names.REASON_INSUFFICIENT)
    assert "nvidia.com/gpu: 2 needed, 1 free" in said.message
    kubectl.run("delete", "pod", "elsewhere", "--wait=false", check=True)
    await cluster.running("guest")


async def unlock(cluster: Cluster, *pods: Pod) -> None:
    """Take the others' gate off, as those do whose it is."""
    for pod in pods:
        gates: Json = [{"name": gate} for gate in pod.gates if gate != OTHERS]
        patch: list[JsonObject] = [
            {"op": "replace", "path": "/spec/schedulingGates", "value": gates}
        ]
        await cluster.client.json_patch(PODS, pod.metadata.name, patch, cluster.namespace)


@pytest.mark.long
async def test_room_is_kept_for_a_while_only_for_a_pod_that_others_hold_back_too(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    body = engine_set("shared", pods=2, gpus=8, gates=[OTHERS])
    leave: JsonObject = {names.UNPROTECTED_ANNOTATION: "true"}
    kubectl.apply({**body, "metadata": {"name": "shared", "annotations": leave}})
    said = await cluster.gang("shared-0", reason=names.REASON_FOREIGN_GATES)
    assert OTHERS in said.message
    assert await cluster.reservations() == []
    await unlock(cluster, *await cluster.pods("shared", 2))
    seen = await cluster.running("shared")
    lost, _ = seen.pods.values()
    await cluster.client.delete(PODS, lost.metadata.name, cluster.namespace)
    await cluster.gang("shared-0", reason=names.REASON_FOREIGN_GATES)
    (kept,) = await cluster.reservations()
    assert (kept.state, kept.size) == (State.BOUND, 2), "its place is kept at first"

    async def let_go() -> bool | None:
        (kept,) = await cluster.reservations()
        return kept.size == 1 or None

    await cluster.until(let_go, "no room kept", FOR_OTHERS.total_seconds() + 20)
    (successor,) = [pod for pod in await cluster.pods("shared", 2) if pod.gates]
    assert set(successor.gates) == {OTHERS, names.GATE}, "neither gate was touched"
    await unlock(cluster, successor)
    await cluster.running("shared")
