"""Who waits for a long list sees how far it has come; who does not, sees nothing."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import msgspec
from rich.console import Console

from kube.client import EVERYTHING, Listing, Scope, WatchStart
from kube.clock import Clock
from kube.resources import PODS, Resource
from penstock.plugin.progress import WORTH_SHOWING, Counting
from tests.support.manualclock import LeapingClock

D = TypeVar("D")


class Long:
    """A source with so many objects of each kind."""

    def __init__(self, size: int) -> None:
        self.clock: Clock = LeapingClock()
        self._size = size

    async def list_with(
        self,
        resource: Resource,  # noqa: ARG002 - each kind has as many
        decode: Callable[[msgspec.Raw], D],
        scope: Scope,  # noqa: ARG002
    ) -> Listing[D]:
        return Listing([decode(msgspec.Raw(b"1")) for _ in range(self._size)], "1")

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError


async def seen(size: int, *, terminal: bool) -> str:
    out = io.StringIO()
    source = Counting(Long(size), Console(file=out, force_terminal=terminal, width=80))
    with source.shown():
        found = await source.list_with(PODS, bytes, EVERYTHING)
    assert len(found.items) == size
    return out.getvalue()


async def test_a_long_list_shows_a_bar_on_a_terminal() -> None:
    assert "reading the cluster" in await seen(WORTH_SHOWING + 500, terminal=True)


async def test_a_short_list_and_a_pipe_show_nothing() -> None:
    assert await seen(WORTH_SHOWING - 1, terminal=True) == ""
    assert await seen(WORTH_SHOWING + 500, terminal=False) == ""
