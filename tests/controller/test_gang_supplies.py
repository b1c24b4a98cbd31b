"""What the engine is told beside nodes, pods and gangs: DaemonSets, volumes, claims, siblings."""

import random
from dataclasses import dataclass

import msgspec
import pytest

from api import names
from api.claims import ClaimSpec, PersistentVolume, PersistentVolumeClaim, VolumeNodes, VolumeSpec
from api.daemonsets import DaemonSet
from api.jsons import Json, JsonObject
from api.streams import Expression, Meta, NodeSelector, Term
from controller.gangs.asking import request
from controller.gangs.supplies import Sources
from controller.gangs.topologies import BUILT_IN
from kube.objects import Key
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot
from tests.support.chance import dice
from tests.support.clusters import node
from tests.support.gangscene import KEY, Scene, encoded, gang_of, scene
from tests.support.sets import member

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Supplied:
    scene: Scene
    sources: Sources

    @property
    def snapshot(self) -> Snapshot:
        return self.scene.world.stockroom.snapshot([BUILT_IN.levels])

    def free(self, resource: str = GPU) -> int:
        found = self.snapshot
        return int(found.free[found.row_of["n1"], found.resources.index(resource)])


def supplied(made: Scene) -> Supplied:
    rng: random.Random = dice()
    sources = Sources.of(made.client, rng)
    made.world.follow(sources)
    return Supplied(made, sources)


def daemonset(gpus: int, **template: Json) -> DaemonSet:
    container: Json = {"name": "agent", "resources": {"requests": {GPU: str(gpus)}}}
    raw: JsonObject = {
        "metadata": {"name": "agent", "namespace": "default", "uid": "uid-agent"},
        "spec": {"template": {"spec": {"containers": [container], **template}}},
    }
    return msgspec.convert(raw, DaemonSet)


async def test_pods_that_a_node_is_yet_to_run_take_their_room_there() -> None:
    async with scene() as (made, _, _):
        there = supplied(made)
        assert there.free() == 8
        there.sources.daemonsets.observe(encoded(daemonset(2), 7))
        assert there.free() == 6
        there.sources.daemonsets.observe(encoded(daemonset(3), 8))
        assert there.free() == 5
        there.sources.daemonsets.observe(encoded(daemonset(3, nodeSelector={"no": "such"}), 9))
        assert there.free() == 8


async def test_a_pod_of_a_daemonset_counts_once_when_it_is_there() -> None:
    async with scene() as (made, _, _):
        there = supplied(made)
        there.sources.daemonsets.observe(encoded(daemonset(2), 7))
        owner = {"kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
        pod = member("agent", 0, gated=False, node="n1")
        meta: JsonObject = {"name": pod.metadata.name, "namespace": "default"}
        container: Json = {"name": "agent", "resources": {"requests": {GPU: "2"}}}
        spec: JsonObject = {"nodeName": "n1", "containers": [container]}
        raw = {"metadata": {**meta, "ownerReferences": [owner]}, "spec": spec}
        made.pods.observe(encoded(raw, 8))
        assert there.free() == 6


async def test_what_a_daemonset_says_of_itself_is_no_news() -> None:
    async with scene() as (made, _, _):
        there = supplied(made)
        there.sources.daemonsets.observe(encoded(daemonset(2), 7))
        before = made.world.room
        there.sources.daemonsets.observe(encoded(daemonset(2), 8))
        assert made.world.room == before
        there.sources.daemonsets.observe(encoded(daemonset(1), 9))
        assert made.world.room == before + 1


def claim(volume: str) -> PersistentVolumeClaim:
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = Meta(name="data", namespace="default", annotations=notes)
    return PersistentVolumeClaim(meta, ClaimSpec(volume_name=volume))


async def test_a_claim_ties_a_pod_to_the_nodes_of_its_volume_once_it_is_bound() -> None:
    async with scene() as (made, _, _):
        there = supplied(made)
        pod = member("a", 0)
        volume: Json = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        raw = msgspec.to_builtins(pod)
        raw["spec"]["volumes"] = [volume]
        made.pods.observe(encoded(raw, 7))
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 7)))
        for version, far in ((8, "n1"), (20, "n2")):
            selector = NodeSelector(
                (Term(match_expressions=(Expression("kubernetes.io/hostname", "In", (far,)),)),)
            )
            there.sources.volumes.observe(
                encoded(
                    PersistentVolume(Meta(name="disk"), VolumeSpec(VolumeNodes(selector))), version
                )
            )
            before = made.world.room
            there.sources.claims.observe(encoded(claim("disk"), version + 1))
            made.nodes.observe(encoded(node("n1", labels={names.HOSTNAME_KEY: "n1"}), version + 2))
            assert made.world.room > before
            (want,) = asked(made).minimum
            fits = there.snapshot.masks.mask(want.constraints)
            assert list(fits) == [far == "n1"]
            there.sources.claims.observe(encoded(claim(""), version + 3))


def asked(made: Scene) -> GangRequest:
    view, step = made.asked()
    return request(view, step, made.world.around(view.gang))


@pytest.mark.parametrize(
    ("name", "labels", "kept"),
    [
        pytest.param("demo-1", {}, 1, id="another replica"),
        pytest.param("demo-1-g-0", {names.BASE_PODGANG_LABEL: "demo-1"}, 1, id="and its copies"),
        pytest.param(
            "demo-0-g-0", {names.BASE_PODGANG_LABEL: "demo-0"}, 1, id="of its own replica"
        ),
        pytest.param("other", {"owner": "else"}, 0, id="another set"),
    ],
)
async def test_replicas_of_its_set_are_what_a_gang_keeps_apart_from(
    name: str, labels: dict[str, str], kept: int
) -> None:
    async with scene() as (made, _, _):
        supplied(made)
        ours = gang_of("demo-0", ["a-0"], 7)
        theirs = gang_of(name, [], 8)
        for each, more in ((ours, {}), (theirs, labels)):
            meta = each["metadata"]
            assert isinstance(meta, dict)
            meta |= {"labels": {**more}, "annotations": {names.SPREAD_ANNOTATION: "rack"}}
            if more.get("owner"):
                meta["ownerReferences"] = [{"kind": "X", "uid": "else", "controller": True}]
            made.gangs.observe(msgspec.json.encode(each))
        view = made.world.view(KEY)
        assert view is not None
        found: list[Key] = [other.gang.key for other in made.world.around(view.gang).apart]
        assert found == ([("default", name)] * kept)
