"""A pod belongs to a gang by its owners' UIDs, up to the owner of the gang."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from api.jsons import Json, JsonObject
from api.streams import Custom, PodClique
from controller.gangs.owners import Owners
from controller.gangs.views import members_of
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.objects import Key
from kube.resources import PODCLIQUES, SCALING_GROUPS, Resource
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.clusters import pod
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.sets import gang

GANG = gang({"a": (1, 1)})
SET = "set-uid"


def thing(kind: Resource, name: str, uid: str, owner: str, version: int, **spec: Json) -> bytes:
    reference: JsonObject = {"kind": "Any", "name": "any", "uid": owner, "controller": True}
    meta: JsonObject = {
        "name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version),
        "ownerReferences": [reference],
    }  # fmt: skip
    return msgspec.json.encode({"kind": kind.kind, "metadata": meta, "spec": spec})


class Scene:
    """Both caches, with nothing running; `touched` names the cliques told of, in order."""

    def __init__(self, client: Client) -> None:
        self.cliques = Cache(client, PODCLIQUES, PodClique, dice())
        self.groups = Cache(client, SCALING_GROUPS, Custom, dice())
        self.touched: list[Key] = []
        self.owners = Owners(self.cliques, self.groups, self.touched.append)

    def clique(self, owner: str, version: int, uid: str = "uid-a", **spec: Json) -> None:
        self.cliques.observe(thing(PODCLIQUES, "a", uid, owner, version, **spec))

    def group(self, uid: str, owner: str, version: int) -> None:
        self.groups.observe(thing(SCALING_GROUPS, "g", uid, owner, version))

    def holds(self, controller: str) -> bool:
        """Whether a pod that this controls is a member of the gang."""
        owner: JsonObject = {"kind": "PodClique", "uid": controller, "controller": True}
        found = pod("a-0", spec={"hostname": "a-0"}, metadata={"ownerReferences": [owner]})
        pods = {("default", "a-0"): found}
        return bool(members_of(GANG, pods, self.owners.cliques_of(GANG)))


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        yield Scene(client)


async def test_a_pod_of_the_sets_clique_belongs_and_one_of_its_namesake_does_not() -> None:
    async with scene() as s:
        assert not s.holds("uid-a")
        s.clique(SET, 1)
        assert s.holds("uid-a")
        assert not s.holds("uid-of-its-predecessor")
        assert not s.holds("")


async def test_a_clique_that_somebody_else_owns_brings_no_pods_in() -> None:
    async with scene() as s:
        s.clique("other-set-uid", 1)
        assert not s.holds("uid-a")


async def test_a_pod_of_a_groups_member_belongs_if_the_group_does() -> None:
    async with scene() as s:
        s.clique("uid-g", 1)
        assert not s.holds("uid-a")
        s.group("uid-g", "other-set-uid", 2)
        assert not s.holds("uid-a")
        s.group("uid-g", SET, 3)
        assert s.holds("uid-a")
        s.group("uid-of-another-group", SET, 4)
        assert not s.holds("uid-a")


async def test_who_decides_hears_of_what_changes_whose_a_pod_is_or_when_it_starts() -> None:
    async with scene() as s:
        s.clique("uid-g", 1)
        s.group("uid-g", SET, 2)
        assert s.touched == [("default", "a")] * 2
        s.clique("uid-g", 3)
        s.group("uid-g", SET, 4)
        assert len(s.touched) == 2
        s.clique("uid-g", 5, startsAfter=["b"], minAvailable=2)
        assert len(s.touched) == 3
        (found,) = s.owners.cliques_of(GANG).values()
        assert (found.spec.minimum, found.spec.starts_after) == (2, ("b",))
