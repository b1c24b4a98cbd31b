"""What cannot be reserved is tried again, ever later, whatever else is going on."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import msgspec

from api.jsons import Json, JsonObject
from api.streams import Custom, Node, Pod
from controller.gangs.deciding import Place, next_step
from controller.gangs.placing import Answers, Failed, Placer
from controller.gangs.views import GangView
from controller.gangs.world import World
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.clusters import node
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.support.sets import NOW, OWNER, member

KEY = ("default", "demo-0")


def bare(kind: str, name: str, version: int, **more: Json) -> JsonObject:
    owner: Json = msgspec.to_builtins(OWNER)
    return {
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "default", "uid": f"uid-{name}",
            "resourceVersion": str(version), "ownerReferences": [owner],
        },
        **more,
    }  # fmt: skip


def gang_of(name: str, pods: list[str], version: int) -> JsonObject:
    references: list[Json] = [{"namespace": "default", "name": pod} for pod in pods]
    group: Json = {"name": "a", "minReplicas": 1, "podReferences": references}
    initialized: Json = {
        "type": "Initialized", "status": "True", "reason": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return bare(
        "PodGang", name, version, spec={"podgroups": [group]}, status={"conditions": [initialized]}
    )


def encoded(thing: object, version: int) -> bytes:
    raw = msgspec.to_builtins(thing)
    raw["metadata"]["resourceVersion"] = str(version)
    return msgspec.json.encode(raw)


class Scene:
    """A world of one node and one pod, with nothing running."""

    def __init__(self, client: Client, touched: Callable[[tuple[str, str]], None]) -> None:
        rng: random.Random = dice()
        self.nodes = Cache(client, NODES, Node, rng)
        self.pods = Cache(client, PODS, Pod, rng)
        self.gangs = Cache(client, PODGANGS, Custom, rng)
        self.reservations = Cache(client, RESERVATIONS, Custom, rng)
        caches = (self.nodes, self.pods, self.gangs, self.reservations)
        self.world = World(caches, touched, lambda: None)
        self.nodes.observe(encoded(node("n1"), 1))
        self.pods.observe(encoded(member("a", 0), 2))

    def asked(self) -> tuple[GangView, Place]:
        view = self.world.view(KEY)
        assert view is not None
        step = next_step(view, NOW)
        assert isinstance(step, Place)
        return view, step


async def test_each_look_at_a_failed_gang_arms_the_next_try() -> None:
    """Another timer of the same key may have swallowed the one that was set on failure."""
    clock = LeapingClock()
    later: list[tuple[tuple[str, str], float]] = []
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", clock) as client,
    ):
        scene = Scene(client, lambda _: None)
        scene.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        api.answers.append(fakeapi.status(409, "AlreadyExists", "it exists"))
        answers = Answers(lambda _: None, lambda key, seconds: later.append((key, seconds)))
        placer = Placer(client, clock, scene.world, scene.reservations, lambda: 1, answers)
        running = asyncio.create_task(placer.run())
        assert placer.ask(*scene.asked()) is None
        await eventually(lambda: bool(later), "the first failure")
        assert [key for key, _ in later] == [KEY]
        said = placer.ask(*scene.asked())
        assert isinstance(said, Failed)
        assert said.message == "it exists"
        assert len(later) == 2
        assert 0 < later[1][1] <= later[0][1]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_pod_that_moved_to_another_gang_still_wakes_that_one() -> None:
    touched: list[tuple[str, str]] = []
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        scene = Scene(client, touched.append)
        scene.gangs.observe(msgspec.json.encode(gang_of("old", ["a-0"], 3)))
        scene.gangs.observe(msgspec.json.encode(gang_of("new", ["a-0"], 4)))
        scene.gangs.observe(msgspec.json.encode(gang_of("old", [], 5)))
        touched.clear()
        scene.pods.observe(encoded(member("a", 0, gated=False), 6))
        assert touched == [("default", "new")]


async def test_a_gang_that_cannot_be_read_stays_as_it_was() -> None:
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        scene = Scene(client, lambda _: None)
        scene.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        odd = gang_of("demo-0", ["a-0"], 4) | {"status": {"phase": "Unheard"}}
        scene.gangs.observe(msgspec.json.encode(odd))
        assert scene.world.view(KEY) is not None
