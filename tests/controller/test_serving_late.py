"""A kind that is served later than we start is followed from then on, and all are told."""

import asyncio
from contextlib import suppress

import msgspec

from controller.workloads import serving
from controller.workloads.caches import read_thing
from controller.workloads.views import Thing
from kube.access import Credentials
from kube.cache import Cache, Reader
from kube.client import Client
from kube.resources import CONFIGMAPS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually


async def test_what_we_made_before_a_kind_was_followed_is_looked_at_once_it_is() -> None:
    """It is in the cache by our own write, so its listing is news to nobody."""
    told: list[str] = []
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        api.put("default", "ours", "x")
        things: Cache[Thing] = Cache(client, CONFIGMAPS, Reader(read_thing), dice())
        things.observe(msgspec.json.encode(api.objects["default", "ours"]))
        things.subscribe(lambda change: told.append(type(change).__name__))
        told.clear()
        api.answers.append(fakeapi.status(404, "NotFound"))
        running = asyncio.create_task(
            serving.follow(client, CONFIGMAPS, things, lambda: told.append("all"))
        )
        try:
            await eventually(lambda: bool(told), "somebody is told")
            assert told == ["all"]
            assert things.is_synced
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
