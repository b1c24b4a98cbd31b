"""Sets whose cliques start in order, and what their pods show of it."""

from collections.abc import Iterable
from datetime import datetime

from api import names
from api.jsons import Json, JsonObject
from api.streams import Condition, Pod
from kube.resources import PODS
from tests.support.living import Cluster

BEHAVIOUR = "lab.penstock.dev/behaviour"
NEVER_READY: JsonObject = {BEHAVIOUR: "never-ready"}
SLOW: JsonObject = {"lab.penstock.dev/start-seconds": "1"}  # one to two seconds, in the lab


def clique(
    name: str,
    *after: str,
    replicas: int = 1,
    minimum: int | None = None,
    gpus: int = 0,
    notes: JsonObject | None = None,
    selector: str = "",
) -> Json:
    """A clique; `selector` keeps it to nodes labelled so."""
    container: JsonObject = {"name": "main", "image": "registry.example/engine:1.0"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: JsonObject = {
        "roleName": name,
        "replicas": replicas,
        "minAvailable": minimum or replicas,
        "startsAfter": list(after),
        "podSpec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {selector: "yes"} if selector else {},
        },
    }
    return {"name": name, "annotations": notes or {}, "spec": spec}


def ordered(
    name: str, kind: str, cliques: list[Json], groups: list[Json] | None = None
) -> JsonObject:
    template: JsonObject = {"cliqueStartupType": kind, "cliques": cliques}
    if groups:
        template["podCliqueScalingGroups"] = groups
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        # Its pods are steered by hand.
        "metadata": {"name": name, "annotations": {names.UNPROTECTED_ANNOTATION: "true"}},
        "spec": {"replicas": 1, "template": template},
    }


def of_clique(pods: Iterable[Pod], name: str) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.labels[names.PODCLIQUE_LABEL] == name]


def said(pod: Pod, kind: str) -> Condition | None:
    return next((c for c in pod.status.conditions if c.type == kind), None)


def since(pod: Pod, kind: str) -> datetime:
    """Tell since when the condition is true."""
    found = said(pod, kind)
    assert found is not None
    assert found.status == "True"
    assert found.last_transition_time is not None
    return found.last_transition_time


def check_order(pods: list[Pod], child: str, *parents: str) -> None:
    """Every pod of the child was let go only when all pods of its parents were ready."""
    ready = max(since(p, "ContainersReady") for name in parents for p in of_clique(pods, name))
    for pod in of_clique(pods, child):
        assert since(pod, "PodScheduled") >= ready, f"{child} before {', '.join(parents)}"


async def when(cluster: Cluster, name: str, count: int, *, ready: Iterable[str]) -> list[Pod]:
    """Wait until the set has so many pods, and all of these cliques are ready."""

    async def attempt() -> list[Pod] | None:
        pods = await cluster.pods(name, count)
        cliques = [of_clique(pods, full) for full in ready]
        done = all(found and all(p.containers_ready for p in found) for found in cliques)
        return pods if done else None

    return await cluster.until(attempt, f"{', '.join(ready)} ready")


async def blocked(cluster: Cluster, name: str, status: str) -> Condition:
    """Wait until the pod says this of whether it waits for others."""

    async def attempt() -> Condition | None:
        pod = await cluster.client.get(PODS, Pod, name, cluster.namespace)
        found = said(pod, names.STARTUP_BLOCKED)
        return found if found is not None and found.status == status else None

    return await cluster.until(attempt, f"{name} with {names.STARTUP_BLOCKED} {status}")


async def let_be_ready(cluster: Cluster, pods: Iterable[Pod]) -> None:
    for pod in pods:
        body: JsonObject = {"metadata": {"annotations": {BEHAVIOUR: None}}}
        await cluster.client.merge_patch(PODS, pod.metadata.name, body, cluster.namespace)
