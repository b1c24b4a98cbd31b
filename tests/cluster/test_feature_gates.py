"""Penstock switched off and on again: gated pods are let go, and those that run never notice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from api.streams import Custom, Pod
from controller.gangs import freeing
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODS
from penstock.lab.install import InstallOptions
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SWITCHED = 150.0  # seconds; it takes about twenty
GANGS_OFF = InstallOptions(feature_gates="GangScheduling=false", timeout=SWITCHED)
SETS_OFF = InstallOptions(feature_gates="GroveIntegration=false", timeout=SWITCHED)
NOWHERE = "example.com/no-such-node"
Switch = Callable[[InstallOptions], Awaitable[object]]


@pytest.fixture
async def switch(installed: Installed, cluster: Cluster) -> AsyncIterator[Switch]:
    """Install with other gates, and as it was once the test is over."""
    yield installed.again
    await installed.again()


def labelled(name: str, size: int, **spec: Json) -> JsonObject:
    """A pod of a plain gang, which is Ready only with its gang."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: str(size)},
            "annotations": {names.READINESS_GATE_ANNOTATION: "true"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "registry.example/train:1"}],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


async def pod(cluster: Cluster, name: str, *, ready: bool = False) -> Pod:
    """Wait until the pod has lost our gate, and is Ready if asked for."""

    async def attempt() -> Pod | None:
        found = await cluster.client.get(PODS, Pod, name, cluster.namespace)
        is_ready = any(c.type == "Ready" and c.status == "True" for c in found.status.conditions)
        return found if names.GATE not in found.gates and (is_ready or not ready) else None

    return await cluster.until(attempt, f"pod {name} let go")


async def let_go(cluster: Cluster, set_name: str, count: int) -> list[Pod]:
    """Wait until no pod of the set is gated."""

    async def attempt() -> list[Pod] | None:
        pods = await cluster.pods(set_name, count)
        return pods if not any(names.GATE in pod.gates for pod in pods) else None

    return await cluster.until(attempt, f"pods of {set_name} let go")


async def bound(cluster: Cluster, set_name: str, count: int) -> list[Pod]:
    """Wait until every pod of the set is bound."""

    async def attempt() -> list[Pod] | None:
        pods = await cluster.pods(set_name, count)
        return pods if all(pod.spec.node_name for pod in pods) else None

    return await cluster.until(attempt, f"pods of {set_name} bound")


def who(pods: list[Pod]) -> dict[str, str]:
    return {pod.metadata.uid: pod.spec.node_name for pod in pods}


async def test_without_gang_scheduling_pods_run_ungated_and_with_it_gangs_are_whole_again(
    cluster: Cluster, kubectl: Kubectl, switch: Switch
) -> None:
    kubectl.apply(engine_set("runs", pods=2, gpus=1))
    await cluster.running("runs")
    before = who(await cluster.pods("runs", 2))
    kubectl.apply(engine_set("waits", pods=2, gpus=1, selector=NOWHERE))
    kubectl.apply(labelled("lonely", 2))
    waiting = who(await cluster.pods("waits", 2))

    await switch(GANGS_OFF)
    assert all(freeing.is_free(pod) for pod in await let_go(cluster, "waits", 2))
    assert freeing.is_free(await pod(cluster, "lonely", ready=True)), "Ready without its gang"
    said = await cluster.gang("waits-0", reason=names.REASON_GANGS_OFF)
    assert "switched off" in said.message
    kubectl.apply(engine_set("fresh", pods=2, gpus=1))
    fresh = await bound(cluster, "fresh", 2)
    never_gated = "GangScheduling=false"
    assert {p.metadata.annotations[names.RELEASED_ANNOTATION] for p in fresh} == {never_gated}
    kubectl.apply(labelled("late", 9))
    assert not freeing.is_free(await pod(cluster, "late")), "never gated"
    assert await cluster.reservations() == []

    await switch(InstallOptions())
    kubectl.apply(engine_set("after", pods=2, gpus=1))
    await cluster.running("after")
    assert [r.metadata.name for r in await cluster.reservations()] == ["after-0"]
    await cluster.gang("runs-0", reason=names.REASON_BOUND)
    kubectl.apply(engine_set("held", pods=1, gpus=1, selector=NOWHERE))
    assert [pod.gates for pod in await cluster.pods("held", 1)] == [(names.GATE,)]
    assert who(await cluster.pods("runs", 2)) == before
    assert who(await cluster.pods("waits", 2)) == waiting, "nobody takes them back"
    assert who(await cluster.pods("fresh", 2)) == who(fresh)


async def test_without_the_grove_kinds_sets_are_let_go_and_labelled_pods_stay_gangs(
    cluster: Cluster, kubectl: Kubectl, switch: Switch
) -> None:
    kubectl.apply(engine_set("runs", pods=2, gpus=1))
    await cluster.running("runs")
    before = who(await cluster.pods("runs", 2))
    kubectl.apply(engine_set("waits", pods=2, gpus=1, selector=NOWHERE))
    kubectl.apply(labelled("half", 2))
    await cluster.pods("waits", 2)

    await switch(SETS_OFF)
    await let_go(cluster, "waits", 2)
    half = await cluster.client.get(PODS, Pod, "half", cluster.namespace)
    assert half.gates == (names.GATE,), "a plain gang waits on"
    kubectl.apply(labelled("other-half", 2))
    for name in ("half", "other-half"):
        assert not freeing.is_free(await pod(cluster, name, ready=True))
    refused = kubectl.run(
        "create", "-f", "-", text=yaml.safe_dump(engine_set("new", pods=1, gpus=1))
    )
    assert "sets are switched off here" in refused.stderr

    async def no_finalizers() -> bool | None:
        for kind in (PODCLIQUESETS, PODCLIQUES):
            found = await cluster.client.list_pages(kind, Custom, cluster.namespace)
            if any(each.metadata.finalizers for each in found.items):
                return None
        return True

    await cluster.until(no_finalizers, "finalizers off")
    assert who(await cluster.pods("runs", 2)) == before
    kubectl.delete("waits")
    await cluster.pods("waits", 0)

    await switch(InstallOptions())
    assert who(await cluster.pods("runs", 2)) == before
    kubectl.apply(engine_set("after", pods=2, gpus=1))
    await cluster.running("after")


async def test_killed_while_it_lets_pods_go_it_lets_the_rest_go(
    cluster: Cluster, kubectl: Kubectl, switch: Switch, installed: Installed
) -> None:
    kubectl.apply(engine_set("many", pods=200, gpus=0, selector=NOWHERE))
    await cluster.pods("many", 200)

    async def some() -> int | None:
        pods = await cluster.pods("many", 200)
        return sum(freeing.is_free(pod) for pod in pods) or None

    # However this ends, nobody else may install before the first has ended.
    async with asyncio.TaskGroup() as group:
        group.create_task(installed.again(GANGS_OFF))
        await cluster.until(some, "some let go", SWITCHED)
        installed.installation.kill_component("gangs")
        installed.installation.start_component("gangs")
    pods = await let_go(cluster, "many", 200)
    assert all(freeing.is_free(pod) for pod in pods)
