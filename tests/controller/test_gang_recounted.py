"""How many pods are still to be bound is not told anew for each of them."""

import msgspec

from api import names
from api.jsons import JsonObject
from api.reservation import State
from controller.gangs.announcing import (
    EACH_SECONDS,
    LASTS_SECONDS,
    LONGEST_SECONDS,
    RECOUNTED_SECONDS,
    STARTING_SECONDS,
    Announcer,
    Telling,
)
from controller.gangs.deciding import Wait
from tests.controller.test_gang_moving import booked, see
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock
from tests.support.sets import member


def as_written(api: FakeApi, version: int) -> JsonObject:
    """The gang with the status that was written last."""
    stored = gang_of("demo-0", ["a-0"], version)
    stored["status"] = msgspec.json.decode(api.seen[-1].body)["status"]
    return stored


async def heard(
    s: Scene, api: FakeApi, announcer: Announcer, left: int, name: str = "demo-0"
) -> int:
    """How many statuses are written when so many pods are not bound yet."""
    said = Wait(names.REASON_LIFTING, f"{left} lifted pods are not bound yet")
    before = len(api.seen)
    api.answers.append(fakeapi.json(gang_of("demo-0", ["a-0"], 1)))
    view = s.world.view(("default", name))
    assert view is not None
    await announcer.report(view, said, None)
    if len(api.seen) > before:
        s.gangs.observe(msgspec.json.encode(as_written(api, 1000 - left)))
    api.answers.clear()
    return len(api.seen) - before


async def test_what_passes_is_told_once_it_lasts_and_recounted_seldom() -> None:
    async with scene() as (s, api, client):
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
        clock = LeapingClock()
        told = Telling(s.world, s.gangs, lambda _, __: None)
        announcer = Announcer(client, clock, told, "one")
        assert await heard(s, api, announcer, 8) == 0
        clock.skip(LASTS_SECONDS)
        assert await heard(s, api, announcer, 8) == 1
        for left in (7, 6, 5, 4):
            assert await heard(s, api, announcer, left) == 0
            clock.skip(RECOUNTED_SECONDS / 5)
        clock.skip(RECOUNTED_SECONDS / 5)
        assert await heard(s, api, announcer, 3) == 1


async def test_what_goes_on_pod_by_pod_is_not_told_until_it_stops_or_takes_too_long() -> None:
    async with scene() as (s, api, client):
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
        clock = LeapingClock()
        announcer = Announcer(client, clock, Telling(s.world, s.gangs, lambda _, __: None), "one")
        for left in range(99, 90, -1):
            assert await heard(s, api, announcer, left) == 0
            clock.skip(LASTS_SECONDS / 2)
        assert await heard(s, api, announcer, 91) == 0
        clock.skip(LASTS_SECONDS / 2)
        assert await heard(s, api, announcer, 91) == 1, "it has stopped"
        s.gangs.observe(msgspec.json.encode(gang_of("long-0", ["b-0"], 9)))
        begun, left = clock.monotonic(), 99
        while not await heard(s, api, announcer, left, "long-0"):
            clock.skip(LASTS_SECONDS / 2)
            left -= 1
        assert clock.monotonic() - begun == LONGEST_SECONDS


async def test_what_passes_of_many_gangs_at_once_is_told_later_and_of_one_alone_as_ever() -> None:
    async with scene() as (s, api, client):
        clock = LeapingClock()
        announcer = Announcer(client, clock, Telling(s.world, s.gangs, lambda _, __: None), "one")
        gangs = ["demo-0", *(f"other-{number}" for number in range(10))]
        for number, name in enumerate(gangs):
            s.gangs.observe(msgspec.json.encode(gang_of(name, [f"{name}-a"], 9 + number)))
            assert await heard(s, api, announcer, 9, name) == 0
        clock.skip(LASTS_SECONDS + 0.9 * 10 * EACH_SECONDS)
        assert await heard(s, api, announcer, 9) == 0
        for name in gangs[1:]:
            announcer.forget(("default", name))
        assert await heard(s, api, announcer, 9) == 1


async def test_that_a_gang_is_bound_and_that_it_runs_is_one_write_if_it_runs_in_a_moment() -> None:
    async with scene() as (s, api, client):
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
        clock, later = LeapingClock(), list[float]()
        told = Telling(s.world, s.gangs, lambda _, seconds: later.append(seconds))
        announcer = Announcer(client, clock, told, "one")
        see(s, member("a", 0, gated=False), booked("n1", "1", State.BOUND, 4))

        async def report() -> int:
            api.answers.append(fakeapi.json(gang_of("demo-0", ["a-0"], 1)))
            view = s.world.view(KEY)
            assert view is not None
            await announcer.report(view, Wait(names.REASON_BOUND), None)
            api.answers.clear()
            return len(api.seen)

        assert await report() == 0
        assert later == [STARTING_SECONDS]
        clock.skip(STARTING_SECONDS / 2)
        runs = member("a", 0, gated=False)
        status = msgspec.structs.replace(runs.status, phase="Running")
        s.pods.observe(encoded(msgspec.structs.replace(runs, status=status), 50))
        assert await report() == 1
        (written,) = api.seen
        assert msgspec.json.decode(written.body)["status"]["phase"] == "Running"
