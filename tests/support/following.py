"""A cache that follows a fake API server, and what its handlers were told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from kube import errors
from kube.access import Credentials
from kube.backoff import BackoffSettings
from kube.cache import Added, Cache, CacheSettings, Change, Deleted, Modified
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.objects import Key, ObjectMeta, key_of
from kube.resources import CONFIGMAPS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.fakeapi import FakeApi
from tests.support.polling import eventually


class Entry(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


HASTY = CacheSettings(idle_seconds=0.3, backoff=BackoffSettings(0.001, 0.02, 120))
PATIENT = CacheSettings(idle_seconds=30, backoff=BackoffSettings(0.001, 0.02, 120))


@dataclass
class Told:
    """A subscriber that builds its own copy from nothing but the changes."""

    objects: dict[Key, Entry] = field(default_factory=dict)
    changes: list[Change[Entry]] = field(default_factory=list)

    def __call__(self, change: Change[Entry]) -> None:
        self.changes.append(change)
        match change:
            case Added(new):
                assert key_of(new) not in self.objects
                self.objects[key_of(new)] = new
            case Modified(old, new):
                assert self.objects[key_of(old)] == old
                self.objects[key_of(new)] = new
            case Deleted(old):
                assert self.objects.pop(key_of(old)) == old


@dataclass
class Fixture:
    api: FakeApi
    cache: Cache[Entry]
    told: Told
    task: asyncio.Task[None]

    def equal(self) -> bool:
        """The cache, and what its subscriber was told, equal a fresh list."""
        fresh = {key: msgspec.convert(thing, type=Entry) for key, thing in self.api.objects.items()}
        return dict(self.cache.items()) == fresh == self.told.objects

    async def becomes_equal(self) -> None:
        await eventually(self.equal, "the cache equals the server")

    async def watching(self, count: int = 1) -> None:
        await eventually(lambda: len(self.api.watches()) >= count, f"watch number {count}")


@asynccontextmanager
async def following(
    api: FakeApi, settings: CacheSettings = PATIENT, scope: Scope | None = None
) -> AsyncIterator[Fixture]:
    async with (
        fakeapi.serving(api),
        Client(Credentials(api.url, None, FixedHeader()), "tester", SystemClock()) as client,
    ):
        cache = Cache(client, CONFIGMAPS, Entry, dice(), scope or Scope(), settings)
        told = Told()
        cache.subscribe(told)
        task = asyncio.create_task(cache.run())
        try:
            yield Fixture(api, cache, told, task)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, errors.ApiError):
                await task


def filled() -> FakeApi:
    api = FakeApi()
    for n in range(3):
        api.put("a", f"m{n}", "first")
    return api
