"""What the engine does not know of and kube-scheduler refuses: back whole, and tried ever later."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Custom, Pod
from controller.gangs.entries import read_reservation
from kube.cache import Cache, Change, Deleted
from kube.client import Scope
from kube.clock import SystemClock
from kube.resources import PODS, RESERVATIONS, VOLUME_CLAIMS, VOLUMES, Resource
from tests.support.chance import dice
from tests.support.clusterwide import Made, there
from tests.support.living import Cluster, Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.long]

LABEL = "backoff-test"
DRIVER = "volumes.penstock.example"
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
# More than three and a quarter of the gang, which is given up at once then.
STORING = 6
PODS_OF_GANG = STORING + 1
# Seconds for a try: 45 until all are to be bound, and as long again to rest; several times as much.
TRIED = 300.0


def full(node: str) -> Made:
    """What a storage driver says of a node that takes no volume of its own."""
    driver = {"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": 0}}
    return CSI_NODES, node, {"spec": {"drivers": [driver]}}


def volume(claim: str, namespace: str) -> Made:
    """A volume that any number of pods may use on any node, as far as it says itself."""
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
        "csi": {"driver": DRIVER, "volumeHandle": namespace},
        "claimRef": {"namespace": namespace, "name": claim},
    }  # fmt: skip
    return VOLUMES, f"{claim}-{namespace}", {"spec": spec}


def claim(name: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": VOLUME_CLAIMS.api_version, "kind": VOLUME_CLAIMS.kind,
        "metadata": {"name": name},
        "spec": {
            "volumeName": f"{name}-{namespace}", "storageClassName": "",
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
        },
    }  # fmt: skip


def storing_set(name: str, volumes: Json) -> JsonObject:
    """A set of one pod that kube-scheduler binds, and of others that it may refuse."""

    def clique(role: str, replicas: int, more: JsonObject) -> Json:
        pod: JsonObject = {
            "containers": [{"name": "main", "image": "registry.example/engine:1.0"}],
            "nodeSelector": {LABEL: "yes"}, "terminationGracePeriodSeconds": 1, **more,
        }  # fmt: skip
        return {"name": role, "spec": {"roleName": role, "replicas": replicas, "podSpec": pod}}

    cliques = [clique("front", 1, {}), clique("store", STORING, {"volumes": volumes})]
    return {
        "apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": name},
        "spec": {"replicas": 1, "template": {"cliques": cliques}},
    }  # fmt: skip


@dataclass
class Diary:
    """How long each try that was rolled back is to rest, as a watch of Reservations shows it."""

    now: Callable[[], datetime]
    rests: dict[int, timedelta] = field(default_factory=dict)  # by attempt
    said: list[str] = field(default_factory=list)

    def note(self, change: Change[Custom]) -> None:
        found = None if isinstance(change, Deleted) else read_reservation(change.new)
        if found is None or found.state is not State.ROLLED_BACK:
            return
        attempt, status = found.spec.attempt, found.status
        if status.retry_at and attempt not in self.rests:
            self.rests[attempt] = datetime.fromisoformat(status.retry_at) - self.now()
            self.said.append(status.message)


async def pods_of(cluster: Cluster) -> Sequence[Pod]:
    return (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items


async def front(cluster: Cluster) -> Pod:
    """Wait until the pod that nobody refuses is bound."""

    async def attempt() -> Pod | None:
        found = [p for p in await pods_of(cluster) if "front" in p.metadata.name]
        return found[0] if found and found[0].spec.node_name else None

    return await cluster.until(attempt, "the first pod bound")


async def taken_back(cluster: Cluster, uid: str) -> None:
    """Wait until the whole gang is gated again, and the bound pod with this UID is no more."""

    async def attempt() -> bool | None:
        found = await pods_of(cluster)
        gated = [p for p in found if p.gates == (names.GATE,) and not p.spec.node_name]
        gone = uid not in {p.metadata.uid for p in found}
        return (len(gated) == len(found) == PODS_OF_GANG and gone) or None

    await cluster.until(attempt, "all pods gated again", TRIED)


async def test_a_gang_refused_for_what_only_kube_scheduler_knows_goes_back_and_rests_ever_longer(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    nodes = await cluster.label_nodes(LABEL, count=2)
    diary = Diary(SystemClock().now)
    booked = Cache(cluster.client, RESERVATIONS, Custom, dice(), Scope(cluster.namespace))
    booked.subscribe(diary.note)
    watching = asyncio.create_task(booked.run())
    await booked.synced()
    volumes: Json = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    async with there(cluster.client, volume("data", cluster.namespace)):
        kubectl.apply(claim("data", cluster.namespace))
        async with there(cluster.client, *map(full, nodes)):
            kubectl.apply(storing_set("refused", volumes))
            await taken_back(cluster, (await front(cluster)).metadata.uid)
            told = await cluster.gang("refused-0", reason=names.REASON_ROLLED_BACK)
            assert "max volume count" in told.message, "in kube-scheduler's words"
            assert "tried again at" in told.message
            await taken_back(cluster, (await front(cluster)).metadata.uid)

            async def twice() -> bool | None:
                return diary.rests.keys() >= {0, 1} or None

            await cluster.until(twice, "rolled back twice")
        await cluster.running("refused")
        (done,) = await cluster.reservations()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    assert timedelta() < diary.rests[0] < diary.rests[1], "it rests longer each time"
    assert all("max volume count" in said for said in diary.said)
    assert (done.state, done.spec.attempt) == (State.BOUND, 2)
