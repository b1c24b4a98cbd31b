"""Looks that take long come less often, so that large ones leave time for all others."""

from collections import OrderedDict
from typing import Final

from kube.clock import Clock
from kube.objects import Key
from kube.workqueue import Workqueue

# A look that takes longer than this, in seconds, is followed by a rest of so many times as long.
SHORT_LOOK: Final = 0.002
REST: Final = 3.0
# In a crowd, of keys that were looked at within the last second, it is one after which several
# things have happened to the key, so that one look will do for them.
LATELY: Final = 1.0
LONGEST_IN_CROWD: Final = 0.3
# And this much longer where there is nothing to do until what was begun is over.
IDLE: Final = 4.0


class Rests:
    """Has keys of a queue looked at when something happens to them, but not all the time.

    What happens to one key is often told piece by piece, as each of its pods is made and bound.
    `each` is how many seconds a look is followed by for each other key that is looked at too.
    """

    def __init__(self, queue: Workqueue[Key], clock: Clock, each: float = 0.0) -> None:
        self._queue = queue
        self._clock = clock
        self._each = each
        self._lately: OrderedDict[Key, float] = OrderedDict()
        self._until: dict[Key, float] = {}

    def wake(self, key: Key) -> None:
        """Have a key looked at: soon, or when it has rested."""
        self._queue.add_after(key, self._until.get(key, 0.0) - self._clock.monotonic())

    def looked(self, key: Key, begun: float, *, idle: bool = False) -> None:
        """Have the next look at a key wait in proportion to what this one took until now.

        An `idle` one has nothing to do until what was begun is over, which is told piece by piece.
        """
        ended = self._clock.monotonic()
        took = ended - begun
        for_others = self._in_crowd(key, ended) * (IDLE if idle else 1.0)
        rest = max(REST * took if took > SHORT_LOOK else 0.0, for_others)
        if rest:
            self._until[key] = ended + rest
        else:
            self.forget(key)

    def _in_crowd(self, key: Key, now: float) -> float:
        """Give the rest that a key has as others want to be looked at too."""
        if not self._each:
            return 0.0
        self._lately.pop(key, None)
        while self._lately and next(iter(self._lately.values())) + LATELY <= now:
            self._lately.popitem(last=False)
        others = len(self._lately)
        self._lately[key] = now
        return min(LONGEST_IN_CROWD, self._each * others)

    def forget(self, key: Key) -> None:
        """Have the next look at a key come at once."""
        self._until.pop(key, None)
