"""What caches do where there is much of a kind."""

import asyncio

import msgspec

from kube.access import Credentials
from kube.cache import Cache, Modified, Reader
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.resources import CONFIGMAPS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.fakeapi import FakeApi
from tests.support.following import PATIENT, Entry, Told, filled, following
from tests.support.polling import eventually


async def test_a_second_list_takes_no_room_for_what_has_not_changed() -> None:
    async with following(filled()) as f:
        await f.cache.synced()
        before = f.cache.get("a", "m1")
        f.told.changes.clear()
        f.api.put("a", "m2", "second")
        await f.cache.relist("led")
        assert f.equal()
        assert f.cache.get("a", "m1") is before
        assert [type(change) for change in f.told.changes] == [Modified]


async def test_a_reader_may_put_parts_of_the_state_before_into_the_next() -> None:
    seen: list[tuple[str, str]] = []

    def resemble(held: Entry, newer: Entry) -> None:
        seen.append((held.data["value"], newer.data["value"]))
        msgspec.structs.force_setattr(newer.metadata, "name", held.metadata.name)

    async with (
        fakeapi.serving(filled()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", SystemClock()) as client,
    ):
        read = Reader(msgspec.json.Decoder(Entry).decode, resemble)
        cache: Cache[Entry] = Cache(client, CONFIGMAPS, read, dice(), Scope(), PATIENT)
        running = asyncio.create_task(cache.run())
        await cache.synced()
        before = cache.get("a", "m1")
        assert before is not None
        api.put("a", "m1", "second")
        await eventually(lambda: bool(seen), "the next state is read")
        running.cancel()
        assert seen == [("first", "second")]
        after = cache.get("a", "m1")
        assert after is not None
        assert after.metadata.name is before.metadata.name


async def test_others_have_their_turn_while_a_long_first_list_is_told() -> None:
    api = FakeApi()
    for number in range(2_000):
        api.put("a", f"m{number}", "first")
    turns = 0
    told_at: list[int] = []
    late = Told()

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns > 1 and 0 < len(told_at) < 2_000 and not late.changes:
                f.cache.subscribe(late)
            await asyncio.sleep(0)

    async with following(api) as f:
        f.cache.subscribe(lambda _: told_at.append(turns))
        turning = asyncio.create_task(turn())
        await f.cache.synced()
        turning.cancel()
        assert len(told_at) == 2_000
        assert len(set(told_at)) > 2
        assert len(late.changes) == 2_000
        assert late.objects == f.told.objects
        assert f.equal()
