"""How many pods may be lifted and not bound at a time, and which gang is next to lift some.

The room of a pod that waits long for its bind may be gone when its turn comes. So no more are
lifted than kube-scheduler binds in a few seconds, and those of one gang before those of the next.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from kube.clock import Clock
from kube.objects import Key

AT_LEAST: Final = 128
SECONDS: Final = 3.0  # as many as were bound in this time may be under way


class Window:
    """Counts pods from their lift until they are bound or gone.

    `wake` has a gang looked at that stood in line and may lift some now.
    """

    def __init__(self, clock: Clock, wake: Callable[[Key], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._under_way: set[str] = set()  # UIDs
        self._bound: deque[float] = deque()
        self._line: dict[Key, None] = {}

    def grant(self, key: Key, wanted: int) -> int:
        """Say how many pods the gang may lift now; one that gets fewer stands in line for more."""
        first = next(iter(self._line), key)
        left = self._size() - len(self._under_way) if first == key else 0
        granted = max(0, min(wanted, left))
        if granted < wanted:
            self._line.setdefault(key)
        else:
            self.leave(key)
        return granted

    def leave(self, key: Key) -> None:
        """Let others have the gang's turn: it has nothing to lift now."""
        if key in self._line:
            del self._line[key]
            self._next()

    @contextmanager
    def turn(self, key: Key) -> Iterator[None]:
        """Have others go first if what is done meanwhile fails: it is tried again only later."""
        try:
            yield
        except BaseException:
            self.leave(key)
            raise

    def lifted(self, uid: str) -> None:
        """A pod was lifted."""
        self._under_way.add(uid)

    def settled(self, uid: str, *, bound: bool) -> None:
        """A pod is bound, or is no more; pods that were never lifted here do not matter."""
        if uid not in self._under_way:
            return
        self._under_way.discard(uid)
        if bound:
            self._bound.append(self._clock.monotonic())
        self._next()

    def seconds(self, more: int) -> float:
        """Estimate how long binding what is under way and so many more takes, at the pace seen."""
        pods = len(self._under_way) + more
        return pods * SECONDS / max(self._recent(), AT_LEAST / 4)

    def inherit(self, uids: Iterable[str]) -> None:
        """Take over what a leader before us has lifted."""
        self._under_way.update(uids)

    def _size(self) -> int:
        return max(AT_LEAST, self._recent())

    def _recent(self) -> int:
        since = self._clock.monotonic() - SECONDS
        while self._bound and self._bound[0] < since:
            self._bound.popleft()
        return len(self._bound)

    def _next(self) -> None:
        first = next(iter(self._line), None)
        if first is not None and len(self._under_way) < self._size():
            self._wake(first)
