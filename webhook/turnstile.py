"""How many reviews are judged at once, and how many may wait for that."""

import threading
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 2
"""Judging keeps a core busy, and threads share one: more at once only make each slower."""

SMALL: Final = 128 * 1024
"""Bytes. What is no larger is judged in a few milliseconds and waits for no place.

To wait, a thread hands the core on and is woken again, which takes a quarter as long as judging
does. How many of these there are at once, the number of threads bounds.
"""

MOST_WAITING: Final = 64


class Turnstile:
    """Lets a few in at a time, and small ones past them. Safe to ask from many threads."""

    def __init__(self, clock: Callable[[], float], at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._places = threading.Semaphore(at_once)
        self._waiting = 0

    def enter(self, until: float, size: int) -> bool:
        """Wait for a place; False where the line is too long or the instant `until` comes first.

        Who got in must `leave`, and say the same size.
        """
        left = until - self._clock()
        if left <= 0:
            return False
        if size <= SMALL or self._places.acquire(blocking=False):
            return True
        if self._waiting >= MOST_WAITING:
            return False
        # Two threads may count wrong by one here, which a bound can bear.
        self._waiting += 1
        try:
            return self._places.acquire(timeout=left)
        finally:
            self._waiting -= 1

    def leave(self, size: int) -> None:
        """Give the place to the next."""
        if size > SMALL:
            self._places.release()
