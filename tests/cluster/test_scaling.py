"""Sets, groups and cliques scaled up, down and to nothing, by hand and by HPAs; and who goes first.

Autoscalers come last: they find a kind that is new to the cluster within half a minute only.
"""

from collections.abc import AsyncIterator, Mapping
from functools import partial

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.clock import SystemClock
from kube.resources import AUTOSCALERS, NODES, PODCLIQUES, SCALING_GROUPS, SERVICES, Resource
from penstock.lab import metrics_api
from penstock.lab.state import Lab
from tests.support.living import Cluster, Kubectl, connect
from tests.support.scaling import Parts, reached, role, system

pytestmark = pytest.mark.cluster

Values = dict[str, str]

SCALED: JsonObject = {"minReplicas": 2, "maxReplicas": 9}


def walked(name: str) -> JsonObject:
    """A router of two pods, beside an engine of which two copies are needed."""
    engine: JsonObject = {
        "name": "engine",
        "cliqueNames": ["leader", "worker"],
        "replicas": 2,
        "minAvailable": 2,
        "scaleConfig": SCALED,
    }
    router = role("router", 2, autoScalingConfig=SCALED)
    return system(name, [router, role("leader", 1), role("worker", 1)], [engine])


def engines(replica: int, *copies: int) -> dict[str, int]:
    return {
        f"walk-{replica}-engine-{copy}-{member}": 1
        for copy in copies
        for member in ("leader", "worker")
    }


def base(replica: int, *copies: int, router: int = 2) -> dict[str, int]:
    return {f"walk-{replica}-router": router, **engines(replica, *copies)}


async def test_a_set_its_groups_and_its_cliques_are_scaled_up_and_down(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    async def scaled(
        what: str,
        replicas: int,
        gangs: dict[str, dict[str, int]],
        names_of: Mapping[Resource, set[str]] | None = None,
    ) -> Parts:
        kubectl.run("scale", *what.split(), f"--replicas={replicas}", check=True)
        return await reached(cluster, "walk", gangs, names_of)

    kubectl.apply(walked("walk"))
    await cluster.service("walk-0")
    first = await reached(cluster, "walk", {"walk-0": base(0, 0, 1)})

    # The set: another replica is all of it once more, and leaves nothing behind.
    both = {
        SERVICES: {"walk-0", "walk-1"},
        AUTOSCALERS: {"walk-0-router", "walk-0-engine", "walk-1-router", "walk-1-engine"},
    }
    await scaled("pcs walk", 2, {"walk-0": base(0, 0, 1), "walk-1": base(1, 0, 1)}, both)
    autoscaled = {AUTOSCALERS: {"walk-0-router", "walk-0-engine"}}
    again = await scaled("pcs walk", 1, {"walk-0": base(0, 0, 1)}, first.names | autoscaled)
    assert {p.metadata.uid for p in again.pods} == {p.metadata.uid for p in first.pods}

    # The group: copies beyond the minimum are gangs, and the last one goes first.
    more = {"walk-0": base(0, 0, 1), "walk-0-engine-0": engines(0, 2)}
    await scaled("pcsg walk-0-engine", 4, {**more, "walk-0-engine-1": engines(0, 3)})
    await scaled("pcsg walk-0-engine", 3, more)
    refused = kubectl.run("scale", "pcsg", "walk-0-engine", "--replicas=1")
    assert "replicas is 1, below minAvailable 2" in refused.stderr
    none = await scaled("pcsg walk-0-engine", 0, {"walk-0": base(0)})
    assert none.names[PODCLIQUES] == {"walk-0-router"}
    assert none.names[SCALING_GROUPS] == {"walk-0-engine"}

    # The set is applied again: what was scaled stays as it is.
    kubectl.apply(walked("walk"))
    await scaled("pclq walk-0-router", 3, {"walk-0": base(0, router=3)})
    await scaled("pcsg walk-0-engine", 2, {"walk-0": base(0, 0, 1, router=3)})

    # The clique: pods come and go in its base gang.
    refused = kubectl.run("scale", "pclq", "walk-0-router", "--replicas=1")
    assert "replicas is 1, below minAvailable 2" in refused.stderr
    await scaled("pclq walk-0-router", 0, {"walk-0": base(0, 0, 1, router=0)})
    phase = "--for=jsonpath={.status.phase}=Running"
    kubectl.run("wait", "pg/walk-0", phase, "--timeout=20s", check=True)

    # A member of a group, by hand: its copy alone grows.
    patch = '{"spec": {"replicas": 2}}'
    member = "walk-0-engine-1-worker"
    kubectl.run("patch", "pclq", member, "--type=merge", "-p", patch, check=True)
    await reached(cluster, "walk", {"walk-0": {**base(0, 0, 1, router=0), member: 2}})


async def test_a_copy_that_finds_no_room_waits_whole_and_leaves_the_others_alone(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Four nodes for four whole-node pods, until one of those that are free is cordoned."""
    label = "outgrown-test"
    nodes = await cluster.label_nodes(label, count=4)
    container: JsonObject = {
        "name": "main", "image": "registry.example/engine:1.0",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }  # fmt: skip
    pod: JsonObject = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {label: "yes"},
    }
    group: JsonObject = {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 1}
    roles: list[Json] = [role(name, 1, podSpec=pod) for name in ("leader", "worker")]
    kubectl.apply(system("grown", roles, [group]))
    base, more = (
        {f"grown-0-engine-{i}-{name}": 1 for name in ("leader", "worker")} for i in (0, 1)
    )
    first = await reached(cluster, "grown", {"grown-0": base})
    taken, free = {*nodes} - {pod.spec.node_name for pod in first.pods}
    await cordon(cluster, taken, unschedulable=True)
    try:
        kubectl.run("scale", "pcsg", "grown-0-engine", "--replicas=2", check=True)
        why = await cluster.gang("grown-0-engine-0", reason=names.REASON_INSUFFICIENT)
        assert "2 pods" in why.message
        await cluster.quiet("pods")
        pods = await cluster.pods("grown", 4)
        assert sum(pod.gates == (names.GATE,) for pod in pods) == 2, f"{free} is for nobody alone"
        await cluster.until(partial(waiting_copy, kubectl), "the group tells which copy waits")
    finally:
        await cordon(cluster, taken, unschedulable=None)
    last = await reached(cluster, "grown", {"grown-0": base, "grown-0-engine-0": more})
    assert {p.metadata.uid for p in first.pods} < {p.metadata.uid for p in last.pods}


async def waiting_copy(kubectl: Kubectl) -> bool | None:
    told = kubectl.run("get", "pcsg", "grown-0-engine", "-o", "wide", check=True).stdout
    return "gang grown-0-engine-0:" in told or None


async def cordon(cluster: Cluster, node: str, *, unschedulable: bool | None) -> None:
    await cluster.client.merge_patch(NODES, node, {"spec": {"unschedulable": unschedulable}})


async def test_of_a_clique_those_pods_go_first_that_have_got_least_far(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    body = walked("picks")
    # One of its pods is hurt by hand.
    body["metadata"] = {"name": "picks", "annotations": {names.UNPROTECTED_ANNOTATION: "true"}}
    kubectl.apply(body)
    gangs = {
        f"picks-0-engine-{copy}-{member}": 1 for copy in (0, 1) for member in ("leader", "worker")
    }
    kubectl.run("wait", "pclq/picks-0-router", "--for=create", "--timeout=20s", check=True)
    kubectl.run("scale", "pclq", "picks-0-router", "--replicas=4", check=True)
    seen = await reached(cluster, "picks", {"picks-0": {"picks-0-router": 4, **gangs}})
    before = seen.of_clique("picks-0-router")
    unready = before[1].metadata.name
    annotation = "lab.penstock.dev/behaviour=never-ready"
    kubectl.run("annotate", "pod", unready, annotation, check=True)
    condition = "--for=condition=ContainersReady=False"
    kubectl.run("wait", f"pod/{unready}", condition, "--timeout=20s", check=True)
    kubectl.run("scale", "pclq", "picks-0-router", "--replicas=3", check=True)
    seen = await reached(cluster, "picks", {"picks-0": {"picks-0-router": 3, **gangs}})
    after = seen.of_clique("picks-0-router")
    assert after.keys() == {0, 2, 3}
    assert all(after[i].metadata.uid == before[i].metadata.uid for i in after)
    # The hole is filled before the row grows longer.
    kubectl.run("scale", "pclq", "picks-0-router", "--replicas=4", check=True)
    seen = await reached(cluster, "picks", {"picks-0": {"picks-0-router": 4, **gangs}})
    assert seen.of_clique("picks-0-router").keys() == {0, 1, 2, 3}


@pytest.fixture
async def values(lab: Lab) -> AsyncIterator[Values]:
    """Values of metrics, by namespace and name; nothing is served once a test is over."""
    told: Values = {}
    clock = SystemClock()
    async with connect(lab.kubeconfig) as client:
        with metrics_api.serving(told.get, clock) as address:
            async with metrics_api.registered(client, address, clock):
                yield told


def queue(name: str, each: int) -> JsonObject:
    """So many waiting requests for each copy."""
    target: JsonObject = {"type": "AverageValue", "averageValue": str(each)}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def latency(kind: str, name: str, seconds: str) -> JsonObject:
    """A latency that an object tells of, to be kept at so many seconds."""
    described: JsonObject = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": name}
    target: JsonObject = {"type": "Value", "value": seconds}
    metric: JsonObject = {"name": "latency"}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": metric, "target": target},
    }


async def test_a_queue_scales_a_group_and_latency_a_clique(
    cluster: Cluster, kubectl: Kubectl, values: Values
) -> None:
    space = cluster.namespace
    by_queue: JsonObject = {"minReplicas": 1, "maxReplicas": 4, "metrics": [queue("waiting", 10)]}
    copies: JsonObject = {"name": "copies", "cliqueNames": ["engine"], "scaleConfig": by_queue}
    kubectl.apply(system("queued", [role("engine", 1)], [copies]))
    metric = latency("PodClique", "slow-0-engine", "200m")
    # At twice the latency it asks for twice as many at each look, and it may look more often.
    by_latency: JsonObject = {"minReplicas": 1, "maxReplicas": 2, "metrics": [metric]}
    kubectl.apply(system("slow", [role("engine", 1, autoScalingConfig=by_latency)]))
    values[f"{space}/waiting"] = "25"
    values[f"{space}/podcliques.grove.io/slow-0-engine/latency"] = "400m"
    base = {"queued-0": {"queued-0-copies-0-engine": 1}}
    grown = {f"queued-0-copies-{i}": {f"queued-0-copies-{i + 1}-engine": 1} for i in (0, 1)}
    await reached(cluster, "queued", {**base, **grown})
    await reached(cluster, "slow", {"slow-0": {"slow-0-engine": 2}})
    values[f"{space}/podcliques.grove.io/slow-0-engine/latency"] = "200m"
    values[f"{space}/waiting"] = "3"
    await reached(cluster, "queued", base)


@pytest.mark.long
async def test_an_autoscaler_of_ones_own_scales_a_set(
    cluster: Cluster, kubectl: Kubectl, values: Values
) -> None:
    values[f"{cluster.namespace}/waiting"] = "29"
    kubectl.apply(system("whole", [role("engine", 2)]))
    kubectl.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "whole"},
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "whole",
                },
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [queue("waiting", 10)],
            },
        }
    )  # fmt: skip
    gangs = {f"whole-{i}": {f"whole-{i}-engine": 2} for i in range(3)}
    await reached(cluster, "whole", gangs)
    values[f"{cluster.namespace}/waiting"] = "19"
    await reached(cluster, "whole", {name: gangs[name] for name in ("whole-0", "whole-1")})
