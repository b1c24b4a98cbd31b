"""How the engine's benchmark takes time: on one core, one call after the other."""

import gc
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from controller.process import YOUNG
from tests.bench.harness import Timing

Clock = Callable[[], float]
CLOCKS: Final[dict[str, Clock]] = {"wall": time.perf_counter, "cpu": time.process_time}


@contextmanager
def pinned() -> Iterator[int | None]:
    """Stay on one core meanwhile, the last one; gives which, or None where that cannot be."""
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(before)})
    except (AttributeError, OSError):
        yield None
        return
    yield max(before)
    os.sched_setaffinity(0, before)


@contextmanager
def collected() -> Iterator[None]:
    """Look for garbage meanwhile as seldom as the controllers do."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG)
    yield
    gc.set_threshold(*before)


@dataclass(frozen=True)
class Taken:
    """What calls took: the first ever by itself, and those after it."""

    first: float
    seconds: tuple[float, ...]

    @property
    def timing(self) -> Timing:
        return Timing.of(self.seconds)


def each(calls: Sequence[Callable[[], object]], clock: Clock, warm: int = 0) -> Taken:
    """Take the time of each call; the first one is told apart, and the next few do not count."""
    seconds = []
    for call in calls:
        begun = clock()
        call()
        seconds.append(clock() - begun)
    return Taken(seconds[0], tuple(seconds[1 + warm :] or seconds))


def said(what: str) -> None:
    """Tell whoever waits how far it is."""
    sys.stderr.write(f"  {what}\n")
    sys.stderr.flush()


def per_doubling(sizes: Iterable[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """From sizes with their costs: by how much the cost grows where the size doubles, step by step.

    A step that is more or less than a doubling counts as the power of one.
    """
    pairs = sorted(sizes)
    return [
        (size, larger, (more / cost) ** (1 / math.log2(larger / size)))
        for (size, cost), (larger, more) in itertools.pairwise(pairs)
    ]
