"""When the ledger of a gang that is wholly bound is closed: at once, or when a crowd has passed.

Nobody waits for that, as the gang runs and keeps what its pods take. Where many gangs are on their
way to nodes, each write about one that has arrived takes the API server's time from the others.
"""

from typing import Final

from api import names
from controller.gangs.deciding import Begin, Close, Extend, Lift, Step, Wait
from kube.clock import Clock
from kube.objects import Key

CROWD: Final = 4  # gangs on their way
PAUSE: Final = 2.0  # seconds until it is looked at again
LATEST: Final = 6.0  # and after so many it is closed in any case


class Closings:
    """Follows which gangs are on their way, and which have arrived and are not closed yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._on_their_way: set[Key] = set()
        self._since: dict[Key, float] = {}

    def put_off(self, key: Key, step: Step) -> float:
        """Take a gang's next step; give for how many seconds it is better put off, 0 for none."""
        if isinstance(step, Begin | Extend | Lift):
            self._on_their_way.add(key)
        elif not (isinstance(step, Wait) and step.reason == names.REASON_LIFTING):
            self._on_their_way.discard(key)
        if not isinstance(step, Close):
            self._since.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        left = self._since.setdefault(key, now) + LATEST - now
        return max(0.0, min(left, PAUSE)) if len(self._on_their_way) >= CROWD else 0.0

    def forget(self, key: Key) -> None:
        """Forget a gang that is gone."""
        self._on_their_way.discard(key)
        self._since.pop(key, None)
