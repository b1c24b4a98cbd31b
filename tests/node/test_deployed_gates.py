"""Gang scheduling switched off in the chart's own Deployments, by helm alone, and rolled back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from kube.resources import PODS
from penstock.lab.helm import RELEASE, chart
from penstock.lab.realnode import installing
from tests.support.deploying import Deployer
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import of_clique, ordered
from tests.support.realpods import busybox, real_clique

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("deployed")]

ANY_ORDER = "CliqueStartupTypeAnyOrder"
NOWHERE = "example.com/no-such-node"
SWITCHED = 150.0  # seconds; old processes end before new ones lead


@asynccontextmanager
async def switched_off(deployer: Deployer, cluster: Cluster) -> AsyncIterator[None]:
    """Meanwhile gangs are off; then the release is rolled back, and all of it runs again."""
    off = ("--reset-then-reuse-values", "--set", "featureGates.GangScheduling=false")
    await deployer.helm("upgrade", RELEASE, str(chart()), *off)
    try:
        yield
    finally:
        await deployer.helm("rollback", RELEASE)

        async def whole() -> bool | None:
            return not await installing.deployed(cluster.client) or None

        await cluster.until(whole, "all Deployments as they were", SWITCHED)


def half(name: str) -> JsonObject:
    """A set of which one pod could run and the other nowhere."""
    homeless = real_clique("homeless")
    homeless["spec"]["podSpec"]["nodeSelector"] = {NOWHERE: "yes"}  # type: ignore[index,call-overload]
    return ordered(name, ANY_ORDER, [real_clique("able"), homeless])


def labelled(name: str) -> JsonObject:
    """One of nine pods of a plain gang; the others never come."""
    pod = busybox(name, ["sleep", "1000"])
    labels: dict[str, Json] = {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: "9"}
    pod["metadata"]["labels"] = labels  # type: ignore[index,call-overload]
    return pod


def gates(pods: list[Pod]) -> set[str]:
    return {gate for pod in pods for gate in pod.gates}


async def running(cluster: Cluster, name: str) -> str:
    """Wait until the kubelet runs the pod; returns its uid."""

    async def attempt() -> str | None:
        pod = await cluster.client.get(PODS, Pod, name, cluster.namespace)
        return pod.metadata.uid if pod.status.phase == "Running" else None

    return await cluster.until(attempt, f"pod {name} running")


async def containers(cluster: Cluster, *sets: str) -> dict[str, list[tuple[str, int]]]:
    """Which containers run for these sets, by their pod's uid: begun anew, they have other ids."""
    label = f"{names.PART_OF_LABEL} in ({','.join(sets)})"
    raw = await cluster.client.raw_get(
        f"{PODS.path(cluster.namespace)}?labelSelector={quote(label)}"
    )
    return {
        pod["metadata"]["uid"]: [
            (each["containerID"], each["restartCount"])
            for each in pod["status"].get("containerStatuses", ())
        ]
        for pod in msgspec.json.decode(raw)["items"]
    }


async def test_switched_off_by_helm_it_stands_aside_and_rolled_back_gangs_are_whole_again(
    cluster: Cluster, kubectl: Kubectl, deployer: Deployer
) -> None:
    kubectl.apply(ordered("runs", ANY_ORDER, [real_clique("a"), real_clique("b")]))
    await cluster.running("runs")
    before = await containers(cluster, "runs")
    assert len(before) == 2
    kubectl.apply(half("waits"))
    assert gates(await cluster.pods("waits", 2)) == {names.GATE}

    async with switched_off(deployer, cluster):
        kubectl.apply(labelled("unmarked"))
        await running(cluster, "unmarked")

        async def let_go() -> list[Pod] | None:
            pods = await cluster.pods("waits", 2)
            return None if gates(pods) else pods

        pods = await cluster.until(let_go, "pods of waits let go", SWITCHED)
        (able,) = of_clique(pods, "waits-0-able")
        await running(cluster, able.metadata.name)
        assert await containers(cluster, "runs") == before
        held = await containers(cluster, "runs", "waits")

    kubectl.apply(ordered("after", ANY_ORDER, [real_clique("a"), real_clique("b")]))
    kubectl.apply(half("held"))
    kubectl.apply(labelled("marked"))
    await cluster.running("after")
    placed = await cluster.pods("after", 2)
    assert all(names.RELEASED_ANNOTATION not in pod.metadata.annotations for pod in placed)
    assert "after-0" in [each.metadata.name for each in await cluster.reservations()]
    assert {pod.gates for pod in await cluster.pods("held", 2)} == {(names.GATE,)}
    marked = await cluster.client.get(PODS, Pod, "marked", cluster.namespace)
    assert marked.gates == (names.GATE,)
    assert await containers(cluster, "runs", "waits") == held, "nobody takes them back"
