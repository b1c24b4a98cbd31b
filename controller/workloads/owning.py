"""Whose every object is: indexes by the UID of its controller, followed up to the set.

The kind of an owner counts too: guards let nobody else write ours into a pod, while anybody may
write any UID. Owners are looked for in the object's own namespace only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from api.streams import Meta, Owner
from kube.cache import Added, Cache, Change, Deleted
from kube.objects import Key
from kube.resources import PODCLIQUES, PODCLIQUESETS, SCALING_GROUPS, Resource


class Held(Protocol):
    """Anything that an owner may have."""

    @property
    def metadata(self) -> Meta:
        """Return the metadata."""
        ...


T = TypeVar("T", bound=Held)

Place: TypeAlias = tuple[str, str]  # a namespace and a UID in it

OWNERS: Final = (PODCLIQUESETS.kind, SCALING_GROUPS.kind, PODCLIQUES.kind)
_NOBODY: Final = Owner()


def controller_of(meta: Meta) -> Owner | None:
    """Give the set, group or clique that controls an object, if one does."""
    found = (o for o in meta.owner_references if o.controller and o.kind in OWNERS)
    return next(found, None)


class Owned(Generic[T]):
    """Objects of one kind by who controls them; follows a cache.

    `touched` is called with the metadata of every object that changes, as it was last seen, and
    with what it was before if it had another controller.
    """

    def __init__(self, cache: Cache[T], touched: Callable[[Meta], None]) -> None:
        self._by_owner: dict[Place, dict[str, T]] = defaultdict(dict)
        self._by_uid: dict[Place, T] = {}
        self._leaving: dict[str, dict[str, T]] = defaultdict(dict)
        self._touched = touched
        cache.subscribe(self._on_change)

    def of(self, namespace: str, uid: str) -> Mapping[str, T]:
        """Give what this owner controls, by name; a live view."""
        return self._by_owner.get((namespace, uid), {})

    def known(self, namespace: str, uid: str) -> T | None:
        """Give the object with this UID."""
        return self._by_uid.get((namespace, uid))

    def leaving(self, namespace: str) -> Iterator[T]:
        """List those of a namespace that are being deleted."""
        return iter([*self._leaving.get(namespace, {}).values()])

    def _on_change(self, change: Change[T]) -> None:
        if not isinstance(change, Added):
            self._forget(change.old)
        if isinstance(change, Deleted):
            self._touched(change.old.metadata)
            return
        self._note(change.new)
        self._touched(change.new.metadata)
        if not isinstance(change, Added):
            before, now = controller_of(change.old.metadata), controller_of(change.new.metadata)
            if before is not None and (now is None or now.uid != before.uid):
                self._touched(change.old.metadata)

    def _note(self, thing: T) -> None:
        meta = thing.metadata
        self._by_uid[meta.namespace, meta.uid] = thing
        owner = controller_of(meta)
        if owner is not None:
            self._by_owner[meta.namespace, owner.uid][meta.name] = thing
        if meta.deletion_timestamp is not None:
            self._leaving[meta.namespace][meta.uid] = thing

    def _forget(self, thing: T) -> None:
        # By what it was: its owner may have changed, or let go of it.
        meta = thing.metadata
        self._by_uid.pop((meta.namespace, meta.uid), None)
        owner = controller_of(meta)
        if owner is not None:
            _drop(self._by_owner, (meta.namespace, owner.uid), meta.name)
        if meta.deletion_timestamp is not None:
            _drop(self._leaving, meta.namespace, meta.uid)


def _drop(index: "dict[_K, dict[str, T]]", key: "_K", name: str) -> None:
    held = index.get(key)
    if held is not None:
        held.pop(name, None)
        if not held:
            del index[key]


_K = TypeVar("_K")


class Ancestry:
    """Finds the set that an object belongs to, however far above it that is."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._between: dict[str, Owned] = {}  # type: ignore[type-arg] # of any kind

    def follow(self, kind: Resource, cache: Cache[T]) -> Owned[T]:
        """Index a kind; every change of an object of it wakes the set it belongs to."""
        made = Owned(cache, self.touched)
        if kind.kind in OWNERS:
            self._between[kind.kind] = made
        return made

    def touched(self, meta: Meta) -> None:
        """Wake the set that an object belongs to, or its namespace's strays."""
        self._wake(self.set_of(meta))

    def set_of(self, meta: Meta) -> Key:
        """Give the key of the set that an object belongs to; without a name if none is known."""
        return meta.namespace, self._root(meta).name

    def root_of(self, meta: Meta) -> str:
        """Give the UID of the set that an object belongs to, or ""."""
        return self._root(meta).uid

    def _root(self, meta: Meta) -> Owner:
        for _ in OWNERS:
            owner = controller_of(meta)
            if owner is None:
                break
            if owner.kind == PODCLIQUESETS.kind:
                return owner
            above = self._between[owner.kind].known(meta.namespace, owner.uid)
            if above is None:
                break
            meta = above.metadata
        return _NOBODY
