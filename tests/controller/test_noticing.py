"""Pods are told whom they wait for once that lasts, and as seldom as does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from api import names
from api.jsons import JsonObject
from api.reservation import State
from api.streams import Condition, Pod
from controller.gangs import noticing
from controller.gangs.noticing import Noticeboard
from controller.gangs.views import GangView
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.resources import PODS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import ManualClock
from tests.support.sets import gang, member, pod_clique, reservation, view

MANY = 100
SLOTS = {("up", 0): "n0", ("up", 1): "n0"} | {("down", i): "n1" for i in range(MANY)}
CLIQUES = [pod_clique("up", 2), pod_clique("down", 1, "up")]


def seen(pods: list[Pod], ready: int = 0) -> GangView:
    parents = [member("up", i, gated=False, node="n0") for i in range(2)]
    parents[:ready] = [_with(pod, Condition("ContainersReady", "True")) for pod in parents[:ready]]
    return view(
        gang({"up": (2, 2), "down": (1, MANY)}),
        [*parents, *pods],
        reservation(SLOTS, State.LIFTING),
        cliques=CLIQUES,
    )


def waiting(count: int, message: str = "") -> list[Pod]:
    pods = [member("down", index) for index in range(count)]
    said = Condition(names.STARTUP_BLOCKED, "True", message=message)
    return [_with(pod, said) for pod in pods] if message else pods


def _with(pod: Pod, condition: Condition) -> Pod:
    status = msgspec.structs.replace(pod.status, conditions=(condition,))
    return msgspec.structs.replace(pod, status=status)


class Scene:
    """A noticeboard over an API server that takes every write; `later` is what it wished for."""

    def __init__(self, client: Client, api: FakeApi, clock: ManualClock) -> None:
        self.later: list[float] = []
        self.leads = True
        self.clock = clock
        self._api = api
        pods = Cache(client, PODS, Pod, dice())
        self.board = Noticeboard(
            client,
            clock,
            pods,
            lambda _, seconds: self.later.append(seconds),
            lambda: 1 if self.leads else None,
        )

    async def post(self, of: GangView) -> list[JsonObject]:
        """Post once; returns the conditions that were written."""
        self.later.clear()
        self._api.seen.clear()
        echo: JsonObject = {
            "metadata": {"name": "any", "namespace": "default", "resourceVersion": "1"}
        }
        self._api.answers.extend([fakeapi.json(echo)] * MANY)
        await self.board.post(of)
        self._api.answers.clear()
        bodies = [msgspec.json.decode(request.body) for request in self._api.seen]
        assert all(body["metadata"]["uid"] for body in bodies)
        return [body["status"]["conditions"][0] for body in bodies]


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    clock = ManualClock()
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", clock) as client,
    ):
        yield Scene(client, api, clock)


async def test_what_passes_within_a_second_is_not_told() -> None:
    async with scene() as s:
        assert await s.post(seen(waiting(2))) == []
        assert s.later == [1.0, 1.0]
        s.clock.skip(0.5)
        assert await s.post(seen(waiting(2), ready=2)) == []
        s.clock.skip(0.6)
        assert await s.post(seen(waiting(2))) == []
        s.clock.skip(1.0)
        told = await s.post(seen(waiting(2)))
        assert [c["message"] for c in told] == ["waits for up: 0 of 2 pods ready"] * 2


async def test_how_many_are_ready_is_told_anew_only_now_and_then() -> None:
    async with scene() as s:
        await s.post(seen(waiting(1)))
        s.clock.skip(1.0)
        assert len(await s.post(seen(waiting(1)))) == 1
        before = waiting(1, "waits for up: 0 of 2 pods ready")
        assert await s.post(seen(before)) == []
        s.clock.skip(1.0)
        assert await s.post(seen(before, ready=1)) == []
        assert s.later == [noticing.REWORDED_SECONDS - 1.0]
        s.clock.skip(noticing.REWORDED_SECONDS)
        told = await s.post(seen(before, ready=1))
        assert [c["message"] for c in told] == ["waits for up: 1 of 2 pods ready"]


async def test_the_end_of_the_wait_is_told_at_once_and_only_to_those_told_of_it() -> None:
    async with scene() as s:
        told = waiting(1, "waits for up: 0 of 2 pods ready")
        (over,) = await s.post(seen([*told, member("down", 1)], ready=2))
        assert (over["status"], over["reason"]) == ("False", "ParentsReady")


async def test_lifting_need_not_wait_until_all_of_many_are_told() -> None:
    async with scene() as s:
        await s.post(seen(waiting(MANY)))
        s.clock.skip(1.0)
        assert len(await s.post(seen(waiting(MANY)))) == noticing.AT_ONE_LOOK
        assert s.later == [0.0]


async def test_who_leads_no_more_tells_nobody() -> None:
    async with scene() as s:
        await s.post(seen(waiting(1)))
        s.clock.skip(1.0)
        s.leads = False
        assert await s.post(seen(waiting(1))) == []
