"""When words about one object are said: once they have stood for a moment, or waited long enough.

A status counts pods, so that it changes with each of them while they are made and bound. Said each
time it would be a write for every few pods, and out of date in a moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.workloads.acting import Ident, ident
from controller.workloads.stepping import Say
from kube.objects import Key

# Seconds, and so much more for each other set that has something to say.
STOOD: Final = 1.0
EACH: Final = 0.1
LONGEST: Final = 10.0


@dataclass(frozen=True)
class _Held:
    words: Mapping[str, object]
    first: float  # when there was something to say
    since: float  # when it was these words


class Settling:
    """Remembers what is to be said of each set's objects since when. Instants are given to it."""

    def __init__(self) -> None:
        self._held: dict[Key, dict[Ident, _Held]] = {}
        self._stood: set[Key] = set()

    def left(self, key: Key, say: Say, now: float) -> float:
        """Give the seconds that are left until these words may be said; none or less is now."""
        if not say.patience or key in self._stood:
            return 0.0
        held = self._held.setdefault(key, {})
        before = held.get(ident(say))
        if before is None:
            before = _Held(say.words, now, now)
        elif before.words != say.words:
            before = _Held(say.words, before.first, now)
        held[ident(say)] = before
        stood = min(LONGEST, STOOD + EACH * (len(self._held) - 1))
        return min(before.since + stood, before.first + say.patience) - now

    def stood(self, key: Key) -> None:
        """Have what is said of a set next wait no longer."""
        self._stood.add(key)

    def said(self, key: Key, say: Say) -> None:
        """Note that words were said; what is said next is other news."""
        self._held.get(key, {}).pop(ident(say), None)

    def keep(self, key: Key, wanted: set[Ident]) -> None:
        """Forget what is to be said no more; to be called once all was asked about."""
        self._stood.discard(key)
        kept = {each: held for each, held in self._held.get(key, {}).items() if each in wanted}
        if kept:
            self._held[key] = kept
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Forget a set that is gone."""
        self._held.pop(key, None)
        self._stood.discard(key)
