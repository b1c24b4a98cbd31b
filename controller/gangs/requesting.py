"""What a gang asks of the engine as the world stands, and what the engine answers.

All who ask on a gang's behalf ask here, so that they are told the same: who places it, who
foretells what becomes of it before its pods are made, and who only wants to know.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from api.streams import PodSpec
from controller.gangs import asking, templates
from controller.gangs.deciding import Place
from controller.gangs.views import GangView, SlotKey
from controller.gangs.world import World
from scheduler import cycle
from scheduler.answers import Plan
from scheduler.emptied import Emptied
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot

# A gang whose priority nobody knows yet comes first, so it is told only what holds in any case.
UNKNOWN: Final = 2**31 - 1

PriorityOf = Callable[[str], int | None]
"""Gives the priority of a class by its name, or None while nobody knows it."""


def of_place(world: World, view: GangView, place: Place) -> GangRequest:
    """Ask for room for these members."""
    request = asking.request(view, place, world.around(view.gang))
    return replace(request, kept=world.keeps.offer(view, place))


def foreseen(world: World, view: GangView, priority_of: PriorityOf) -> GangRequest | None:
    """Ask for the room that a gang will need once its pods are made; None if nobody can tell."""
    cliques = view.cliques.items()
    specs = {name: templates.read(bytes(clique.spec.pod_spec)) for name, clique in cliques}
    of_gang = view.gang.spec.priority_class_name
    found = templates.foreseen(view, specs, partial(_priority, priority_of, of_gang))
    return of_place(world, *found) if found is not None else None


def moved(view: GangView, request: GangRequest) -> frozenset[SlotKey]:
    """Name the slots that are asked for although the gang has them already."""
    slots = {(want.clique, want.index) for want in (*request.minimum, *request.extras)}
    return frozenset(slots & view.nodes_by_slot().keys())


def answered(snapshot: Snapshot, emptied: Emptied, requests: Iterable[GangRequest]) -> Plan:
    """Place each gang or refuse it, and say of the refused which would never fit."""
    return emptied.judged(cycle.plan(snapshot, list(requests)))


def _priority(priority_of: PriorityOf, of_gang: str, spec: PodSpec) -> int:
    name = spec.priority_class_name or of_gang
    known = priority_of(name)
    if known is not None:
        return known
    return UNKNOWN if name else 0
