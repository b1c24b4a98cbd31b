"""How far a long list has come, shown to people who wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, TypeVar

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from kube.cache import Source
from kube.client import Client, Listing, Scope, WatchStart
from kube.clock import Clock
from kube.errors import ApiError
from kube.resources import NODES, PODS, Resource

D = TypeVar("D")

# So many objects are there before anybody would look at a bar.
WORTH_SHOWING: Final = 2000
_COUNTED: Final = (PODS, NODES)  # how many of these there are is asked for first


class _ListMeta(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _Head(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class Counting:
    """A source that shows how many objects have come, where somebody can see it."""

    def __init__(self, source: Source, console: Console) -> None:
        self.clock: Clock = source.clock
        self._source = source
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("reading the cluster", total=None)
        self._come = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it meanwhile, if there is much to come."""
        self._come = 0
        self._bar.reset(self._task, total=None)
        try:
            yield
        finally:
            self._bar.stop()

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        """List, and count what comes."""
        if resource in _COUNTED:
            await self._expect(resource)

        def counted(raw: msgspec.Raw) -> D:
            self._count()
            return decode(raw)

        return await self._source.list_with(resource, counted, scope)

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch."""
        return self._source.watch(resource, scope, start)

    def _count(self) -> None:
        self._come += 1
        if self._come == WORTH_SHOWING:
            self._bar.start()
        if self._come >= WORTH_SHOWING and self._come % 100 == 0:
            self._bar.update(self._task, completed=self._come)

    async def _expect(self, resource: Resource) -> None:
        """Learn how many there are; where that is not told, the bar has no end."""
        if self._bar.disable or not isinstance(self._source, Client):
            return
        try:
            async with asyncio.timeout(1.0):
                body = await self._source.raw_get(f"{resource.path()}?limit=1")
            more = msgspec.json.decode(body, type=_Head).metadata.remaining_item_count + 1
        except (ApiError, TimeoutError, msgspec.DecodeError):
            return
        self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + more)
