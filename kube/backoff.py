"""How long to wait before the next try, growing with failure and forgotten with health."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class BackoffSettings:
    """Seconds: the first wait's lower end, the longest wait, the health after which all is well."""

    floor: float = 0.5
    ceiling: float = 30.0
    health: float = 120.0


class Backoff:
    """Decorrelated jitter: each wait is drawn between the floor and three times the last one.

    Waits of many processes that failed together spread out at once and stay spread.
    """

    def __init__(self, settings: BackoffSettings, rng: random.Random) -> None:
        self._settings = settings
        self._rng = rng
        self._last = settings.floor
        self._well_since: float | None = None

    def succeeded(self, now: float) -> None:
        """Note that things work; only lasting health shortens the next wait."""
        if self._well_since is None:
            self._well_since = now

    def failed(self, now: float) -> float:
        """Note a failure and return the seconds to wait."""
        settings = self._settings
        if self._well_since is not None and now - self._well_since >= settings.health:
            self._last = settings.floor
        self._well_since = None
        self._last = min(settings.ceiling, self._rng.uniform(settings.floor, 3 * self._last))
        return self._last
