"""More gangs than there is room for: some whole, none in part, and the others next in line."""

import pytest

from api import names
from api.objects import condition_of
from api.streams import Custom, Pod
from controller.podgang import Gang, read_gang
from kube.resources import PODGANGS, PODS
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NODES = 12
GANGS = [f"over-{number}" for number in range(10)]
FIT = 6  # of two pods that take a node each


async def standing(cluster: Cluster) -> tuple[dict[str, list[Pod]], dict[str, Gang]]:
    """Give the pods by set, and the gangs likewise."""
    pods: dict[str, list[Pod]] = {}
    for pod in (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items:
        pods.setdefault(pod.metadata.labels[names.PART_OF_LABEL], []).append(pod)
    found = (await cluster.client.list_pages(PODGANGS, Custom, cluster.namespace)).items
    gangs = [gang for gang in map(read_gang, found) if gang is not None]
    return pods, {gang.metadata.name.removesuffix("-0"): gang for gang in gangs}


async def settled(cluster: Cluster, sets: list[str], running: int) -> tuple[list[str], list[str]]:
    """Wait until so many run whole and all others say why not; gives both."""

    async def attempt() -> tuple[list[str], list[str]] | None:
        pods, gangs = await standing(cluster)
        whole = [s for s in sets if [bool(p.spec.node_name) for p in pods.get(s, [])] == [True] * 2]
        waiting = [s for s in sets if s in gangs and _short(gangs[s])]
        done = len(whole) == running and len(whole + waiting) == len(sets)
        return (whole, waiting) if done else None

    whole, waiting = await cluster.until(attempt, f"{running} of {len(sets)} gangs", 90)
    pods, _ = await standing(cluster)
    for name in waiting:
        assert [pod.gates for pod in pods[name]] == [(names.GATE,)] * 2, f"{name} is there in part"
    held = {r.metadata.name.removesuffix("-0") for r in await cluster.reservations()}
    assert held == set(whole), "nobody who waits holds room"
    return whole, waiting


def _short(gang: Gang) -> bool:
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    return said is not None and said.reason == names.REASON_INSUFFICIENT and "gpu" in said.message


async def test_as_many_run_whole_as_fit_and_the_others_follow_in_order(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("over-test", count=NODES)
    for name in GANGS:
        kubectl.apply(engine_set(name, pods=2, gpus=8, selector="over-test"))
    whole, waiting = await settled(cluster, GANGS, FIT)
    left = list(GANGS)
    for done in range(2):
        gone = whole[done]
        kubectl.delete(gone)
        left.remove(gone)
        after, still = await settled(cluster, left, FIT)
        (next_in_line,) = set(after) - set(whole)
        assert next_in_line == min(waiting, key=GANGS.index), "the oldest of those that waited"
        whole, waiting = [*whole, next_in_line], still
