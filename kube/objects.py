"""The least every Kubernetes object has, for those who stream it."""

from typing import Protocol, TypeAlias

import msgspec

Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""


class Metadata(Protocol):
    """What identifies one state of one object."""

    @property
    def namespace(self) -> str | None:
        """Return the namespace, or None or empty for cluster-wide kinds."""
        ...

    @property
    def name(self) -> str:
        """Return the name."""
        ...

    @property
    def uid(self) -> str:
        """Return what tells an object from its namesake before and after it."""
        ...

    @property
    def resource_version(self) -> str:
        """Return the state's number."""
        ...


class KubeObject(Protocol):
    """Anything with metadata: the bound of what a cache may hold."""

    @property
    def metadata(self) -> Metadata:
        """Return the metadata."""
        ...


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata as a msgspec struct, to be used or extended by the structs a cache decodes."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class BareObject(msgspec.Struct, frozen=True):
    """An object of which only the identity matters."""

    metadata: ObjectMeta


class LabelledMeta(ObjectMeta, frozen=True, rename="camel"):
    """The same, with labels."""

    labels: dict[str, str] = {}


class LabelledObject(msgspec.Struct, frozen=True):
    """An object of which only its identity and its labels matter."""

    metadata: LabelledMeta


def key_of(thing: KubeObject) -> Key:
    """Return the key under which caches and queues know an object."""
    return (thing.metadata.namespace or "", thing.metadata.name)
