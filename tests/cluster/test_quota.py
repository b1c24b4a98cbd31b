"""A quota that two sets cannot both fit into: one starts whole, the other waits and says why."""

import pytest

from api import names
from api.objects import condition_of
from api.streams import Custom, Pod
from controller.podgang import Gang, read_gang
from kube.resources import PODGANGS, PODS
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.quotas import limit_pods

pytestmark = pytest.mark.cluster


async def gangs(cluster: Cluster) -> dict[str, Gang]:
    found = await cluster.client.list_pages(PODGANGS, Custom, cluster.namespace)
    read = (read_gang(each) for each in found.items)
    return {gang.metadata.name: gang for gang in read if gang is not None}


async def pods(cluster: Cluster) -> list[Pod]:
    return (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items


def refused(gang: Gang) -> str:
    """What the gang says of a quota."""
    said = condition_of(gang.status.conditions, names.INITIALIZED)
    return said.message if said and said.reason == names.QUOTA_EXCEEDED else ""


async def some_whole(cluster: Cluster, count: int) -> None:
    """Wait until so many gangs are whole."""

    async def attempt() -> bool | None:
        found = await gangs(cluster)
        return sum(gang.initialized for gang in found.values()) == count or None

    await cluster.until(attempt, f"{count} whole gangs")


async def test_of_two_sets_that_a_quota_has_room_for_one_of_one_starts_and_then_the_other(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await limit_pods(cluster, kubectl, 5)
    for name in ("one", "two"):
        kubectl.apply(engine_set(name, pods=4, gpus=1))

    async def decided() -> tuple[str, str] | None:
        found = await gangs(cluster)
        whole = [n for n, gang in found.items() if gang.initialized]
        waiting = [n for n, gang in found.items() if "exceeded quota: few" in refused(gang)]
        there = await pods(cluster)
        return (whole[0], waiting[0]) if len(there) <= 5 and whole and waiting else None

    first, second = (name.removesuffix("-0") for name in await cluster.until(decided, "a winner"))
    await cluster.running(first, gangs=1)
    assert all(names.GATE in p.gates for p in await pods(cluster) if second in p.metadata.name)
    kubectl.delete(first)
    await cluster.running(second, gangs=1)
    assert refused((await gangs(cluster))[f"{second}-0"]) == ""


@pytest.mark.long
async def test_extras_that_a_quota_refuses_keep_nobody_from_starting(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await limit_pods(cluster, kubectl, 3)
    kubectl.apply(engine_set("most", pods=4, gpus=1, minimum=2))
    await cluster.gang("most-0", reason=names.REASON_BOUND)
    assert len(await pods(cluster)) == 3


@pytest.mark.long
async def test_half_made_gangs_of_one_set_do_not_hold_each_other_up(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Room for two gangs of four and a third: as it grows, one after the other becomes whole."""
    await limit_pods(cluster, kubectl, 1)
    kubectl.apply(engine_set("many", pods=3, gpus=1, replicas=4))

    for limit, count in ((7, 2), (9, 3), (12, 4)):
        await limit_pods(cluster, kubectl, limit)
        await some_whole(cluster, count)
    await cluster.running("many", gangs=4)


@pytest.mark.long
async def test_a_gang_that_can_never_fit_does_not_keep_a_smaller_one_waiting(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """It goes first, being older, and gives up its turn when its patience is over."""
    await limit_pods(cluster, kubectl, 4)
    kubectl.apply(engine_set("vast", pods=9, gpus=1))

    async def refuses() -> bool | None:
        found = await gangs(cluster)
        return bool(found and all(map(refused, found.values()))) or None

    await cluster.until(refuses, "the large one refused")
    kubectl.apply(engine_set("tiny", pods=2, gpus=1))
    await cluster.running("tiny", gangs=1)
