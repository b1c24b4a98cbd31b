"""Clocks whose hands the test turns."""

import asyncio
import heapq
import math
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class _Hands:
    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return 1000.0 + self._elapsed

    def skip(self, seconds: float) -> None:
        """Move the hands while nobody gets to run, as when a machine sleeps."""
        self._elapsed += seconds


class ManualClock(_Hands):
    """Stands still until `advance`; then sleepers wake in order, each at its own instant."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._tickets = 0

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tickets += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._tickets, woken))
        await woken

    def next_wake(self) -> float:
        """Seconds until the first sleeper wakes; infinite when nobody sleeps."""
        self._bury()
        return self._sleepers[0][0] - self._elapsed if self._sleepers else math.inf

    async def advance(self, seconds: float) -> None:
        """Move the hands, letting whoever wakes on the way run until it waits again."""
        end = self._elapsed + seconds
        await settle()
        while self._elapsed + self.next_wake() <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, at)
            woken.set_result(None)
            await settle()
        self._elapsed = end
        await settle()

    def _bury(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)


class LeapingClock(_Hands):
    """Sleeping moves the hands at once; `slept` tells what was asked for."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.skip(max(0.0, seconds))
        await asyncio.sleep(0)


async def settle() -> None:
    """Let every task run until all wait for something that only the test can bring."""
    for _ in range(20):
        await asyncio.sleep(0)
