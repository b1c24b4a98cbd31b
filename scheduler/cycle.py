"""One batch: gangs in their order, each placed whole or refused, into what the ones before left."""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from scheduler import invariants
from scheduler.answers import NoFit, Placement, Plan
from scheduler.ordering import Order, by_priority_then_age, ordered
from scheduler.parts import question
from scheduler.requests import GangRequest
from scheduler.room import Room
from scheduler.search.deciding import place
from scheduler.settings import DEFAULTS, Settings
from scheduler.snapshot import Snapshot


def plan(
    snapshot: Snapshot,
    gangs: Iterable[GangRequest],
    settings: Settings = DEFAULTS,
    order: Order = by_priority_then_age,
) -> Plan:
    """Place each gang in its order; a refused one leaves the room as it was.

    The result is checked against the engine's invariants before anybody may act on it.
    """
    room = Room(snapshot)
    placements: list[Placement] = []
    refusals: list[NoFit] = []
    refused: dict[Hashable, NoFit] = {}  # since something was placed
    for gang in ordered(gangs, order):
        asked = question(gang)
        if asked in refused:
            refusals.append(replace(refused[asked], gang=gang))
            continue
        match place(room, gang, settings.steps):
            case Placement() as placement:
                placements.append(placement)
                refused.clear()
            case NoFit() as refusal:
                refusals.append(refusal)
                refused[asked] = refusal
    made = Plan(tuple(placements), tuple(refusals))
    invariants.check(snapshot, made.placements)
    return made
