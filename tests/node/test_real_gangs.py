"""Gangs of real containers: startup order in both ways, and readiness gates."""

import json
from datetime import datetime

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from penstock.lab.images.penstock import Made
from penstock.lab.realnode.addresses import NODE_NAME
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import of_clique, ordered, said, since, when
from tests.support.realpods import real_clique

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("deployed")]

IN_ORDER = "CliqueStartupTypeInOrder"
SLOW = 4


def started(kubectl: Kubectl, pod: Pod, container: str = "main") -> tuple[datetime, datetime]:
    """When a container of a pod began and, if it has, when it ended, as its runtime says it."""
    words = ("get", "pod", pod.metadata.name, "-o", "json")
    status = json.loads(kubectl.run(*words, check=True).stdout)["status"]
    every = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    (state,) = (each["state"] for each in every if each["name"] == container)
    (times,) = state.values()
    begun = datetime.fromisoformat(times["startedAt"])
    return begun, datetime.fromisoformat(times.get("finishedAt", times["startedAt"]))


async def test_behind_the_gate_a_container_begins_when_those_before_it_are_ready(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    cliques = [real_clique("first", replicas=2, slow=SLOW), real_clique("second")]
    kubectl.apply(ordered("line", IN_ORDER, list(cliques)))
    pods = await when(cluster, "line", 3, ready=["line-0-first", "line-0-second"])
    assert {pod.spec.node_name for pod in pods} == {NODE_NAME}
    (second,) = of_clique(pods, "line-0-second")
    up = max(since(pod, "ContainersReady") for pod in of_clique(pods, "line-0-first"))
    assert started(kubectl, second)[0] >= up
    assert kubectl.run("logs", second.metadata.name).stdout == "second is up\n"


async def test_in_an_init_container_a_pod_waits_on_its_node_by_our_own_waiter(
    cluster: Cluster, kubectl: Kubectl, deployed: Made
) -> None:
    cliques = [real_clique("first", replicas=2, slow=SLOW), real_clique("second")]
    body = ordered("queue", IN_ORDER, list(cliques))
    notes: JsonObject = {"penstock.dev/startup": "init"}
    body["metadata"]["annotations"].update(notes)  # type: ignore[index,union-attr,call-overload]
    kubectl.apply(body)
    pods = await when(cluster, "queue", 3, ready=["queue-0-first", "queue-0-second"])
    (second,) = of_clique(pods, "queue-0-second")
    waiter = names.WAITER
    began, ended = started(kubectl, second, waiter)
    up = max(since(pod, "ContainersReady") for pod in of_clique(pods, "queue-0-first"))
    assert began < up <= ended <= started(kubectl, second)[0]
    image = "jsonpath={.spec.initContainers[*].image}"
    shown = kubectl.run("get", "pod", second.metadata.name, "-o", image)
    assert shown.stdout == deployed.waiter
    assert "2" in kubectl.run("logs", second.metadata.name, "-c", waiter).stdout


async def test_pods_become_ready_with_their_gang_where_they_ask_for_it(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    asks: JsonObject = {names.READINESS_GATE_ANNOTATION: "true"}
    cliques = [real_clique("quick", notes=asks), real_clique("slow", slow=SLOW, notes=asks)]
    kubectl.apply(ordered("herd", "CliqueStartupTypeAnyOrder", list(cliques)))

    async def all_ready() -> list[Pod] | None:
        pods = await cluster.pods("herd", 2)
        ready = [said(pod, "Ready") for pod in pods]
        return pods if all(each and each.status == "True" for each in ready) else None

    pods = await cluster.until(all_ready, "all of the herd ready")
    (quick,), (slow,) = (of_clique(pods, f"herd-0-{name}") for name in ("quick", "slow"))
    assert since(quick, "ContainersReady") < since(slow, "ContainersReady")
    assert since(quick, "Ready") >= since(slow, "ContainersReady")
