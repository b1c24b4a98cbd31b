"""Looks that take long come less often, so that large ones leave time for all others."""

from typing import Final

from kube.clock import Clock
from kube.objects import Key
from kube.workqueue import Workqueue

# A look that takes longer than this, in seconds, is followed by a rest of so many times as long.
SHORT_LOOK: Final = 0.002
REST: Final = 3.0


class Rests:
    """Has keys of a queue looked at when something happens to them, but not all the time.

    What happens to one key is often told piece by piece, as each of its pods is made and bound.
    """

    def __init__(self, queue: Workqueue[Key], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._until: dict[Key, float] = {}

    def wake(self, key: Key) -> None:
        """Have a key looked at: soon, or when it has rested."""
        self._queue.add_after(key, self._until.get(key, 0.0) - self._clock.monotonic())

    def looked(self, key: Key, begun: float) -> None:
        """Have the next look at a key wait in proportion to what this one took until now."""
        ended = self._clock.monotonic()
        if ended - begun > SHORT_LOOK:
            self._until[key] = ended + REST * (ended - begun)
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Have the next look at a key come at once."""
        self._until.pop(key, None)
