"""What cannot be reserved is tried again, ever later, whatever else is going on."""

import asyncio
from contextlib import suppress

import msgspec

from api import names
from api.jsons import Json, JsonObject
from controller.gangs.placing import Answers, Failed, Placer
from kube.access import Credentials
from kube.client import Client
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, encoded, gang_of, scene
from tests.support.keeping import keep, raw
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.support.sets import member, pod_clique


async def test_each_look_at_a_failed_gang_arms_the_next_try() -> None:
    """Another timer of the same key may have swallowed the one that was set on failure."""
    clock = LeapingClock()
    later: list[tuple[tuple[str, str], float]] = []
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", clock) as client,
    ):
        made = Scene(client, lambda _: None)
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        api.answers.append(fakeapi.status(409, "AlreadyExists", "it exists"))
        answers = Answers(lambda _: None, lambda key, seconds: later.append((key, seconds)))
        placer = Placer(client, clock, made.world, made.reservations, lambda: 1, answers)
        running = asyncio.create_task(placer.run())
        assert placer.ask(*made.asked()) is None
        await eventually(lambda: bool(later), "the first failure")
        assert [key for key, _ in later] == [KEY]
        said = placer.ask(*made.asked())
        assert isinstance(said, Failed)
        assert said.message == "it exists"
        assert len(later) == 2
        assert 0 < later[1][1] <= later[0][1]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_gang_whose_name_a_person_took_says_so_and_is_tried_at_once_when_it_is_free() -> (
    None
):
    later: list[tuple[str, str]] = []
    async with scene() as (made, api, client):
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        api.answers.append(fakeapi.status(409, "AlreadyExists", "it exists"))
        answers = Answers(lambda _: None, lambda key, _: later.append(key))
        placer = Placer(client, LeapingClock(), made.world, made.reservations, lambda: 1, answers)
        running = asyncio.create_task(placer.run())
        assert placer.ask(*made.asked()) is None
        await eventually(lambda: bool(later), "the first failure")
        made.reservations.observe(raw(keep("demo-0"), 7))
        said = placer.ask(*made.asked())
        assert isinstance(said, Failed)
        assert "a reservation by a person is called demo-0" in said.message
        made.world.keeps.put(KEY, None)  # it was deleted
        assert placer.ask(*made.asked()) is None, "it is asked anew, and not told what failed"
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_pod_that_moved_to_another_gang_still_wakes_that_one() -> None:
    touched: list[tuple[str, str]] = []
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        made = Scene(client, touched.append)
        made.gangs.observe(msgspec.json.encode(gang_of("old", ["a-0"], 3)))
        made.gangs.observe(msgspec.json.encode(gang_of("new", ["a-0"], 4)))
        made.gangs.observe(msgspec.json.encode(gang_of("old", [], 5)))
        touched.clear()
        made.pods.observe(encoded(member("a", 0, gated=False), 6))
        assert touched == [("default", "new")]


async def test_a_gang_that_cannot_be_read_stays_as_it_was() -> None:
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        made = Scene(client, lambda _: None)
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        odd = gang_of("demo-0", ["a-0"], 4) | {"spec": {"podgroups": "unheard"}}
        made.gangs.observe(msgspec.json.encode(odd))
        assert made.world.view(KEY) is not None


async def test_words_of_a_status_that_nobody_knows_make_no_gang_go_away() -> None:
    async with scene() as (made, _, _):
        body = gang_of("demo-0", ["a-0"], 3)
        there = body["status"]
        assert isinstance(there, dict)
        assert isinstance(there["conditions"], list)
        newer: JsonObject = {"type": "Newer", "status": "Perhaps"}
        odd = {"phase": "Unheard", "conditions": [newer, *there["conditions"]], "placementScore": 1}
        made.gangs.observe(msgspec.json.encode({**body, "status": odd}))
        view = made.world.view(KEY)
        assert view is not None
        assert (view.gang.status.phase, view.gang.status.placement_score) == ("Pending", 1.0)
        assert view.gang.initialized
        made.gangs.observe(msgspec.json.encode({**gang_of("demo-0", ["a-0"], 4), "status": []}))
        view = made.world.view(KEY)
        assert view is not None
        assert not view.gang.initialized


async def test_a_podgang_of_another_namespace_takes_no_pod_away() -> None:
    touched: list[tuple[str, str]] = []
    async with scene(touched.append) as (made, _, _):
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        theirs = gang_of("greedy", ["a-0"], 4)
        theirs["metadata"] = {**as_object(theirs["metadata"]), "namespace": "elsewhere"}
        made.gangs.observe(msgspec.json.encode(theirs))
        touched.clear()
        made.pods.observe(encoded(member("a", 0, gated=False), 6))
        assert touched == [KEY]


async def test_a_plain_gang_that_is_called_like_a_clique_takes_none_away() -> None:
    touched: list[tuple[str, str]] = []
    async with scene(touched.append) as (made, _, _):
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
        plain = gang_of("a", [], 4)  # its one group is called `a`, and so is a clique
        marked: JsonObject = {names.SLOTS_ANNOTATION: ""}
        plain["metadata"] = {**as_object(plain["metadata"]), "annotations": marked}
        made.gangs.observe(msgspec.json.encode(plain))
        touched.clear()
        made.cliques.observe(encoded(pod_clique("a", 2), 6))
        assert touched == [KEY]


def as_object(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found
