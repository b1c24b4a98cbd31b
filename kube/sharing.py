"""One value in the place of many equal ones: objects of a cluster are alike by the thousand.

What is shared is never written, by nobody: frozen structs, text, and maps that are only read. A
pool holds nothing for its own sake: values that nobody else holds are forgotten, at the latest when
there are twice as many as were in use the last time.
"""

from collections.abc import Callable, Hashable, Mapping
from sys import getrefcount
from typing import Final, Generic, TypeVar

V = TypeVar("V")
K = TypeVar("K", bound=Hashable)

# Below this, forgetting would cost more than it gives back.
LEAST: Final = 1024

# How often an unused value is referred to while it is asked about: by its pool, by the name it has
# in `is_held`, and by the question itself.
_OWN: Final = 3


def is_held(value: object) -> bool:
    """Whether anybody but its pool holds the value, which was handed over without a name."""
    return getrefcount(value) > _OWN


class Pool(Generic[K, V]):
    """Values by what makes them equal. `held` tells whether one is in use outside of the pool.

    A value that is its own key would always be held: by the key.
    """

    def __init__(self, held: Callable[[V], bool] = is_held, least: int = LEAST) -> None:
        self._known: dict[K, V] = {}
        self._held = held
        self._least = self._most = least

    def __len__(self) -> int:
        """Return how many values it knows."""
        return len(self._known)

    def shared(self, key: K, value: V) -> V:
        """Give the value that is known by this key; from now on that is this one, if none is."""
        found = self._known.setdefault(key, value)
        if len(self._known) > self._most:
            self.forget()
        return found

    def forget(self) -> None:
        """Let go of what nobody else holds."""
        known, held = self._known, self._held
        self._known = {key: known[key] for key in known if held(known[key])}
        self._most = max(self._least, 2 * len(self._known))


class Ones(Generic[K]):
    """Values that are equal as a whole, and can be hashed."""

    def __init__(self, least: int = LEAST) -> None:
        self._known: dict[K, K] = {}
        self._least = self._most = least

    def __len__(self) -> int:
        """Return how many values it knows."""
        return len(self._known)

    def shared(self, value: K) -> K:
        """Give the value that is equal to this one; from now on that is this one, if none is."""
        found = self._known.setdefault(value, value)
        if len(self._known) > self._most:
            self.forget()
        return found

    def forget(self) -> None:
        """Let go of what nobody else holds."""
        # Of its entry a value is both the key and the value; here it has a name, too.
        self._known = {each: each for each in self._known if getrefcount(each) > _OWN + 1}
        self._most = max(self._least, 2 * len(self._known))


class Words(Ones[str]):
    """Text that comes again and again: names of labels, of namespaces and of nodes."""

    def within(self, words: Mapping[str, str]) -> dict[str, str]:
        """Give the same map, of shared text."""
        known = self._known
        found = {known.setdefault(k, k): known.setdefault(v, v) for k, v in words.items()}
        if len(known) > self._most:
            self.forget()
        return found
