"""Events about gangs and their sets, as they are streamed. Pure."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from api.streams import Meta
from kube.client import Scope
from kube.resources import PODCLIQUESETS, PODGANGS

FOLLOWED: Final = (PODGANGS, PODCLIQUESETS)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Regarding(msgspec.Struct, frozen=True):
    """Which object an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Happening(msgspec.Struct, frozen=True, rename="camel"):
    """An Event, as far as it is shown."""

    metadata: Meta
    reason: str = ""
    note: str = ""
    type: str = "Normal"
    regarding: Regarding = Regarding()
    event_time: datetime | None = None
    deprecated_last_timestamp: datetime | None = None

    @property
    def at(self) -> datetime | None:
        """Say when it was."""
        return self.event_time or self.deprecated_last_timestamp or self.metadata.creation_timestamp


def scope(kind: str) -> Scope:
    """Ask for Events about objects of one kind only: those about pods are many."""
    return Scope(fields=f"regarding.kind={kind}")


def about(every: Iterable[Happening], uids: frozenset[str]) -> Iterator[Happening]:
    """List those about one of these objects, the oldest first."""
    found = (each for each in every if each.regarding.uid in uids)
    return iter(sorted(found, key=lambda each: each.at or _NEVER))
