"""What `gangs` sees of one small gang, put into its caches by hand."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from api.jsons import Json, JsonObject
from api.streams import Custom, Node, Pod, PodClique
from controller.gangs.caches import Caches
from controller.gangs.deciding import Place, next_step
from controller.gangs.modes import ALONE, Mode
from controller.gangs.views import GangView
from controller.gangs.world import World
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.resources import NODES, PODCLIQUES, PODGANGS, PODS, RESERVATIONS, SCALING_GROUPS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.clusters import node
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, OWNER, member, pod_clique

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
    raw = msgspec.json.decode(msgspec.json.encode(thing))  # through text, since parts may be raw
    raw["metadata"]["resourceVersion"] = str(version)
    return msgspec.json.encode(raw)


class Scene:
    """A world of one node, one pod and its clique, with nothing running."""

    def __init__(
        self,
        client: Client,
        touched: Callable[[tuple[str, str]], None],
        mode: Mode = ALONE,
    ) -> None:
        rng: random.Random = dice()
        self.client = client
        self.nodes = Cache(client, NODES, Node, rng)
        self.pods = Cache(client, PODS, Pod, rng)
        self.gangs = Cache(client, PODGANGS, Custom, rng)
        self.reservations = Cache(client, RESERVATIONS, Custom, rng)
        self.cliques = Cache(client, PODCLIQUES, PodClique, rng)
        self.groups = Cache(client, SCALING_GROUPS, Custom, rng)
        caches = Caches(
            self.nodes, self.pods, self.gangs, self.reservations, self.cliques, self.groups, mode
        )
        self.caches = caches
        self.world = World(caches, touched, lambda: None)
        self.nodes.observe(encoded(node("n1"), 1))
        self.pods.observe(encoded(member("a", 0), 2))
        self.cliques.observe(encoded(pod_clique("a", 1), 2))

    def asked(self) -> tuple[GangView, Place]:
        view = self.world.view(KEY)
        assert view is not None
        step = next_step(view, NOW)
        assert isinstance(step, Place)
        return view, step


@asynccontextmanager
async def scene(
    touched: Callable[[tuple[str, str]], None] = lambda _: None, mode: Mode = ALONE
) -> AsyncIterator[tuple[Scene, FakeApi, Client]]:
    """A scene, and the API server that it would write to."""
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        yield Scene(client, touched, mode), api, client
