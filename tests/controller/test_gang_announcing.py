"""A gang that finds no room says so in its status and in an Event, in the same words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from api import names
from api.jsons import JsonObject
from api.reservation import State
from controller.gangs.reconciling import Reconciler
from tests.controller.test_gang_moving import booked, see
from tests.support import fakeapi
from tests.support.clusters import node
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.support.sets import member


@asynccontextmanager
async def at_work(s: Scene) -> AsyncIterator[None]:
    """A reconciler that takes gangs through their steps."""
    reconciler = Reconciler(s.client, LeapingClock(), s.caches, lambda: 1, "one")
    s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
    running = asyncio.create_task(reconciler.run(2))
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def written(api: FakeApi, what: str) -> list[JsonObject]:
    return [msgspec.json.decode(seen.body) for seen in api.seen if what in seen.path]


def reason_in(body: JsonObject) -> tuple[object, object]:
    status = body["status"]
    assert isinstance(status, dict)
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    (said,) = [c for c in conditions if isinstance(c, dict) and c["type"] == names.SCHEDULED]
    return said["reason"], said["message"]


async def test_the_status_and_the_event_of_a_refused_gang_say_the_same() -> None:
    async with scene() as (s, api, _):
        s.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        async with at_work(s):
            await eventually(lambda: bool(written(api, "/events")), "an Event")
            await eventually(lambda: bool(written(api, "/status")), "a status")
        (event,), (status, *_) = written(api, "/events"), written(api, "/status")
        assert (event["reason"], event["note"]) == reason_in(status)
        assert event["reason"] == names.REASON_NEVER_FITS
        assert event["type"] == "Warning"
        assert event["reportingController"] == "penstock.dev/gangs"


async def test_of_a_running_gang_that_lost_a_pod_nothing_is_said_before_the_answer() -> None:
    async with scene() as (s, api, _):
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))
        await Reconciler(s.client, LeapingClock(), s.caches, lambda: 1, "one").reconcile(KEY)
        assert api.seen == []


async def test_an_event_that_a_predecessor_did_not_come_to_tell_is_told() -> None:
    """It died after the status; and where it did tell, the API server has the Event's name."""
    async with scene() as (s, api, _):
        s.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        async with at_work(s):
            await eventually(lambda: bool(written(api, "/events")), "an Event")
            await eventually(lambda: bool(written(api, "/status")), "a status")
        status, *_ = written(api, "/status")
        first, *_ = written(api, "/events")
    async with scene() as (s, api, _):
        s.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        api.answers.append(fakeapi.status(409, "AlreadyExists", "it exists"))
        async with at_work(s):
            s.gangs.observe(msgspec.json.encode({**gang_of("demo-0", ["a-0"], 10), **said(status)}))
            await eventually(lambda: bool(written(api, "/events")), "an Event")
        (again,) = written(api, "/events")
        assert (again["metadata"], again["note"]) == (first["metadata"], first["note"])
        assert written(api, "/status") == []


def said(status: JsonObject) -> JsonObject:
    """The status as the API server has it, with what `workloads` says there."""
    there = status["status"]
    initialized = gang_of("demo-0", [], 1)["status"]
    assert isinstance(there, dict)
    assert isinstance(initialized, dict)
    both = [there["conditions"], initialized["conditions"]]
    conditions = [each for part in both if isinstance(part, list) for each in part]
    return {"status": {**there, "conditions": conditions}}


async def test_a_gang_that_is_late_says_so_when_its_time_is_over() -> None:
    async with scene() as (s, api, _):
        s.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        body = gang_of("demo-0", ["a-0"], 10)
        meta = body["metadata"]
        assert isinstance(meta, dict)
        meta["annotations"] = {names.GANG_TIMEOUT: "90s"}
        meta["creationTimestamp"] = "2026-01-01T00:00:00Z"  # when the clock begins
        async with at_work(s):
            s.gangs.observe(msgspec.json.encode(body))
            await eventually(lambda: len(written(api, "/events")) == 2, "two Events")
        told = {str(event["reason"]): event["note"] for event in written(api, "/events")}
        assert told.keys() == {names.REASON_NEVER_FITS, "GangTimeout"}
        note = told["GangTimeout"]
        assert isinstance(note, str)
        assert note.startswith("not scheduled within 90 s, its gang timeout: even with every node")
