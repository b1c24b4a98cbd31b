"""When words about a set are said: at once while all is calm, else after the work.

A status is out of date in a moment while its set is being made, and while hundreds of sets are, it
takes the API server's time from making them. So words about a set wait for others that are at work,
or whose pods were let go and have no node yet. When that takes long, a few sets at a time are
spoken of all the same. What a clock starts by is said at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kube.objects import Key

# Seconds, all of them.
CALM: Final = 0.25  # without any work, and it is calm
_QUIET: Final = 1.0  # between words about one set that is being made
# Those who have waited so long are let speak, so many in each time that could have been calm.
_LATE: Final = 10.0
_FEW: Final = 1
_LATEST: Final = 30.0  # and who has waited so long, in any case


class Speaking:
    """Remembers who is at work, and whose words wait since when. Instants are given to it."""

    def __init__(self) -> None:
        self._spoken: dict[Key, float] = {}
        self._held: dict[Key, float] = {}  # those who wait longest come first
        self._let: set[Key] = set()
        self._working: set[Key] = set()
        self._worked: tuple[tuple[Key, float], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether words of any set wait for others."""
        return bool(self._held)

    def is_let(self, key: Key) -> bool:
        """Tell whether words about a set have waited so long that they wait for nothing now."""
        return key in self._let

    def waits(self, key: Key, now: float, is_pressing: Callable[[], bool] = lambda: False) -> bool:
        """Tell whether words about a set, if there are any, wait for others that are at work.

        Pressing ones never do; whether they are is asked only of words that would else wait.
        """
        if key not in self._let and self._others_work(key, now) and not is_pressing():
            self._held.setdefault(key, now)
            return True
        self._held.pop(key, None)
        self._let.discard(key)
        return False

    def may(self, key: Key, now: float, *, busy: bool) -> bool:
        """Tell whether words about a set may be said for its own part; they count as said then.

        `busy` is whether the set itself is being made or taken away.
        """
        last = self._spoken.setdefault(key, now)
        if busy and now < last + _QUIET:
            return False
        self._spoken[key] = now
        return True

    @contextmanager
    def working(self, key: Key, *, busy: bool) -> Iterator[None]:
        """Have others wait for a set that is being made or taken away, for as long as it is."""
        if busy:
            self._working.add(key)
        try:
            yield
        finally:
            self._working.discard(key)

    def worked(self, key: Key, begun: float, now: float, *, busy: bool) -> None:
        """Note what was done to a set since it began."""
        if busy:
            self._worked = ((key, now), *[each for each in self._worked if each[0] != key][:1])
        if self._spoken.get(key) == begun:
            # The next word waits at least as long as it took to do what the last one was on.
            self._spoken[key] = max(begun, now + (now - begun) - _QUIET)

    def let_speak(self, now: float) -> list[Key]:
        """Choose sets to be looked at again; to be asked each time that could have been calm."""
        late = [key for key, since in self._held.items() if now >= since + _LATE]
        latest = [key for key in late if now >= self._held[key] + _LATEST]
        self._let.update(latest or late[:_FEW])
        return [key for key in self._held if key in self._let or not self._others_work(key, now)]

    def forget(self, key: Key) -> None:
        """Forget a set that is gone."""
        self._spoken.pop(key, None)
        self._held.pop(key, None)
        self._let.discard(key)

    def _others_work(self, key: Key, now: float) -> bool:
        return bool(self._working - {key}) or any(
            maker != key and now < at + CALM for maker, at in self._worked
        )
