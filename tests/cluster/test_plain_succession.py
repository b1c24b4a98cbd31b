"""`kill -9` of `gangs` between any two writes for labelled pods: a successor goes on."""

import asyncio
from functools import partial

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Custom, Pod
from controller.podgang import read_gang
from kube.errors import NotFound
from kube.resources import PODGANGS, PODS
from tests.cluster.test_succession import (
    Instant,
    Killing,
    eventually_bound,
    gangs,
    killing,
    lifts,
    named,
    nothing,
    reports,
    without_gangs,
)
from tests.support.living import Cluster, Kubectl

__all__ = ["killing", "without_gangs"]

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(420)]


def makes_podgangs(write: str) -> bool:
    return write.startswith("POST") and "/podgangs" in write


def amends_podgangs(write: str) -> bool:
    return write.startswith("PATCH") and "/podgangs/" in write and not reports(write)


INSTANTS = (
    Instant("its PodGang is made", makes_podgangs),
    Instant("its PodGang names the pod that makes it whole", amends_podgangs),
    Instant("it is said to be whole", reports),
    Instant("two of three are lifted", lifts, 2),
    Instant("its PodGang names a successor", amends_podgangs, 2),
)


@pytest.mark.parametrize("instant", INSTANTS, ids=named)
async def test_killed_while_labelled_pods_become_a_gang_its_successor_goes_on(
    instant: Instant, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """Two pods wait, the third makes them whole, and a fourth follows one of them."""
    for index in range(2):
        kubectl.apply(labelled("crew", index))

    async def live() -> None:
        await cluster.until(partial(referred, cluster, "crew", 2), "a PodGang of two")
        kubectl.apply(labelled("crew", 2))
        await on_nodes(cluster, "crew", 3)
        kubectl.run("delete", "pod", "crew-1", "--wait=false", check=True)
        kubectl.apply(labelled("crew", 3))

    living = asyncio.ensure_future(live())

    async def done() -> None:
        await asyncio.shield(living)  # it goes on while nobody leads
        await on_nodes(cluster, "crew", 3, but="crew-1")

    assert await killing.at(instant, nothing, done)
    async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
        await done()
        await eventually_bound(cluster, "crew")
        (booked,) = await cluster.reservations()
        pods = await on_nodes(cluster, "crew", 3)
        assert booked.size == 3
        assert {slot.node for _, slot, _ in booked.slots()} == {p.spec.node_name for p in pods}
        kubectl.run("delete", "pods", "--all", "--wait=false", check=True)
        await cluster.gone("podgang", "crew")
        await cluster.gone("reservation", "crew")


def labelled(gang: str, index: int) -> JsonObject:
    """A pod of a gang of three, each of which takes a whole node."""
    labels: JsonObject = {names.GANG_LABEL: gang, names.GANG_SIZE_LABEL: "3"}
    limits: JsonObject = {"nvidia.com/gpu": "8"}
    main: JsonObject = {"name": "main", "image": "main", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{gang}-{index}", "labels": labels},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 0},
    }


async def referred(cluster: Cluster, name: str, count: int) -> bool | None:
    try:
        gang = read_gang(await cluster.client.get(PODGANGS, Custom, name, cluster.namespace))
    except NotFound:
        return None
    return (gang is not None and len(list(gang.references())) == count) or None


async def on_nodes(cluster: Cluster, gang: str, count: int, *, but: str = "") -> list[Pod]:
    """Wait until so many pods of a plain gang are bound, none of them of this name."""
    label = f"{names.GANG_LABEL}={gang}"

    async def attempt() -> list[Pod] | None:
        found = (await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=label)).items
        there = all(pod.spec.node_name and pod.metadata.name != but for pod in found)
        return found if len(found) == count and there else None

    return await cluster.until(attempt, f"{count} bound pods of {gang}")
