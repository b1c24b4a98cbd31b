"""Pods that ask for it become ready with their gang, and those that come later at once."""

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.resources import PODS
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import (
    NEVER_READY,
    clique,
    let_be_ready,
    of_clique,
    ordered,
    said,
    since,
    when,
)

pytestmark = pytest.mark.cluster

ASKS: JsonObject = {names.READINESS_GATE_ANNOTATION: "true"}


async def told(cluster: Cluster, count: int) -> list[Pod]:
    """Wait until all pods were told that their gang is ready."""

    async def attempt() -> list[Pod] | None:
        pods = await cluster.pods("herd", count)
        conditions = [said(pod, names.READINESS_GATE) for pod in pods]
        return pods if all(c is not None and c.status == "True" for c in conditions) else None

    return await cluster.until(attempt, "all pods told")


async def test_pods_are_told_when_the_last_clique_is_up_and_successors_at_once(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    cliques = [clique("a", replicas=2, notes=ASKS), clique("b", notes={**ASKS, **NEVER_READY})]
    kubectl.apply(ordered("herd", "CliqueStartupTypeAnyOrder", cliques))
    pods = await when(cluster, "herd", 3, ready=["herd-0-a"])
    await cluster.gang("herd-0", reason=names.REASON_BOUND)
    assert [said(pod, names.READINESS_GATE) for pod in pods] == [None] * 3
    await let_be_ready(cluster, of_clique(pods, "herd-0-b"))
    pods = await told(cluster, 3)
    up = max(since(pod, "ContainersReady") for pod in pods)
    assert all(since(pod, names.READINESS_GATE) >= up for pod in pods)
    (last,) = of_clique(pods, "herd-0-b")
    await cluster.client.delete(PODS, last.metadata.name, cluster.namespace)

    async def successor() -> Pod | None:
        found = of_clique(await cluster.pods("herd", 3), "herd-0-b")
        new = [pod for pod in found if pod.metadata.uid != last.metadata.uid]
        condition = said(new[0], names.READINESS_GATE) if new else None
        return new[0] if condition is not None and condition.status == "True" else None

    found = await cluster.until(successor, "its successor told")
    assert not found.containers_ready, "its clique is not up again, and need not be"
