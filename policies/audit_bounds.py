"""How many records a sort of requests may have: a bucket each, and what runs over is counted."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple


class Sort(NamedTuple):
    """What makes requests alike. Dry runs are counted by themselves."""

    namespace: str
    user: str
    rules: str
    dry_run: bool = False


MOST_SORTS: Final = 4096
REST: Final = Sort("*", "*", "*")
"""Stands for all sorts there is no room to remember."""


@dataclass(frozen=True)
class Pace:
    """So many at once, and so many a second from then on."""

    burst: float
    rate: float


EACH: Final = Pace(20.0, 1.0)
ALL: Final = Pace(200.0, 50.0)


@dataclass
class _Bucket:
    left: float
    since: float
    over: int = 0

    def take(self, pace: Pace, now: float) -> bool:
        self.left = min(pace.burst, self.left + max(0.0, now - self.since) * pace.rate)
        self.since = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class Bounds:
    """Says who may have a record now. The hands of the clock come with each question."""

    def __init__(self, each: Pace = EACH, all_: Pace = ALL) -> None:
        self._each, self._all = each, all_
        self._whole = _Bucket(all_.burst, 0.0)
        self._sorts: OrderedDict[Sort, _Bucket] = OrderedDict()

    def take(self, sort: Sort, now: float) -> int | None:
        """Give how many of this sort went without since the last record; None to go without too."""
        bucket = self._bucket(sort, now)
        if bucket.take(self._each, now) and self._whole.take(self._all, now):
            over, bucket.over = bucket.over, 0
            return over
        bucket.over += 1
        return None

    def owed(self) -> list[tuple[Sort, int]]:
        """Give what went without and is not told yet, as told now."""
        found = [(sort, bucket.over) for sort, bucket in self._sorts.items() if bucket.over]
        for sort, _ in found:
            self._sorts[sort].over = 0
        return found

    def _bucket(self, sort: Sort, now: float) -> _Bucket:
        found = self._sorts.get(sort)
        if found is None:
            if len(self._sorts) >= MOST_SORTS and not self._forget(now):
                sort = REST
            found = self._sorts.setdefault(sort, _Bucket(self._each.burst, now))
        self._sorts.move_to_end(sort)
        return found

    def _forget(self, now: float) -> bool:
        """Forget whoever was not heard of for longest, if its bucket is full again and all told."""
        oldest = next(iter(self._sorts))
        bucket = self._sorts[oldest]
        full = bucket.left + (now - bucket.since) * self._each.rate >= self._each.burst
        if bucket.over or not full:
            return False
        del self._sorts[oldest]
        return True
