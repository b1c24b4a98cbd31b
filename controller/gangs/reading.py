"""Gangs and reservations read when they are asked for: as stored they take a tenth of the room.

What is bound is looked at seldom, and reading one again takes less than looking at it does.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from typing_extensions import override

from api.streams import Custom
from kube.objects import Key

T = TypeVar("T")


class Readings(Mapping[Key, T], Generic[T]):
    """What could be read, by key. The last `most` stay read, or all of them."""

    def __init__(self, read: Callable[[Custom], T | None], most: int | None = None) -> None:
        self._read = read
        self._most = most
        self._stored: dict[Key, Custom] = {}
        self._lately: OrderedDict[Key, T] = OrderedDict()

    def put(self, key: Key, stored: Custom, found: T) -> None:
        """Take an object as it is stored, and as it was read."""
        self._stored[key] = stored
        self._note(key, found)

    def take(self, key: Key) -> T | None:
        """Let go of an object; gives it as it was."""
        found = self.get(key)
        self._stored.pop(key, None)
        self._lately.pop(key, None)
        return found

    def stored(self, key: Key) -> Custom:
        """Give an object as it is stored."""
        return self._stored[key]

    @override
    def __getitem__(self, key: Key) -> T:
        found = self._lately.get(key)
        if found is None:
            found = self._read(self._stored[key])
            if found is None:  # it was read before, so that this cannot be
                raise KeyError(key)
        self._note(key, found)
        return found

    @override
    def __contains__(self, key: object) -> bool:
        return key in self._stored

    @override
    def __iter__(self) -> Iterator[Key]:
        return iter(self._stored)

    @override
    def __len__(self) -> int:
        return len(self._stored)

    def _note(self, key: Key, found: T) -> None:
        self._lately[key] = found
        self._lately.move_to_end(key)
        if self._most is not None and len(self._lately) > self._most:
            self._lately.popitem(last=False)
