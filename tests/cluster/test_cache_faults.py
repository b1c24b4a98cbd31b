"""A cache behind a network that fails, in front of a real API server, while objects change."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pytest

from kube import credentials
from kube.access import Credentials
from kube.backoff import BackoffSettings
from kube.cache import Added, Cache, CacheSettings, Change, Deleted, Modified
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.objects import Key, ObjectMeta, key_of
from kube.resources import CONFIGMAPS, NAMESPACES
from kube.tokens import FixedHeader
from penstock.lab.state import Lab
from tests.support.chance import dice
from tests.support.faultproxy import Fault, FaultProxy, proxying
from tests.support.polling import eventually

pytestmark = pytest.mark.cluster

SETTINGS = CacheSettings(idle_seconds=1.5, backoff=BackoffSettings(0.05, 0.5, 120))
HEAL_SECONDS = 20.0


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


@dataclass
class Churn:
    """Creates, changes and deletes twenty ConfigMaps for as long as it runs."""

    client: Client
    namespace: str
    writes: int = 0
    alive: set[str] = field(default_factory=set)

    async def run(self) -> None:
        chance = dice(7)
        while True:
            name = f"m{chance.randrange(20)}"
            if name not in self.alive:
                body = {"metadata": {"name": name}, "data": {"n": str(self.writes)}}
                await self.client.create(CONFIGMAPS, body, self.namespace)
                self.alive.add(name)
            elif chance.random() < 0.3:
                await self.client.delete(CONFIGMAPS, name, self.namespace)
                self.alive.discard(name)
            else:
                change = {"data": {"n": str(self.writes)}}
                await self.client.merge_patch(CONFIGMAPS, name, change, self.namespace)
            self.writes += 1
            await asyncio.sleep(0.005)

    async def more(self, count: int) -> None:
        """Return after so many further writes."""
        goal = self.writes + count
        await eventually(lambda: self.writes >= goal, f"{count} more writes", 30)


@dataclass
class Bench:
    """A cache that reaches the server through the proxy, and a client that reaches it directly."""

    direct: Client
    proxy: FaultProxy
    cache: Cache[ConfigMap]
    churn: Churn
    told: dict[Key, ConfigMap] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        self.cache.subscribe(self.hear)
        self.tasks = [
            asyncio.create_task(self.cache.run()),
            asyncio.create_task(self.churn.run()),
        ]

    def has_watched(self, times: int) -> bool:
        return self.proxy.passed["watch"] >= times

    async def stop_churn(self) -> None:
        await end(self.tasks.pop())

    def hear(self, change: Change[ConfigMap]) -> None:
        match change:
            case Added(new):
                if key_of(new) in self.told:
                    self.complaints.append(f"added twice: {new}")
                self.told[key_of(new)] = new
            case Modified(old, new):
                if self.told.get(key_of(old)) != old:
                    self.complaints.append(f"changed from another state: {old}")
                self.told[key_of(new)] = new
            case Deleted(old):
                if self.told.pop(key_of(old), None) != old:
                    self.complaints.append(f"deleted from another state: {old}")

    async def fresh(self) -> dict[Key, ConfigMap]:
        listing = await self.direct.list_pages(CONFIGMAPS, ConfigMap, self.churn.namespace)
        return {key_of(thing): thing for thing in listing.items}

    async def becomes_equal(self) -> None:
        fresh = await self.fresh()
        await eventually(
            lambda: dict(self.cache.items()) == fresh, "the cache equals a fresh list", HEAL_SECONDS
        )
        assert self.told == fresh
        assert self.complaints == []


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@asynccontextmanager
async def bench(lab: Lab) -> AsyncIterator[Bench]:
    """Everything but the fault, in a namespace of its own, with the churn under way."""
    clock = SystemClock()
    access = credentials.load(lab.kubeconfig, None, clock, {})
    namespace = f"cache-faults-{secrets.token_hex(3)}"
    async with Client(access, "test", clock) as direct, proxying(access) as proxy:
        await direct.create(NAMESPACES, {"metadata": {"name": namespace}})
        through = Credentials(proxy.url, None, FixedHeader())
        async with Client(through, "test", clock) as client:
            cache = Cache(client, CONFIGMAPS, ConfigMap, dice(), Scope(namespace), SETTINGS)
            made = Bench(direct, proxy, cache, Churn(direct, namespace))
            made.start()
            try:
                await cache.synced()
                await made.churn.more(30)
                yield made
            finally:
                for task in made.tasks:
                    await end(task)
                await direct.delete(NAMESPACES, namespace)


@pytest.mark.parametrize(
    ("fault", "seen_as"),
    [
        pytest.param(Fault.CUT, "Unreachable", id="cut"),
        pytest.param(Fault.BUSY, "TooManyRequests", id="429"),
        pytest.param(Fault.BROKEN, "ServerFault", id="500"),
        pytest.param(Fault.STALL, "Stalled", id="stall"),
        pytest.param(Fault.GONE_STATUS, "Gone", id="410 as status"),
        pytest.param(Fault.GONE_EVENT, "Gone", id="410 as event"),
    ],
)
async def test_after_each_fault_the_cache_equals_a_fresh_list(
    lab: Lab, fault: Fault, seen_as: str
) -> None:
    async with bench(lab) as b:
        counters = b.cache.counters
        b.proxy.inflict(fault)
        await eventually(lambda: counters.watch_restarts[seen_as] >= 2, f"{fault} is felt", 30)
        await b.churn.more(30)
        b.proxy.heal()
        await b.churn.more(30)
        await b.stop_churn()
        await b.becomes_equal()
        if seen_as == "Gone":
            assert set(counters.relists) == {"expired"}
        else:
            assert counters.relists == {}
            assert b.proxy.passed["list"] == 1


async def test_a_server_that_drops_everybody_at_once_costs_no_list(lab: Lab) -> None:
    async with bench(lab) as b:
        for _ in range(5):
            again = b.proxy.passed["watch"] + 1
            b.proxy.restart()
            await b.churn.more(10)
            await eventually(partial(b.has_watched, again), "it is back")
        await b.stop_churn()
        await b.becomes_equal()
        assert b.cache.counters.relists == {}
