"""A queue of keys to work on: each at most once in line, and never worked on twice at once."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from kube.clock import Clock
from kube.tallies import QueueTally, Result

K = TypeVar("K", bound=Hashable)

_logger = logging.getLogger(__name__)

_FIRST_RETRY = 0.005
_LONGEST_RETRY = 300.0
_DOUBLINGS = 16  # 5 ms * 2**16 is past the longest; more would only make huge numbers


class Workqueue(Generic[K]):
    """Keys that wait for a worker.

    A key added while it waits is not added again; one added while it is worked on is worked on once
    more afterwards. So a worker that reads the newest state when it starts misses nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self.tally = QueueTally()
        self.concurrency = 0
        self._clock = clock
        self._line: asyncio.Queue[K] = asyncio.Queue()
        self._dirty: dict[K, float] = {}  # since when they wait to be worked on
        self._processing: dict[K, float] = {}  # since when they are worked on
        self._failed: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._tickets = 0
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        """Return how many keys wait for a worker now; delayed ones are not counted."""
        return self._line.qsize()

    def add(self, key: K) -> None:
        """Have the key worked on soon."""
        if key in self._dirty:
            return
        self.tally.added += 1
        self._dirty[key] = self._clock.monotonic()
        if key not in self._processing:
            self._line.put_nowait(key)

    def unfinished(self) -> list[float]:
        """Return for how many seconds each key that is worked on now has been."""
        now = self._clock.monotonic()
        return [now - begun for begun in self._processing.values()]

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on in `seconds`; of several such wishes the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + seconds
        if at >= self._due.get(key, float("inf")):
            return
        self._due[key] = at
        self._tickets += 1  # keys need not be comparable
        heapq.heappush(self._later, (at, self._tickets, key))
        if self._later[0][1] == self._tickets:
            self._wake.set()

    def retry(self, key: K) -> float:
        """Have the key worked on again after a wait that doubles each time; return the seconds."""
        self.tally.retried += 1
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        wait = min(_LONGEST_RETRY, _FIRST_RETRY * 2.0 ** min(count, _DOUBLINGS))
        self.add_after(key, wait)
        return wait

    def blame(self, key: K) -> None:
        """Have the work that goes on with the key counted as failed, though it does not raise."""
        self._failed.add(key)

    def forget(self, key: K) -> None:
        """Let the key's next retry be a quick one again."""
        self._failures.pop(key, None)

    async def run(self, worker: Callable[[K], Awaitable[None]], concurrency: int) -> None:
        """Work on keys until cancelled, `concurrency` at a time.

        A worker that raises is logged with its traceback and the key is retried; one that returns
        without having called `retry` has the key's failures forgotten. A key whose worker is
        cancelled goes back into the line, for another run.
        """
        self.concurrency = concurrency
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._work(worker))
            group.create_task(self._hand_out())

    async def _work(self, worker: Callable[[K], Awaitable[None]]) -> None:
        while True:
            key = await self._line.get()
            begun = self._processing[key] = self._clock.monotonic()
            self.tally.waits.note(begun - self._dirty.pop(key, begun))
            failures, due = self._failures.get(key, 0), self._due.get(key)
            try:
                await worker(key)
            except (asyncio.CancelledError, Exception) as error:
                if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                    self._dirty.setdefault(key, begun)
                    raise
                # If only something inside the worker was cancelled, the pool must not shrink.
                wait = self.retry(key)
                self.blame(key)
                _logger.exception("work on %s failed, next try in %.3f s", key, wait)
            finally:
                del self._processing[key]
                if key in self._dirty:
                    self._line.put_nowait(key)
            self._count(key, begun, failures, due)
            # A long line of keys that wait for nothing would keep everything else from running.
            await asyncio.sleep(0)

    def _count(self, key: K, begun: float, failures: int, due: float | None) -> None:
        """Count work that has ended; `failures` and `due` are of when it began."""
        retried = self._failures.get(key, 0) != failures
        if key in self._failed:
            self._failed.discard(key)
            result = Result.ERROR
        elif retried:
            result = Result.REQUEUE
        elif self._due.get(key) != due:
            result = Result.REQUEUE_AFTER
        else:
            result = Result.SUCCESS
        if not retried:
            self.forget(key)
        self.tally.worked(self._clock.monotonic() - begun, result)

    async def _hand_out(self) -> None:
        """Move keys into the line as they fall due."""
        while True:
            self._wake.clear()
            now = self._clock.monotonic()
            while self._later and self._later[0][0] <= now:
                at, _, key = heapq.heappop(self._later)
                if self._due.get(key) == at:  # else an earlier wish has been served
                    del self._due[key]
                    self.add(key)
            if self._later:
                await self._sleep_or_wake(self._later[0][0] - now)
            else:
                await self._wake.wait()

    async def _sleep_or_wake(self, seconds: float) -> None:
        tasks = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._wake.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
