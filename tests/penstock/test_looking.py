"""A set is read to be shown, and of a large cluster no more than it takes."""

from collections import deque
from itertools import repeat

import pytest
from aiohttp import web

from api.jsons import Json, JsonObject
from kube.access import Credentials
from kube.client import Client
from kube.tokens import FixedHeader
from penstock import looking
from penstock.tree import SetSeen
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.living import engine_set
from tests.support.manualclock import LeapingClock

LISTS = ("podgangs", "podcliquescalinggroups", "podcliques", "pods")


def owner(kind: str, uid: str) -> Json:
    return {"apiVersion": "x", "kind": kind, "name": "x", "uid": uid, "controller": True}


def clique() -> JsonObject:
    return {
        "metadata": {
            "name": "chat-0-a", "namespace": "team", "uid": "clique",
            "ownerReferences": [owner("PodCliqueSet", "set")],
        },
        "spec": {"roleName": "a", "podSpec": {}, "replicas": 1},
    }  # fmt: skip


def pod(index: int) -> JsonObject:
    metadata: JsonObject = {
        "name": f"chat-0-a-{index}", "namespace": "team", "uid": f"p{index}",
        "ownerReferences": [owner("PodClique", "clique")],
    }  # fmt: skip
    return {"metadata": metadata, "spec": {"nodeName": f"node-{index}", "containers": []}}


def node(name: str) -> JsonObject:
    return {"metadata": {"name": name, "uid": name}}


class Cluster(FakeApi):
    """A set with pods on so many nodes, of more that there are."""

    def __init__(self, pods: int, *, forbidden: bool = False) -> None:
        super().__init__()
        self.pods, self.forbidden = pods, forbidden
        self.answers = deque(repeat(self.answer, 1000))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        last = request.path.rpartition("/")[2]
        items: dict[str, list[Json]] = {
            "podcliques": [clique()],
            "pods": [pod(i) for i in range(self.pods)],
            "nodes": [node(f"node-{i}") for i in range(self.pods + 50)],
        }
        if "/nodes" in request.path and self.forbidden:
            return await fakeapi.status(403, "Forbidden")(request)
        if last in (*LISTS, "nodes"):
            return await fakeapi.json({"metadata": {}, "items": items.get(last, [])})(request)
        if last == "chat":
            found: JsonObject = {**engine_set("chat", pods=1, gpus=0)}
            return await fakeapi.json({**found, "metadata": {"name": "chat", "uid": "set"}})(
                request
            )
        if last == "node-1":
            return await fakeapi.status(404, "NotFound")(request)
        return await fakeapi.json(node(last))(request)

    async def looked(self) -> SetSeen:
        async with fakeapi.serving(self):
            access = Credentials(self.url, None, FixedHeader())
            async with Client(access, "plugin", LeapingClock()) as client:
                return await looking.look(client, "team", "chat")

    def nodes_asked_for(self) -> set[str]:
        return {each.path.partition("/api/v1/")[2] for each in self.seen if "/nodes" in each.path}


async def test_only_the_nodes_that_its_pods_are_on_are_read() -> None:
    cluster = Cluster(3)
    seen = await cluster.looked()
    assert cluster.nodes_asked_for() == {"nodes/node-0", "nodes/node-1", "nodes/node-2"}
    assert seen.pods.keys() == {f"chat-0-a-{i}" for i in range(3)}
    assert seen.nodes.keys() == {"node-0", "node-2"}, "one is gone meanwhile"


async def test_where_its_pods_are_on_many_they_are_listed_once() -> None:
    cluster = Cluster(looking.FEW + 1)
    seen = await cluster.looked()
    assert cluster.nodes_asked_for() == {"nodes"}
    assert len(seen.nodes) == looking.FEW + 51


@pytest.mark.parametrize("pods", [3, looking.FEW + 1], ids=["few", "many"])
async def test_who_may_not_read_nodes_sees_the_rest(pods: int) -> None:
    seen = await Cluster(pods, forbidden=True).looked()
    assert len(seen.pods) == pods
    assert seen.nodes == {}
