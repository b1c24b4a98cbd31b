"""A copy of one kind's objects that follows the API server: list once, then watch.

After any fault the copy becomes equal to a fresh list again. Cut, stalled or refused watches are
opened again where they stood; only an expired resourceVersion (410), a kind that went away, or a
watch that fails over and over at the same place costs another list.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, ItemsView, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar, assert_never

import msgspec

from kube.backoff import Backoff, BackoffSettings
from kube.client import EVERYTHING, Listing, Scope, WatchStart
from kube.clock import Clock
from kube.errors import (
    TOO_LARGE_VERSION,
    ApiError,
    Gone,
    NotFound,
    ServerFault,
    Stalled,
    TooManyRequests,
    Undecodable,
    Unreachable,
)
from kube.objects import BareObject, Key, KubeObject, key_of
from kube.resources import Resource
from kube.store import Added, Change, Deleted, Modified, Store
from kube.stream import Absent, Bookmark, Failed, Present, StreamEvent, read_event

__all__ = ["Added", "Cache", "CacheSettings", "Change", "Counters", "Deleted", "Modified"]

T = TypeVar("T", bound=KubeObject)
D = TypeVar("D")

Handler: TypeAlias = Callable[[Change[T]], None]

_logger = logging.getLogger(__name__)

_FIRST = "first"
_FRUITLESS_WATCHES = 3
_AT_A_TIME = 500  # objects of a first list, between which others have their turn
_SHORTEST_WATCH = 1.0  # seconds; a watch that ends sooner and says nothing is a fault
# Faults that pass by themselves. Any other, at the first list, is for the process to die of.
_PASSING = (Unreachable, ServerFault, TooManyRequests, Gone)

_bare = msgspec.json.Decoder(BareObject)


class Source(Protocol):
    """What a cache needs of a client."""

    @property
    def clock(self) -> Clock:
        """Return the clock that waits are slept on."""
        ...

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        """Return all objects of the scope."""
        ...

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch that yields lines."""
        ...


@dataclass(frozen=True)
class CacheSettings:
    """Seconds: silence that makes a watch suspect, and how long the server is to keep one."""

    idle_seconds: float = 70.0
    shortest_server_seconds: int = 290
    longest_server_seconds: int = 580
    backoff: BackoffSettings = field(default_factory=BackoffSettings)


@dataclass
class Counters:
    """What happened so far, for metrics; only the cache writes here."""

    relists: Counter[str] = field(default_factory=Counter)
    watch_restarts: Counter[str] = field(default_factory=Counter)
    events: int = 0
    unreadable: int = 0
    last_heard: float | None = None


@dataclass(frozen=True)
class Reader(Generic[T]):
    """How raw objects are read that no one type describes.

    `resemble` is given the state that is held of an object, and a newer one that nobody has seen
    yet: it may put parts of the one into the other that are equal.
    """

    read: Callable[[msgspec.Raw], T]
    resemble: Callable[[T, T], None] | None = None


class Cache(Generic[T]):
    """Objects of one kind by namespace and name, in the type `kind`, or as a Reader reads them.

    `run` keeps it up to date and never returns; start it as a task and wait for `synced`.
    """

    def __init__(
        self,
        source: Source,
        resource: Resource,
        kind: type[T] | Reader[T],
        rng: random.Random,
        scope: Scope = EVERYTHING,
        settings: CacheSettings | None = None,
    ) -> None:
        self.counters = Counters()
        self._source = source
        self._clock = source.clock
        self._resource = resource
        self._scope = scope
        self._rng = rng
        self._settings = settings or CacheSettings()
        self._backoff = Backoff(self._settings.backoff, rng)
        self._reader = (
            kind if isinstance(kind, Reader) else Reader(msgspec.json.Decoder(kind).decode)
        )
        self._store: Store[T] = Store()
        self._handlers: list[Handler[T]] = []
        self._to_come: list[Change[T]] = []  # of the first list, which is still being told
        self._seen = 0
        self._fruitless = 0
        self._settled = asyncio.Event()
        self._listing = asyncio.Lock()
        self._failure: Exception | None = None

    def get(self, namespace: str | None, name: str) -> T | None:
        """Return the object, or None; cluster-wide kinds have an empty namespace."""
        return self._store.objects.get((namespace or "", name))

    @property
    def objects(self) -> Mapping[Key, T]:
        """Return a live view of all objects by key; do not await while iterating over it."""
        return self._store.objects

    def items(self) -> ItemsView[Key, T]:
        """Return a live view of keys and objects; do not await while iterating over it."""
        return self._store.objects.items()

    def __iter__(self) -> Iterator[T]:
        """Iterate over the objects; do not await meanwhile."""
        return iter(self._store.objects.values())

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._store.objects)

    @property
    def is_synced(self) -> bool:
        """Return whether the first list has arrived."""
        return self._settled.is_set() and self._failure is None

    async def synced(self) -> None:
        """Return once the first list has arrived; raise if `run` has failed instead."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def subscribe(self, handler: Handler[T]) -> None:
        """Call `handler` for every change from now on, and at once for each object already here.

        Handlers run inside the cache's own task: they must be quick. What one raises is logged.
        """
        self._handlers.append(handler)
        later = {key_of(change.new) for change in self._to_come if isinstance(change, Added)}
        for key, thing in list(self.items()):
            if key not in later:
                self._tell(handler, Added(thing))

    async def relist(self, reason: str) -> None:
        """List once more, beside the watch: for who must not act on what a stalled watch shows."""
        await self._list(reason)

    def observe(self, body: bytes) -> None:
        """Take the server's answer to a write of our own, so that we never act on less than we did.

        Handlers hear of it at once; the watch's own telling of it then changes nothing.
        """
        thing = self._read(msgspec.Raw(body))
        if not isinstance(thing, _Unreadable):
            self._announce(self._store.put(thing))

    async def run(self) -> None:
        """Follow the server until cancelled.

        Before the first list has arrived, an error that waiting cannot mend (no such kind, no
        right, no valid credentials) is raised, here and in `synced`. Later it is only logged.
        """
        try:
            await self._follow()
        except Exception as error:
            self._failure = error
            self._settled.set()
            raise

    async def _follow(self) -> None:
        reason: str | None = _FIRST
        while True:
            try:
                if reason is not None:
                    await self._list(reason)
                    reason = None
                await self._watch()
            except ApiError as error:
                if not self.is_synced and not isinstance(error, _PASSING):
                    raise
                reason = reason or self._reason_to_list(error)
                await self._clock.sleep(self._wait_after(error))

    async def _list(self, reason: str) -> None:
        # One after the other: an older list must not be taken after a newer one.
        async with self._listing:
            await self._list_now(reason)

    async def _list_now(self, reason: str) -> None:
        listing = await self._source.list_with(self._resource, self._read_again, self._scope)
        if not listing.resource_version.isdecimal():
            raise Undecodable(f"the list of {self._resource.full_name} has no resourceVersion")
        items: list[T] = []
        for item in listing.items:
            # The last state we could read is closer to the truth than none.
            kept = self.get(item.namespace, item.name) if isinstance(item, _Unreadable) else item
            if kept is not None:
                items.append(kept)
        changes = self._store.replace(items, listing.resource_version)
        self._seen = int(listing.resource_version)
        self._fruitless = 0
        if reason != _FIRST:
            self.counters.relists[reason] += 1
            _logger.info("listed %s again: %s", self._resource.full_name, reason)
        self._heard()
        if reason == _FIRST:
            await self._introduce(changes)
        else:
            self._announce(changes)
        self._settled.set()

    async def _introduce(self, changes: list[Change[T]]) -> None:
        """Tell of the first list bit by bit: until that is told nothing else comes of the kind."""
        self._to_come = changes
        while self._to_come:
            some, self._to_come = self._to_come[:_AT_A_TIME], self._to_come[_AT_A_TIME:]
            self._announce(some)
            await asyncio.sleep(0)

    async def _watch(self) -> None:
        settings = self._settings
        start = WatchStart(
            str(self._seen),
            self._rng.randint(settings.shortest_server_seconds, settings.longest_server_seconds),
            settings.idle_seconds,
        )
        begun = self._clock.monotonic()
        before = self.counters.events
        async with self._source.watch(self._resource, self._scope, start) as lines:
            self._backoff.succeeded(self._clock.monotonic())
            async for line in lines:
                # Counted as bad until it proves good, so that an error leaves the count standing.
                self._fruitless += 1
                self._take(read_event(line))
                self._fruitless = 0
        self.counters.watch_restarts["closed"] += 1
        short = self._clock.monotonic() - begun < _SHORTEST_WATCH
        if short and self.counters.events == before:
            raise Unreachable("the server closes the watch as soon as it is opened")

    def _take(self, event: StreamEvent) -> None:
        match event:
            case Present(body):
                thing = self._read(body)
                if isinstance(thing, _Unreadable):
                    self._saw(thing.resource_version)
                else:
                    self._saw(thing.metadata.resource_version)
                    self._announce(self._store.put(thing))
            case Absent(body):
                gone = _identity(body)
                self._saw(gone.metadata.resource_version)
                self._announce(self._store.remove(key_of(gone), gone.metadata.resource_version))
            case Bookmark(resource_version):
                self._saw(resource_version)
            case Failed(error):
                raise error
            case _:
                assert_never(event)
        self.counters.events += 1
        self._heard()

    def _read(self, body: msgspec.Raw) -> "T | _Unreadable":
        # One odd object must not take the rest of the cache down with it.
        try:
            thing = self._reader.read(body)
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            meta = _identity(body).metadata
            self.counters.unreadable += 1
            _logger.error(  # noqa: TRY400 - the trace would show nothing but the decoder
                "%s %s/%s cannot be read and stays as it was: %s",
                self._resource.kind,
                meta.namespace,
                meta.name,
                error,
            )
            return _Unreadable(meta.namespace, meta.name, meta.resource_version)
        if not thing.metadata.resource_version.isdecimal():
            raise Unreachable(f"the server sent a {self._resource.kind} without resourceVersion")
        if self._reader.resemble is not None:
            held = self._store.objects.get(key_of(thing))
            if held is not None:
                self._reader.resemble(held, thing)
        return thing

    def _read_again(self, body: msgspec.Raw) -> "T | _Unreadable":
        """Read an object of a list, or give what is held of it: so a list takes no room twice."""
        thing = self._read(body)
        if isinstance(thing, _Unreadable):
            return thing
        held, now = self._store.objects.get(key_of(thing)), thing.metadata
        if held is None or held.metadata.resource_version != now.resource_version:
            return thing
        return held if held.metadata.uid == now.uid else thing

    def _saw(self, resource_version: str) -> None:
        if not resource_version.isdecimal():
            raise Unreachable(f"the watch sent the resourceVersion {resource_version!r}")
        self._seen = max(self._seen, int(resource_version))

    def _heard(self) -> None:
        self.counters.last_heard = self._clock.monotonic()

    def _announce(self, changes: list[Change[T]]) -> None:
        for change in changes:
            for handler in self._handlers:
                self._tell(handler, change)

    def _tell(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            _logger.exception("a handler of %s failed on %s", self._resource.full_name, change)

    def _reason_to_list(self, error: ApiError) -> str | None:
        if isinstance(error, Gone) or error.has_cause(TOO_LARGE_VERSION):
            return "expired"
        if isinstance(error, NotFound):
            return "missing"
        if self._fruitless >= _FRUITLESS_WATCHES:
            return "stuck"
        return None

    def _wait_after(self, error: ApiError) -> float:
        name = self._resource.full_name
        now = self._clock.monotonic()
        self.counters.watch_restarts[type(error).__name__] += 1
        if isinstance(error, Stalled):
            # The silence itself was the wait.
            _logger.info("watching %s anew: %s", name, error)
            return 0.0
        if isinstance(error, TooManyRequests) and error.retry_after is not None:
            return error.retry_after
        wait = self._backoff.failed(now)
        level = logging.WARNING if isinstance(error, _PASSING) else logging.ERROR
        _logger.log(level, "following %s failed, next try in %.1f s: %s", name, wait, error)
        return wait


@dataclass(frozen=True)
class _Unreadable:
    namespace: str
    name: str
    resource_version: str


def _identity(body: msgspec.Raw) -> BareObject:
    try:
        return _bare.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"the server sent something that is no object: {error}") from error
