"""Pods of Jobs say, before they are taken back, that this is no fault of theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from api import names
from api.reservation import State
from api.streams import Owner, Pod
from controller.gangs.evicting import Evictor
from controller.gangs.views import GangView, Member
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import encoded, scene
from tests.support.manualclock import LeapingClock
from tests.support.sets import gang, member, reservation, view

GANG = gang({"a": (1, 1)})


def owned(kind: str, *, node: str = "") -> Pod:
    pod = member("a", 0, gated=False, node=node)
    owner = Owner(kind=kind, name="x", uid="uid-x", controller=True)
    meta = msgspec.structs.replace(pod.metadata, owner_references=(owner,), resource_version="3")
    return msgspec.structs.replace(pod, metadata=meta)


def seen(state: State) -> GangView:
    return view(GANG, [], reservation({("a", 0): "n1"}, state))


@asynccontextmanager
async def evictor() -> AsyncIterator[tuple[Evictor, FakeApi]]:
    async with scene() as (s, api, client):
        yield Evictor(client, LeapingClock(), s.pods, lambda: 1), api


async def take_back(pod: Pod, state: State, *answers: Pod) -> list[tuple[str, str]]:
    """Evict the pod; gives what was asked of the API server, with the version it went by."""
    async with evictor() as (one, api):
        api.answers += [fakeapi.json(msgspec.json.decode(encoded(each, 9))) for each in answers]
        await one.evict(seen(state), (Member(("a", 0), pod),))
        bodies = [(call.method, msgspec.json.decode(call.body)) for call in api.seen]
    for method, body in bodies:
        if method == "PATCH":
            (said,) = body["status"]["conditions"]
            assert (said["type"], said["status"]) == (names.DISRUPTION_TARGET, "True")
            assert body["metadata"]["uid"] == pod.metadata.uid
    return [
        (method, body.get("preconditions", {}).get("resourceVersion", ""))
        for method, body in bodies
    ]


async def test_a_pod_of_a_job_says_so_first_and_then_goes_as_it_is_by_then() -> None:
    pod = owned("Job")
    asked = await take_back(pod, State.LIFTING, pod, pod)
    assert asked == [("PATCH", ""), ("DELETE", "9")]


async def test_of_a_gang_that_is_rolled_back_it_goes_though_it_be_bound() -> None:
    pod = owned("Job", node="n1")
    asked = await take_back(pod, State.ROLLED_BACK, pod, pod)
    assert asked == [("PATCH", ""), ("DELETE", "")]


async def test_one_that_was_bound_meanwhile_stays() -> None:
    assert await take_back(owned("Job"), State.LIFTING, owned("Job", node="n1")) == [("PATCH", "")]


@pytest.mark.parametrize("kind", ["PodClique", "ReplicaSet"])
async def test_for_all_others_one_write_does(kind: str) -> None:
    pod = owned(kind)
    assert await take_back(pod, State.LIFTING, pod) == [("DELETE", "3")]
