"""What becomes of gangs whose pods are still to come: a plan that nobody carries out.

Gangs are judged as they are heard of, each into what those before it leave, so that of many that
ask at once each is judged once.
"""

from collections.abc import Hashable, Iterable
from typing import Final

from scheduler.answers import NoFit, Plan
from scheduler.emptied import Emptied
from scheduler.lending import Lending
from scheduler.ordering import by_priority_then_age, ordered
from scheduler.requests import GangRequest
from scheduler.retelling import question, retold
from scheduler.room import Room
from scheduler.search.deciding import place
from scheduler.settings import DEFAULTS
from scheduler.snapshot import Snapshot


class Forecast:
    """The room there was at one instant, less what those who were judged since would take."""

    def __init__(self, snapshot: Snapshot, emptied: Emptied) -> None:
        self._room: Final = Room(snapshot)
        self._lending: Final = Lending(self._room)
        self._emptied: Final = emptied
        self._refused: dict[Hashable, NoFit] = {}

    def refusals(self, gangs: Iterable[GangRequest]) -> tuple[NoFit, ...]:
        """Judge gangs that were not judged yet, and give those that would find no room."""
        found: list[NoFit] = []
        for gang in ordered(gangs, by_priority_then_age):
            asked = question(gang, self._room.settled)
            known = self._refused.get(asked)  # room only shrinks, so what was refused stays so
            if known is None:
                with self._lending.to(gang):
                    answer = place(self._room, gang, DEFAULTS.steps)
                if not isinstance(answer, NoFit):
                    continue
                known = self._refused[asked] = answer
            found.append(retold(known, gang))
        return self._emptied.judged(Plan((), tuple(found))).refusals
