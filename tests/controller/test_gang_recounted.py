"""How many pods are still to be bound is not told anew for each of them."""

import msgspec

from api import names
from api.jsons import JsonObject
from controller.gangs.announcing import LASTS_SECONDS, RECOUNTED_SECONDS, Announcer, Telling
from controller.gangs.deciding import Wait
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, gang_of, scene
from tests.support.manualclock import LeapingClock


def as_written(api: FakeApi, version: int) -> JsonObject:
    """The gang with the status that was written last."""
    stored = gang_of("demo-0", ["a-0"], version)
    stored["status"] = msgspec.json.decode(api.seen[-1].body)["status"]
    return stored


async def heard(s: Scene, api: FakeApi, announcer: Announcer, left: int) -> int:
    """How many statuses are written when so many pods are not bound yet."""
    before = len(api.seen)
    api.answers.append(fakeapi.json(gang_of("demo-0", ["a-0"], 1)))
    view = s.world.view(KEY)
    assert view is not None
    said = Wait(names.REASON_LIFTING, f"{left} lifted pods are not bound yet")
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
        assert await heard(s, api, announcer, 9) == 0
        clock.skip(LASTS_SECONDS)
        assert await heard(s, api, announcer, 8) == 1
        for left in (7, 6, 5, 4):
            assert await heard(s, api, announcer, left) == 0
            clock.skip(RECOUNTED_SECONDS / 5)
        clock.skip(RECOUNTED_SECONDS / 5)
        assert await heard(s, api, announcer, 3) == 1
