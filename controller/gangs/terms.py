"""From when on this process leads, and what a leader before it wrote too late. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.gangs.views import Reservation


@dataclass(frozen=True)
class Term:
    """A leader's generation, and what it found when it took over.

    `inherited` are the reservations that were there, by UID, each as of which spec.
    """

    generation: int
    inherited: Mapping[str, int]

    def overtook(self, reservation: Reservation | None) -> bool:
        """Whether an earlier leader wrote the spec, and so late that this one had taken over.

        Its request may have been under way for as long as the API server lets one be. This leader
        has counted without it, and may have promised the same room.
        """
        if reservation is None or reservation.spec.generation >= self.generation:
            return False
        there = reservation.metadata
        return self.inherited.get(there.uid) != there.generation


NOBODYS: Final = Term(-1, {})  # nothing is older
