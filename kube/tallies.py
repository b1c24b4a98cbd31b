"""What queues and calls are counted by: plain numbers, read only when somebody looks.

An addition is all that counting costs where work is done; `kube.families` makes series of it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

# From ten nanoseconds to a quarter of an hour, as dashboards of workqueues expect.
_QUEUE_BOUNDS: Final = tuple(10.0**power for power in range(-8, 4))
_WORK_BOUNDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip


class Result(StrEnum):
    """How work on a key ended."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class Timings:
    """How many things took how long. Only one thread may note them."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = bounds
        self.counts: Final = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, seconds: float) -> None:
        """One more took so long."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def up_to(self) -> list[int]:
        """Give for each bound, and for no bound at all, how many took at most so long."""
        sums, so_far = [], 0
        for count in self.counts:
            so_far += count
            sums.append(so_far)
        return sums


class QueueTally:
    """What came of the keys of one queue."""

    __slots__ = ("added", "results", "retried", "waits", "works", "works_closely")

    def __init__(self) -> None:
        self.added = 0
        self.retried = 0
        self.waits: Final = Timings(_QUEUE_BOUNDS)
        self.works: Final = Timings(_QUEUE_BOUNDS)
        self.works_closely: Final = Timings(_WORK_BOUNDS)
        self.results: Final = dict.fromkeys(Result, 0)

    def worked(self, seconds: float, result: Result) -> None:
        """Work on a key came to an end."""
        self.works.note(seconds)
        self.works_closely.note(seconds)
        self.results[result] += 1


class CallTally:
    """Requests to API servers, by host, method and the status they were answered with."""

    LOST: Final = "<error>"
    """Stands for the status where there was no answer."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Final[dict[tuple[str, str, str], int]] = {}

    def answered(self, host: str, method: str, status: str) -> None:
        """One more request came to an end."""
        key = host, method, status
        self.counts[key] = self.counts.get(key, 0) + 1
