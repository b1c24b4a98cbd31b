"""Pods that ask for it learn that their gang is ready, once all of it is; then whoever comes."""

from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.models import Condition as Said
from api.objects import timestamp
from api.streams import Condition, Pod, ReadinessGate
from controller.gangs import readiness
from controller.gangs.readiness import Herald
from controller.gangs.views import GangView
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.resources import PODS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, gang, member, pod_clique, view

GANG = gang({"a": (2, 2), "b": (1, 1)})
CLIQUES = [pod_clique("a", 2, "b"), pod_clique("b", 1)]
GATE = (ReadinessGate(names.READINESS_GATE),)


def asking(clique: str, index: int, *conditions: str) -> Pod:
    """A bound pod with our readiness gate, of which these conditions are true."""
    pod = member(clique, index, gated=False, node="n1")
    said = tuple(Condition(kind, "True") for kind in conditions)
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, readiness_gates=GATE),
        status=msgspec.structs.replace(pod.status, conditions=said),
    )


def up(clique: str, index: int) -> Pod:
    return asking(clique, index, "ContainersReady")


def seen(*pods: Pod, latched: str = "") -> GangView:
    whole = view(GANG, list(pods), cliques=CLIQUES)
    if not latched:
        return whole
    kind, status = latched.split("=")
    said = Said(type=kind, status=status, reason="x", last_transition_time=timestamp(NOW))
    conditions = [*whole.gang.status.conditions, said]
    status_of = whole.gang.status.model_copy(update={"conditions": conditions})
    return replace(whole, gang=replace(whole.gang, status=status_of))


def called(pods: list[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_nobody_is_told_before_every_clique_has_its_minimum_up() -> None:
    assert readiness.due(seen(up("a", 0), up("a", 1), asking("b", 0))) == []
    assert readiness.due(seen(up("a", 0), up("b", 0))) == []


def test_all_are_told_at_once_and_those_that_start_first_are_told_first() -> None:
    whole = seen(up("a", 1), up("a", 0), up("b", 0))
    assert called(readiness.due(whole)) == ["b-0", "a-0", "a-1"]


def test_who_was_told_or_never_asked_is_left_alone() -> None:
    told = asking("a", 0, "ContainersReady", names.READINESS_GATE)
    silent = msgspec.structs.replace(
        up("a", 1), spec=msgspec.structs.replace(up("a", 1).spec, readiness_gates=())
    )
    assert called(readiness.due(seen(told, silent, up("b", 0)))) == ["b-0"]


@pytest.mark.parametrize("said", ["Ready=True", "Unhealthy=True", "Unhealthy=False"])
def test_in_a_gang_that_was_ready_once_a_newcomer_is_told_at_once(said: str) -> None:
    newcomer = asking("a", 0)
    assert called(readiness.due(seen(newcomer, latched=said))) == ["a-0"]


def test_a_gang_that_has_not_been_ready_yet_is_not_taken_for_one() -> None:
    assert readiness.due(seen(asking("a", 0), latched="Ready=False")) == []


def test_cliques_that_wait_for_each_other_have_a_depth_all_the_same() -> None:
    around = {name: pod_clique(name, 1, after) for name, after in [("a", "b"), ("b", "a")]}
    assert readiness.depth(around, "a") == 1
    assert readiness.depth({}, "unknown") == 0


@pytest.fixture
async def herald() -> AsyncIterator[tuple[Herald, FakeApi, list[bool]]]:
    leads = [True]
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        pods = Cache(client, PODS, Pod, dice())
        yield Herald(client, LeapingClock(), pods, lambda: 1 if leads[0] else None), api, leads


ECHO: JsonObject = {"metadata": {"name": "any", "namespace": "default", "resourceVersion": "1"}}


async def test_what_is_written_is_the_one_condition_by_a_manager_of_its_own(
    herald: tuple[Herald, FakeApi, list[bool]],
) -> None:
    one, api, _ = herald
    whole = seen(up("a", 0), up("a", 1), up("b", 0))
    api.answers += [fakeapi.json(ECHO)] * 3
    await one.tell(whole)
    assert len(api.seen) == 3
    first = api.seen[0]
    assert first.query["fieldManager"] == "penstock-gangs-readiness"
    body = msgspec.json.decode(first.body)
    assert [c["type"] for c in body["status"]["conditions"]] == [names.READINESS_GATE]
    assert body["metadata"]["uid"]


async def test_who_leads_no_more_tells_nobody(
    herald: tuple[Herald, FakeApi, list[bool]],
) -> None:
    one, api, leads = herald
    leads[0] = False
    await one.tell(seen(up("a", 0), up("a", 1), up("b", 0)))
    assert api.seen == []
