"""One batch: gangs in their order, each placed whole or refused, into what the ones before left.

All get their minima before any gets more, so that nobody's extras take the room of another's
minimum.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from scheduler import invariants
from scheduler.answers import NoFit, Placement, Plan
from scheduler.lending import Lending
from scheduler.ordering import Order, by_priority_then_age, ordered
from scheduler.requests import GangRequest
from scheduler.retelling import question, retold
from scheduler.room import Room
from scheduler.search.deciding import Begun, place
from scheduler.settings import DEFAULTS, Settings
from scheduler.snapshot import Snapshot


def plan(
    snapshot: Snapshot,
    gangs: Iterable[GangRequest],
    settings: Settings = DEFAULTS,
    order: Order = by_priority_then_age,
    check: Callable[[Snapshot, Sequence[Placement]], None] = invariants.check,
) -> Plan:
    """Place each gang in its order; a refused one leaves the room as it was.

    The result is checked against the engine's invariants before anybody may act on it.
    """
    room = Room(snapshot)
    lending = Lending(room)
    answers: list[Placement | Begun | NoFit] = []
    refused: dict[Hashable, NoFit] = {}  # since something was placed
    for gang in ordered(gangs, order):
        known = refused.get(question(gang, room.settled)) if refused else None
        if known is not None:
            answers.append(retold(known, gang))
            continue
        with lending.to(gang):
            answer = place(room, gang, settings.steps)
        answers.append(answer)
        if isinstance(answer, NoFit):
            refused[question(gang, room.settled)] = answer
        else:
            refused.clear()
    final = [_finished(each, lending) for each in answers]
    made = Plan(
        tuple([each for each in final if isinstance(each, Placement)]),
        tuple([each for each in final if isinstance(each, NoFit)]),
    )
    check(snapshot, made.placements)
    return made


def _finished(answer: Placement | Begun | NoFit, lending: Lending) -> Placement | NoFit:
    if isinstance(answer, Begun):
        with lending.to(answer.question.request):
            answer = answer.finished()
    if isinstance(answer, Placement) and answer.gang.kept is not None:
        return replace(answer, drawn=lending.drawn(answer.gang))
    return answer
