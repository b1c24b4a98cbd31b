"""Telling the person what goes on: lines, and steps whose seconds are seen to pass."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TextIO

from kube.clock import Clock

LIVE_SECONDS: Final = 1.0
PLAIN_SECONDS: Final = 15.0


class Reporter(Protocol):
    """Where the lab says what it does."""

    def say(self, line: str) -> None:
        """Say one thing that is so."""
        ...

    def step(self, what: str, estimate: float | None) -> AbstractAsyncContextManager[None]:
        """Show, while inside, that `what` goes on and for how long; `estimate` is in seconds."""
        ...


class Silence:
    """A reporter nobody listens to."""

    def say(self, line: str) -> None:
        """Say nothing."""

    @contextlib.asynccontextmanager
    async def step(self, what: str, estimate: float | None) -> AsyncIterator[None]:  # noqa: ARG002 - as whoever shows it
        """Show nothing."""
        yield


class Screen:
    """Reports to a stream: one line that counts on a terminal, a line now and then elsewhere."""

    def __init__(self, stream: TextIO, clock: Clock, *, live: bool) -> None:
        self._stream = stream
        self._clock = clock
        self._live = live

    def say(self, line: str) -> None:
        """Write one line."""
        self._write(f"{line}\n")

    @contextlib.asynccontextmanager
    async def step(self, what: str, estimate: float | None) -> AsyncIterator[None]:
        """Say what begins, how long it has taken so far, and how long it took in the end."""
        started = self._clock.monotonic()
        if not self._live:
            self.say(progress_line(what, 0.0, estimate))
        ticker = asyncio.create_task(self._tick(what, started, estimate))
        outcome = "stopped after"
        try:
            yield
            outcome = "done in"
        finally:
            ticker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticker
            spent = duration(self._clock.monotonic() - started)
            self.say(f"{what}: {outcome} {spent}")

    async def _tick(self, what: str, started: float, estimate: float | None) -> None:
        while True:
            if self._live:
                self._write(progress_line(what, self._clock.monotonic() - started, estimate))
            await self._clock.sleep(LIVE_SECONDS if self._live else PLAIN_SECONDS)
            if not self._live:
                self.say(progress_line(what, self._clock.monotonic() - started, estimate))

    def _write(self, text: str) -> None:
        # On a terminal a counting line stays open; whatever comes next is written over it.
        clear = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{clear}{text}")
        self._stream.flush()


def progress_line(what: str, elapsed: float, estimate: float | None) -> str:
    """Return the line that is shown while something goes on."""
    expected = f" (usually {duration(estimate)})" if estimate is not None else ""
    return f"{what} ... {duration(elapsed)}{expected}"


def duration(seconds: float) -> str:
    """Return a span as people read it: 0.4 s, 12 s, 3 min 05 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
