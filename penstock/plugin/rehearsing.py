"""What would become of gangs if nothing else happened: placed round after round, in memory only.

Reservations are written as `gangs` writes them, into the scene's own caches, so that each round
sees what the one before has taken, and scaled gangs see their base gangs started.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from api.reservation import State
from controller.gangs import booking, requesting
from kube.objects import Key
from penstock.plugin import judging
from penstock.plugin.judging import Standing
from penstock.plugin.scenes import Scene
from scheduler.answers import NoFit, Placement

_ROUNDS: Final = 100
_FIRST_VERSION: Final = 10**18  # above every version that an API server has come to
_LONG: Final = timedelta(days=1)


@dataclass(frozen=True)
class Outcome:
    """Who was placed where, in one or more turns; and how everybody stands in the end."""

    placed: Mapping[Key, tuple[Placement, ...]] = field(default_factory=dict)
    standings: Mapping[Key, Standing] = field(default_factory=dict)

    def nodes_of(self, key: Key) -> dict[tuple[str, int], str]:
        """Give the node of each pod that got one."""
        return {
            (each.want.clique, each.want.index): each.node
            for placement in self.placed.get(key, ())
            for each in placement.placed
        }

    def refusal_of(self, key: Key) -> NoFit | None:
        """Give why the gang's minimum, or what it lacks of it, found no place."""
        refusal = self.standings[key].refusal if key in self.standings else None
        return refusal if refusal is not None and refusal.gang.minimum else None

    def extras_without(self, key: Key) -> int:
        """How many pods beyond the minimum found no place."""
        found = self.standings.get(key)
        if found is None or found.refusal is None:
            return 0
        return 0 if found.refusal.gang.minimum else len(found.refusal.gang.extras)


def rehearse(scene: Scene) -> Outcome:
    """Place who asks until nobody finds a place any more. The scene is changed by it."""
    placed: dict[Key, tuple[Placement, ...]] = {}
    versions = count(_FIRST_VERSION)
    for _ in range(_ROUNDS):
        standings = judging.look(scene)
        turn = list(_turn(standings))
        if not turn:
            return Outcome(placed, standings)
        for standing, placement in turn:
            placed[standing.key] = (*placed.get(standing.key, ()), placement)
            _reserve(scene, standing, placement, next(versions))
    return Outcome(placed, judging.look(scene))


def _turn(standings: Mapping[Key, Standing]) -> Iterator[tuple[Standing, Placement]]:
    """List who is placed in this round: all together, or else one of those that move."""
    found = [
        (each, each.placement)
        for each in standings.values()
        if each.placement is not None and not each.early
    ]
    moving = [pair for pair in found if requesting.moved(pair[0].view, pair[1].gang)]
    together = [pair for pair in found if pair not in moving]
    # Into the room that its own slots leave, nobody else is planned.
    yield from together or moving[:1]


def _reserve(scene: Scene, standing: Standing, placement: Placement, version: int) -> None:
    """Write the reservation down where only this scene sees it, as one whose pods are bound."""
    view, world = standing.view, scene.world
    homes = booking.homes(view.reservation, placement)
    near = world.standing(view.gang, homes)
    terms = booking.Terms(scene.now, _LONG, 0)
    if view.reservation is None:
        body = booking.body(view.gang.metadata, placement, near, terms)
        there: JsonObject = {}
    else:
        found = scene.caches.reservations.get(*view.gang.key)
        there = json.loads(msgspec.json.encode(found)) if found is not None else {}
        if view.reservation.state in (State.HELD, State.ROLLED_BACK):
            body = booking.renewed(view.reservation, placement, near, terms)
        else:
            body = booking.grown(view.reservation, placement, near)
    told = merged(there, body)
    metadata = told["metadata"] if isinstance(told["metadata"], dict) else {}
    metadata["resourceVersion"] = str(version)
    metadata.setdefault("uid", f"to-come-{version}")
    spec = told["spec"] if isinstance(told["spec"], dict) else {}
    told["status"] = {"state": State.BOUND.value, "attempt": spec.get("attempt", 0)}
    scene.caches.reservations.observe(msgspec.json.encode(told))


def merged(body: JsonObject, patch: Mapping[str, Json]) -> JsonObject:
    """Apply a merge patch."""
    found = dict(body)
    for key, value in patch.items():
        before = found.get(key)
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            found[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            found[key] = value
    return found
