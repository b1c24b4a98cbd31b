"""The objects of a cache and what each list or event changes in them; no I/O.

ResourceVersions are compared as integers, within one kind only: that is what Kubernetes promises
from 1.35 on, and what its storage has always done.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeAlias, TypeVar

from kube.objects import Key, KubeObject, key_of

T = TypeVar("T", bound=KubeObject)

_GRAVES = 4096  # deletions remembered between two lists; a late echo comes within a few events


@dataclass(frozen=True, slots=True)
class Added(Generic[T]):
    """An object that was not there before."""

    new: T


@dataclass(frozen=True, slots=True)
class Modified(Generic[T]):
    """Another state of an object that was there."""

    old: T
    new: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """An object that is gone; `old` is the state handlers were last told of."""

    old: T


Change: TypeAlias = Added[T] | Modified[T] | Deleted[T]


class Store(Generic[T]):
    """Objects by key, which never go back to an older state.

    Invariant: each object is the newest state of its key among all that was put in since the last
    list, and no key is present whose deletion is newer than its last state.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._seen: Mapping[Key, T] = MappingProxyType(self._objects)
        self._listed_at = 0
        self._graves: OrderedDict[Key, int] = OrderedDict()

    @property
    def objects(self) -> Mapping[Key, T]:
        """Return a live, read-only view."""
        return self._seen

    def replace(self, items: Iterable[T], resource_version: str) -> list[Change[T]]:
        """Take a list as the whole truth of its version; return what it changes, deletions first.

        What is known from after that version stays as it is: an answer to a write of our own can
        overtake a list that was read before it.
        """
        listed = int(resource_version)
        fresh = {key_of(item): item for item in items}
        later = {
            k: v for k, v in self._objects.items() if int(v.metadata.resource_version) > listed
        }
        graves = {key: version for key, version in self._graves.items() if version > listed}
        for key in graves:
            fresh.pop(key, None)
        fresh.update(later)
        changes: list[Change[T]] = [
            Deleted(old)
            for key, old in self._objects.items()
            if key not in fresh or fresh[key].metadata.uid != old.metadata.uid
        ]
        for key, new in fresh.items():
            old = self._objects.get(key)
            if old is None or old.metadata.uid != new.metadata.uid:
                changes.append(Added(new))
            elif old.metadata.resource_version != new.metadata.resource_version:
                changes.append(Modified(old, new))
        self._objects.clear()
        self._objects.update(fresh)
        self._listed_at = listed
        self._graves = OrderedDict(graves)
        return changes

    def put(self, new: T) -> list[Change[T]]:
        """Take one state of an object; one that is not newer than what is known changes nothing."""
        key = key_of(new)
        if int(new.metadata.resource_version) <= self._known(key):
            return []
        old = self._objects.get(key)
        self._objects[key] = new
        self._graves.pop(key, None)
        if old is None:
            return [Added(new)]
        if old.metadata.uid != new.metadata.uid:
            return [Deleted(old), Added(new)]
        return [Modified(old, new)]

    def remove(self, key: Key, resource_version: str) -> list[Change[T]]:
        """Take the news that an object is gone, as of a resourceVersion."""
        version = int(resource_version)
        if version <= self._known(key):
            return []
        self._graves[key] = version
        if len(self._graves) > _GRAVES:
            self._graves.popitem(last=False)
        old = self._objects.pop(key, None)
        return [] if old is None else [Deleted(old)]

    def _known(self, key: Key) -> int:
        """Return the version up to which we know this key's story."""
        held = self._objects.get(key)
        own = int(held.metadata.resource_version) if held else self._graves.get(key, 0)
        return max(own, self._listed_at)
