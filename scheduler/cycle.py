"""One batch: gangs in their order, each placed whole or refused, into what the ones before left."""

from collections.abc import Iterable

from scheduler import invariants
from scheduler.answers import NoFit, Placement, Plan
from scheduler.placing import place
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot


def plan(snapshot: Snapshot, gangs: Iterable[GangRequest]) -> Plan:
    """Place each gang in the order given; a refused one leaves the room as it was.

    The result is checked against the engine's invariants before anybody may act on it.
    """
    free = snapshot.free.copy()
    placements: list[Placement] = []
    refusals: list[NoFit] = []
    for gang in gangs:
        match place(snapshot, free, gang):
            case Placement() as placement:
                placements.append(placement)
            case NoFit() as refusal:
                refusals.append(refusal)
    made = Plan(tuple(placements), tuple(refusals))
    invariants.check(snapshot, made.placements)
    return made
