"""The one place that reads the machine's clocks; everything else is handed a Clock."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the code may know of time, so that tests can turn the hands."""

    def now(self) -> datetime:
        """Return the wall-clock instant, aware and in UTC; only for showing and comparing dates."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards; the zero means nothing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return no sooner than `seconds` later; a negative number is a zero."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the wall-clock instant in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the operating system's monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for `seconds`."""
        await asyncio.sleep(max(0.0, seconds))
