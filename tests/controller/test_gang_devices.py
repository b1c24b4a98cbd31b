"""Devices and local volumes are counted from what is streamed, and gangs are kept from the rest."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.quantities import Amounts
from controller.gangs.asking import request
from controller.gangs.supplies import Sources
from controller.gangs.topologies import BUILT_IN
from kube.resources import (
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.clusters import node
from tests.support.gangscene import Scene, encoded, gang_of, scene
from tests.support.sets import member, pod_clique

GPU = "gpu.example.com"
GPUS = f"devices.penstock.dev/{GPU}"
DISKS = "volumes.penstock.dev:local 10Gi, ReadWriteOnce"
HOST = names.HOSTNAME_KEY


@dataclass
class Told:
    """A scene that is told of objects one after another."""

    scene: Scene
    sources: Sources
    version: int = 100

    def stored(self, raw: JsonObject, name: str, **more: Json) -> bytes:
        self.version += 1
        meta: JsonObject = {"name": name, "namespace": "default", **more}
        return encoded({"metadata": meta, **raw}, self.version)

    def device_class(self) -> None:
        rule: Json = {"cel": {"expression": f'device.driver == "{GPU}"'}}
        raw: JsonObject = {"spec": {"selectors": [rule]}}
        self.sources.device_classes.observe(self.stored(raw, GPU, namespace=""))

    def slice(self, count: int, **where: Json) -> None:
        devices: Json = [{"name": f"d{i}"} for i in range(count)]
        spec: JsonObject = {
            "driver": GPU,
            "pool": {"name": "n1"},
            "devices": devices,
            **(where or {"nodeName": "n1"}),
        }
        self.sources.slices.observe(self.stored({"spec": spec}, "slice-1", namespace=""))

    def template(self, count: int) -> None:
        raw: JsonObject = {"spec": {"spec": asking(count)}}
        self.sources.templates.observe(self.stored(raw, "gpus"))

    def claim(self, name: str, count: int, *given: int) -> None:
        results: Json = [{"driver": GPU, "pool": "n1", "device": f"d{i}"} for i in given]
        status: JsonObject = {"allocation": {"devices": {"results": results}}} if given else {}
        raw: JsonObject = {"spec": asking(count), "status": status}
        self.sources.devices.observe(self.stored(raw, name))

    def pod(self, index: int, *, gated: bool = True, home: str = "", **spec: Json) -> None:
        self.version += 1
        raw = msgspec.to_builtins(member("a", index, gated=gated, node=home))
        raw["spec"] |= spec
        self.scene.pods.observe(encoded(raw, self.version))

    @property
    def snapshot(self) -> Snapshot:
        return self.scene.world.stockroom.snapshot([BUILT_IN.levels])

    def free(self, resource: str = GPUS) -> int:
        found = self.snapshot
        if resource not in found.resources:
            return 0
        return int(found.free[found.row_of["n1"], found.resources.index(resource)])

    def asked(self, *pods: str) -> GangRequest:
        self.version += 1
        self.scene.gangs.observe(msgspec.json.encode(gang_of("demo-0", [*pods], self.version)))
        view, step = self.scene.asked()
        return request(view, step, self.scene.world.around(view.gang))

    def takes(self, *pods: str, resource: str = GPUS) -> list[int]:
        asked = self.asked(*pods)
        return [_of(want.need, resource) for want in (*asked.minimum, *asked.extras)]


def plural(kind: Resource) -> str:
    return kind.plural


def _of(need: Amounts, resource: str) -> int:
    return need.get(resource, 0)


def asking(count: int) -> JsonObject:
    exactly: Json = {"deviceClassName": GPU, "count": count}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


FROM_TEMPLATE: Json = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]


def naming(claim: str) -> Json:
    return [{"name": "gpus", "resourceClaimName": claim}]


@asynccontextmanager
async def told() -> AsyncIterator[Told]:
    async with scene() as (made, _, _):
        sources = Sources.of(made.client, dice())
        made.world.follow(sources)
        yield Told(made, sources)


async def test_a_node_has_the_devices_of_its_slices_less_those_given_away() -> None:
    async with told() as it:
        it.slice(8)
        assert it.free() == 0
        it.device_class()
        assert it.free() == 8
        it.claim("given", 3, 0, 1, 2)
        assert it.free() == 5
        it.slice(6)
        assert it.free() == 3
        it.claim("given", 3)
        assert it.free() == 6


async def test_devices_stay_with_their_node_while_it_changes_goes_and_comes() -> None:
    async with told() as it:
        it.device_class()
        it.slice(4)
        it.claim("given", 1, 0)
        for version, labels in ((500, {"a": "1"}), (501, {"a": "2"})):
            it.scene.nodes.observe(encoded(node("n1", labels=labels), version))
            assert it.free() == 3
        assert int(it.snapshot.capacity.max(axis=0)[it.snapshot.resources.index(GPUS)]) == 4


async def test_devices_of_all_nodes_follow_nodes_that_come_later() -> None:
    async with told() as it:
        it.device_class()
        it.slice(4, allNodes=True)
        it.scene.nodes.observe(encoded(node("n2"), 500))
        column = it.snapshot.resources.index(GPUS)
        assert it.snapshot.free[:, column].tolist() == [4, 4]
        it.claim("given", 1, 0)
        assert it.snapshot.free[:, column].tolist() == [3, 3]


async def test_pods_take_what_their_templates_say_until_their_claims_are_met() -> None:
    async with told() as it:
        it.device_class()
        it.slice(8)
        it.template(2)
        it.pod(0, resourceClaims=FROM_TEMPLATE)
        assert it.takes("a-0") == [2]


async def test_a_bound_pod_takes_its_devices_also_before_its_claim_is_seen_to_be_met() -> None:
    async with told() as it:
        it.device_class()
        it.slice(8)
        it.template(2)
        it.claim("mine", 3)
        it.pod(0, gated=False, home="n1", resourceClaims=naming("mine"))
        assert it.free() == 5
        it.claim("mine", 3, 0, 1, 2)
        assert it.free() == 5


async def test_of_a_claim_that_pods_share_the_first_takes_all_and_all_go_to_one_node() -> None:
    async with told() as it:
        it.device_class()
        it.slice(8)
        it.claim("both", 2)
        it.scene.cliques.observe(encoded(pod_clique("a", 2), 300))
        for index in range(3):
            it.pod(index, resourceClaims=naming("both"))
        pods = ("a-0", "a-1", "a-2")
        assert it.takes(*pods) == [2, 0, 0]
        (group,) = it.asked(*pods).groups
        assert (group.cliques, group.near.required) == (("a",), HOST)


@pytest.mark.parametrize("why", ["from everywhere", "not by all"])
async def test_pods_that_share_a_claim_may_part_where_nothing_ties_them(why: str) -> None:
    async with told() as it:
        it.device_class()
        it.slice(8, **({"allNodes": True} if why == "from everywhere" else {"nodeName": "n1"}))
        it.claim("both", 2)
        for index in range(3):
            alone = why == "not by all" and index == 2
            it.pod(index, resourceClaims=[] if alone else naming("both"))
        assert it.asked("a-0", "a-1", "a-2").groups == ()


async def test_what_is_shared_with_a_pod_that_has_its_place_is_taken_there_already() -> None:
    async with told() as it:
        it.device_class()
        it.slice(8)
        it.claim("both", 2)
        it.pod(0, gated=False, home="n1", resourceClaims=naming("both"))
        it.pod(1, resourceClaims=naming("both"))
        assert it.takes("a-0", "a-1") == [0]
        assert it.free() == 6


async def test_local_volumes_are_counted_for_claims_that_wait() -> None:
    async with told() as it:
        it.scene.nodes.observe(encoded(node("n1", labels={HOST: "n1"}), 500))
        kind: JsonObject = {
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        here: Json = {"key": HOST, "operator": "In", "values": ["n1"]}
        spec: JsonObject = {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "20Gi"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        free: JsonObject = {"phase": "Available"}
        it.sources.volumes.observe(
            it.stored({"spec": spec, "status": free}, "disk-1", namespace="")
        )
        wanted: JsonObject = {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        }
        it.sources.claims.observe(it.stored({"spec": wanted}, "data"))
        data: Json = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        it.pod(0, volumes=data)
        it.sources.classes.observe(it.stored(kind, "local", namespace=""))
        assert it.free(DISKS) == 1
        assert it.takes("a-0", resource=DISKS) == [1]
        it.pod(1, gated=False, home="n1", volumes=data)
        assert it.free(DISKS) == 0
        kept: JsonObject = {**spec, "claimRef": {"namespace": "default", "name": "data"}}
        it.sources.volumes.observe(
            it.stored({"spec": kept, "status": {"phase": "Bound"}}, "disk-1", namespace="")
        )
        assert it.free(DISKS) == 0


@pytest.mark.parametrize(
    "kind", [RESOURCE_CLAIMS, CLAIM_TEMPLATES, DEVICE_SLICES, DEVICE_CLASSES], ids=plural
)
async def test_where_a_kind_of_devices_is_not_served_they_are_left(kind: Resource) -> None:
    async with told() as it:
        it.template(2)
        it.pod(0, resourceClaims=FROM_TEMPLATE)
        it.sources.missing.add(kind)
        (want,) = it.asked("a-0").minimum
        assert want.constraints.left == ("devices",)
        assert it.snapshot.masks.mask(want.constraints).all()


@pytest.mark.parametrize("kind", [VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES], ids=plural)
async def test_where_a_kind_of_volumes_is_not_served_they_are_left(kind: Resource) -> None:
    async with told() as it:
        notes: Json = {"pv.kubernetes.io/bind-completed": "yes"}
        bound: JsonObject = {"spec": {"volumeName": "disk"}}
        waiting: JsonObject = {"spec": {"storageClassName": "lazy"}}
        if kind is VOLUMES:
            it.sources.claims.observe(it.stored(bound, "data", annotations=notes))
        else:
            it.sources.claims.observe(it.stored(waiting, "data"))
        it.pod(0, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        (want,) = it.asked("a-0").minimum
        assert not it.snapshot.masks.mask(want.constraints).any()
        it.sources.missing.add(kind)
        (want,) = it.asked("a-0").minimum
        assert want.constraints.left == ("volumes",)
        assert it.snapshot.masks.mask(want.constraints).all()


async def test_refused_gangs_try_again_when_devices_may_have_come_free() -> None:
    async with told() as it:
        world = it.scene.world
        before = world.room
        it.device_class()
        it.slice(8)
        it.template(1)
        it.claim("a", 1)
        assert world.room == before + 4
        it.claim("a", 1, 0)  # what is given makes no room
        assert world.room == before + 4
        it.claim("a", 1)
        assert world.room == before + 5


async def test_kinds_that_are_refused_to_us_are_known_to_be_missing() -> None:
    async with scene() as (made, api, client):
        sources = Sources.of(made.client, dice())
        api.answers += [fakeapi.status(403, "Forbidden", "not you")] * 9
        await sources.settled(client)
        assert {kind.plural for kind in sources.missing} == {
            "clustertopologybindings", "daemonsets", "persistentvolumeclaims", "persistentvolumes",
            "storageclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices",
            "deviceclasses",
        }  # fmt: skip
        assert not sources.known(DEVICE_SLICES)
