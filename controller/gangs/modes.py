"""Beside whom `gangs` works: `workloads`, or as companion of another controller. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from api.streams import Meta
from controller.gangs import plain_slots
from controller.podgang import Gang


@dataclass(frozen=True)
class Mode:
    """`companion`: somebody else makes sets' gangs and pods. `sets`: whether these are heeded."""

    companion: bool = False
    sets: bool = True

    def heeds(self, gang: Meta) -> bool:
        """Whether a PodGang is our business."""
        return self.sets or plain_slots.is_plain(gang)

    def based(self, gang: Gang, base: str) -> Gang:
        """Give the gang as one that comes after this base, unless it says so itself."""
        return replace(gang, base_name=base) if self.companion and base else gang


ALONE: Final = Mode()
