"""Whatever happens on the way, the cache ends up equal to the server."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kube.cache import Added, Cache, Change, Deleted, Modified
from kube.client import EVERYTHING, Listing, Scope, WatchStart
from kube.errors import ApiError, Gone, ServerFault, Stalled, TooManyRequests, Unreachable
from kube.objects import BareObject, Key, ObjectMeta, key_of
from kube.resources import CONFIGMAPS, Resource
from tests.support.chance import dice
from tests.support.manualclock import LeapingClock, settle
from tests.support.quiet import quiet

D = TypeVar("D")

REFUSALS: dict[str, ApiError] = {
    "410": Gone(410, "Expired", "too old"),
    "429": TooManyRequests("busy", retry_after=1.0),
    "500": ServerFault(500, "InternalError", "oh"),
    "refused": Unreachable("nobody there"),
    "silent": Stalled("nothing said"),
}
BREAKS = ["410 as event", "500 as event", "cut", "stall", "garbled", "end", "swapped"]


@dataclass
class MemoryServer:
    """The server's side of list and watch, with a queue of what goes wrong next."""

    clock: LeapingClock = field(default_factory=LeapingClock)
    truth: dict[Key, BareObject] = field(default_factory=dict)
    version: int = 10
    compacted: int = 0
    log: list[tuple[int, bytes]] = field(default_factory=list)
    faults: deque[tuple[str, int]] = field(default_factory=deque)
    list_faults: deque[str] = field(default_factory=deque)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, name: str, *, reborn: bool) -> None:
        self.version += 1
        old = self.truth.get(("", name))
        uid = old.metadata.uid if old and not reborn else f"u{self.version}"
        new = BareObject(ObjectMeta(name=name, uid=uid, resource_version=str(self.version)))
        self.truth["", name] = new
        self._tell("MODIFIED" if old else "ADDED", new)

    def delete(self, name: str) -> None:
        old = self.truth.pop(("", name), None)
        if old is not None:
            self.version += 1
            meta = msgspec.structs.replace(old.metadata, resource_version=str(self.version))
            self._tell("DELETED", BareObject(meta))

    def bookmark(self) -> None:
        self._tell("BOOKMARK", BareObject(ObjectMeta(resource_version=str(self.version))))

    def compact(self) -> None:
        self.compacted = self.version
        self.log.clear()

    def stir(self) -> None:
        """Have open watches meet the next fault, if there is one."""
        self.stirred.set()
        self.stirred = asyncio.Event()

    def _tell(self, kind: str, thing: BareObject) -> None:
        self.log.append((self.version, msgspec.json.encode({"type": kind, "object": thing})))
        self.stir()

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        assert (resource, scope) == (CONFIGMAPS, EVERYTHING)
        await asyncio.sleep(0)
        if self.list_faults:
            raise REFUSALS[self.list_faults.popleft()]
        items = [decode(msgspec.Raw(msgspec.json.encode(thing))) for thing in self.truth.values()]
        return Listing(items, str(self.version))

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        assert (resource, scope) == (CONFIGMAPS, EVERYTHING)
        await asyncio.sleep(0)
        if self.faults and self.faults[0][0] in REFUSALS:
            raise REFUSALS[self.faults.popleft()[0]]
        if int(start.resource_version) < self.compacted:
            raise REFUSALS["410"]
        yield self._lines(int(start.resource_version))

    async def _lines(self, since: int) -> AsyncIterator[bytes]:
        sent: set[int] = set()
        while True:
            stirred = self.stirred
            due = [n for n, (v, _) in enumerate(self.log) if v > since and v not in sent]
            lines = [self.log[n][1] for n in due]
            sent |= {self.log[n][0] for n in due}
            if self.faults:
                async for line in self._broken(lines, *self.faults.popleft()):
                    yield line
                return
            for line in lines:
                yield line
            await stirred.wait()

    async def _broken(self, lines: list[bytes], fault: str, after: int) -> AsyncIterator[bytes]:
        if fault == "swapped":
            # Everything arrives, twice and backwards, before the end: nothing is lost.
            for line in lines[::-1] + lines:
                yield line
            return
        for line in lines[:after]:
            yield line
        match fault:
            case "410 as event" | "500 as event":
                yield msgspec.json.encode({"type": "ERROR", "object": {"code": int(fault[:3])}})
            case "garbled":
                yield b'{"type":"ADDED","obj'
            case "cut":
                raise Unreachable("cut")
            case "end":
                pass
            case _:
                raise REFUSALS.get(fault, Stalled("nothing said"))


def replay(told: dict[Key, BareObject], change: Change[BareObject]) -> None:
    match change:
        case Added(new):
            assert key_of(new) not in told
            told[key_of(new)] = new
        case Modified(old, new):
            assert told[key_of(old)] == old
            assert new.metadata.uid == old.metadata.uid
            told[key_of(new)] = new
        case Deleted(old):
            assert told.pop(key_of(old)) == old


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd")),
        st.tuples(st.just("reborn"), st.sampled_from("abcd")),
        st.tuples(st.just("delete"), st.sampled_from("abcd")),
        st.tuples(st.sampled_from(["bookmark", "compact", "pause"]), st.just("")),
        st.tuples(st.just("break"), st.sampled_from(BREAKS + list(REFUSALS))),
        st.tuples(st.just("break list"), st.sampled_from(list(REFUSALS))),
    ),
    max_size=40,
)


async def act(server: MemoryServer, what: str, detail: str, after: int) -> None:
    match what:
        case "put" | "reborn":
            server.put(detail, reborn=what == "reborn")
        case "delete":
            server.delete(detail)
        case "bookmark":
            server.bookmark()
        case "compact":
            server.compact()
        case "break":
            server.faults.append((detail, after))
            server.stir()
        case "break list":
            server.list_faults.append(detail)
        case _:
            await settle()


@settings(deadline=None, max_examples=100)
@given(steps=steps, seed=st.integers(0, 100), after=st.integers(0, 3))
async def test_the_cache_equals_the_server_after_any_events_and_faults(
    steps: list[tuple[str, str]], seed: int, after: int
) -> None:
    server, told = MemoryServer(), dict[Key, BareObject]()
    errors: list[Exception] = []

    def handler(change: Change[BareObject]) -> None:
        try:
            replay(told, change)
        except (AssertionError, KeyError) as error:  # the cache would only log it
            errors.append(error)

    cache = Cache(server, CONFIGMAPS, BareObject, dice(seed))
    cache.subscribe(handler)
    task = asyncio.create_task(cache.run())
    with quiet():
        for what, detail in steps:
            await act(server, what, detail, after)
            await asyncio.sleep(0)
        for _ in range(40):
            await settle()
    assert not server.faults
    assert not task.done()
    assert errors == []
    assert dict(cache.items()) == server.truth
    assert told == server.truth
    gone = sum("410" in detail or what == "compact" for what, detail in steps)
    assert cache.counters.relists["expired"] <= gone
    event(f"relists: {sum(cache.counters.relists.values())}")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
