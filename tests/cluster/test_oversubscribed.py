"""More gangs than there is room for: some whole, none in part, and the others next in line."""

import asyncio
from datetime import datetime

import pytest

from api import names
from api.objects import condition_of
from api.streams import Custom, Pod
from controller.podgang import Gang, read_gang
from kube.resources import PODCLIQUESETS, PODGANGS, PODS
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NODES = 15  # of 8 GPUs
GANGS = [f"over-{number:02}" for number in range(100)]
FIT = 60  # of two pods that take a GPU each
GONE = (1, 10)  # how many are taken away at a time
PATIENCE = 120.0


async def standing(cluster: Cluster) -> tuple[dict[str, list[Pod]], dict[str, Gang]]:
    """Give the pods by set, and the gangs likewise."""
    pods: dict[str, list[Pod]] = {}
    for pod in (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items:
        pods.setdefault(pod.metadata.labels[names.PART_OF_LABEL], []).append(pod)
    found = (await cluster.client.list_pages(PODGANGS, Custom, cluster.namespace)).items
    gangs = [gang for gang in map(read_gang, found) if gang is not None]
    return pods, {gang.metadata.name.removesuffix("-0"): gang for gang in gangs}


async def settled(cluster: Cluster, sets: list[str]) -> tuple[set[str], list[str]]:
    """Wait until as many run whole as fit and all others say why not; gives both, in line."""

    async def attempt() -> tuple[set[str], list[Gang]] | None:
        pods, gangs = await standing(cluster)
        whole = {s for s in sets if [bool(p.spec.node_name) for p in pods.get(s, [])] == [True] * 2}
        waiting = [gangs[s] for s in sets if s in gangs and _short(gangs[s])]
        done = len(whole) == FIT and len(whole) + len(waiting) == len(sets)
        return (whole, waiting) if done else None

    whole, waiting = await cluster.until(attempt, f"{FIT} of {len(sets)} gangs", PATIENCE)
    line = [g.metadata.name.removesuffix("-0") for g in sorted(waiting, key=_turn)]
    pods, _ = await standing(cluster)
    for name in line:
        assert [pod.gates for pod in pods[name]] == [(names.GATE,)] * 2, f"{name} is there in part"
        assert not any(pod.status.nominated_node_name for pod in pods[name]), f"{name} holds room"
    held = {r.metadata.name.removesuffix("-0") for r in await cluster.reservations()}
    assert held == whole, "nobody who waits holds room"
    return whole, line


def _short(gang: Gang) -> bool:
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    return said is not None and said.reason == names.REASON_INSUFFICIENT and "gpu" in said.message


def _turn(gang: Gang) -> tuple[datetime, str]:
    made = gang.metadata.creation_timestamp
    assert made is not None
    return made, gang.metadata.name


async def test_as_many_run_whole_as_fit_and_the_others_follow_in_order(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("over-test", count=NODES)
    bodies = [engine_set(name, pods=2, gpus=1, selector="over-test") for name in GANGS]
    await asyncio.gather(
        *(cluster.client.create(PODCLIQUESETS, body, cluster.namespace) for body in bodies)
    )
    left = list(GANGS)
    whole, line = await settled(cluster, left)
    for count in GONE:
        gone = sorted(whole)[:count]
        for name in gone:
            kubectl.delete(name)
        left = [name for name in left if name not in gone]
        after, still = await settled(cluster, left)
        assert after == (whole - set(gone)) | set(line[:count]), "the oldest of those that waited"
        assert still == line[count:]
        whole, line = after, still
