"""How each gang stands, and what the engine says to those that ask for room. Pure.

A scene is looked at the way `gangs` looks at its caches: what a gang asks for, the snapshot that it
is judged by, and the words of its condition come from there.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from api import names
from api.objects import condition_of
from api.podgang import Phase
from api.reservation import State
from controller.gangs import reporting, requesting
from controller.gangs.deciding import Place, Step, Wait, next_step, settled
from controller.gangs.views import GangView, SlotKey
from controller.podgang import Gang
from kube.objects import Key
from penstock.plugin.scenes import Scene
from scheduler import ordering
from scheduler.answers import NoFit, Placement, Plan
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot

NOT_FOUND: Final = 10  # how commands end when what they are asked about is not there
_LIKE: Final = 3  # names that are offered in place of one that there is none of


@dataclass(frozen=True)
class Said:
    """Whether a gang is scheduled, as its condition tells it, or will in a moment."""

    scheduled: bool
    reason: str
    message: str


@dataclass(frozen=True)
class Standing:
    """One gang: what it needs next, what it asks for, and what the engine would answer now.

    `request` is None where it asks for nothing. `early` says that its pods are still to be made, so
    that it will ask only then.
    """

    view: GangView
    step: Step
    request: GangRequest | None = None
    early: bool = False
    placement: Placement | None = None
    refusal: NoFit | None = None
    unheeded: str = ""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.view.gang.key

    @property
    def phase(self) -> Phase:
        """How far it has come, as its status says."""
        return self.view.gang.status.phase

    def said(self, now: datetime) -> Said:
        """Give the words of its condition: those of `gangs`, worked out from what there is now."""
        step = _told(self.view, self.step)
        if isinstance(step, Place) and self.placement is not None:
            where = "/".join(self.placement.domain) or "the cluster"
            return Said(
                self.is_bound, names.REASON_PLACED, f"there is room in {where}: it is placed now"
            )
        if step is None:
            there = condition_of(self.view.gang.status.conditions, names.SCHEDULED)
            word = type(self.step).__name__.lower()
            return Said(there is not None and there.status == "True", word, "it is on its way")
        status = reporting.status(self.view, step, self.refusal, now, self.unheeded)
        condition = status.conditions[0]
        return Said(condition.status == "True", condition.reason, condition.message)

    @property
    def is_bound(self) -> bool:
        """Whether it has started before."""
        reservation = self.view.reservation
        return reservation is not None and reservation.state is State.BOUND


def look(scene: Scene) -> dict[Key, Standing]:
    """Look at every gang, and let the engine answer those who ask."""
    gangs, _ = scene.world.known()
    priorities = _priorities(scene)
    found: dict[Key, Standing] = {}
    for key in sorted(gangs):
        view = scene.world.view(key)
        if view is not None and view.gang.metadata.deletion_timestamp is None:
            found[key] = _standing(scene, view, priorities)
    for plan in plans(scene, [each for each in found.values() if each.request is not None]):
        for placement in plan.placements:
            key = placement.gang.namespace, placement.gang.name
            found[key] = replace(found[key], placement=placement)
        for refusal in plan.refusals:
            key = refusal.gang.namespace, refusal.gang.name
            found[key] = replace(found[key], refusal=refusal)
    return found


def plans(scene: Scene, asking: Sequence[Standing]) -> Iterable[Plan]:
    """Have the engine answer as the placer has it: all at once, but each that moves by itself."""
    requests = {each.key: each.request for each in asking if each.request is not None}
    moves = {
        each.key: requesting.moved(each.view, each.request)
        for each in asking
        if each.request is not None
    }
    together = [request for key, request in requests.items() if not moves[key]]
    yield _planned(scene, together, frozenset())
    alone = [request for key, request in requests.items() if moves[key]]
    for request in ordering.ordered(alone, ordering.by_priority_then_age):
        key = request.namespace, request.name
        yield _planned(scene, [request], frozenset((key, slot) for slot in moves[key]))


def snapshot(scene: Scene, moving: frozenset[tuple[Key, SlotKey]] = frozenset()) -> Snapshot:
    """Take stock of the scene."""
    levels = [network.levels for network in scene.world.topologies.networks]
    return scene.world.stockroom.snapshot(levels, moving)


def key_meant(name: str, namespace: str) -> Key:
    """Read NAME, which is in that namespace, or NAMESPACE/NAME."""
    head, slash, tail = name.partition("/")
    return (head, tail) if slash else (namespace, name)


def made_for(scene: Scene, key: Key, gangs: Mapping[Key, Gang]) -> list[Key] | None:
    """Name those of the gangs that are a set's, base gangs first; None if there is no such set."""
    found = scene.sets.get(*key)
    if found is None:
        return None
    uid = found.metadata.uid
    its = [each for each, gang in gangs.items() if gang.metadata.controller_uid == uid]
    return sorted(its, key=lambda each: (gangs[each].base or each, each))


def unknown(what: str, key: Key, there: Iterable[Key]) -> str:
    """Say that there is no such thing, and what was probably meant."""
    every = list(there)
    elsewhere = ["/".join(each) for each in every if each[1] == key[1]]
    here = [name for namespace, name in every if namespace == key[0]]
    like = difflib.get_close_matches(key[1], here, _LIKE) + elsewhere
    if not like:
        # By their names alone: those of one namespace are all alike in what is before the slash.
        spelled = {name: f"{namespace}/{name}" for namespace, name in every}
        like = [spelled[each] for each in difflib.get_close_matches(key[1], spelled, _LIKE)]
    said = f"there is no {what} {key[1]} in namespace {key[0]}"
    if like:
        return f"{said}; did you mean {' or '.join(like[:_LIKE])}?"
    return f"{said}, and none like it; `penstock status` lists those that wait"


def unknown_node(name: str, there: Iterable[str], what: str) -> str:
    """Say that there is no such node to do this with, and which was probably meant."""
    like = difflib.get_close_matches(name, list(there), _LIKE)
    meant = (
        f"; did you mean {' or '.join(like)}?"
        if like
        else "; `penstock topology -o wide` lists them"
    )
    return f"there is no node {name} to {what}{meant}"


def _standing(scene: Scene, view: GangView, priorities: Mapping[str, int]) -> Standing:
    world = scene.world
    step = next_step(view, scene.now)
    unheeded = world.unheeded(view.gang)
    if isinstance(step, Place):
        request: GangRequest | None = requesting.of_place(world, view, step)
        return Standing(view, step, request, unheeded=unheeded)
    if isinstance(step, Wait) and step.reason == names.REASON_WAITING_FOR_PODS:
        request = requesting.foreseen(world, view, priorities.get)
        return Standing(view, step, request, early=request is not None, unheeded=unheeded)
    return Standing(view, step, unheeded=unheeded)


def _planned(
    scene: Scene, requests: Sequence[GangRequest], moving: frozenset[tuple[Key, SlotKey]]
) -> Plan:
    if not requests:
        return Plan((), ())
    taken = snapshot(scene, moving)
    return requesting.answered(taken, scene.world.stockroom.emptied(), requests)


def _told(view: GangView, step: Step) -> Wait | Place | None:
    """Give what its condition is about; None while something is being done for it."""
    if isinstance(step, Place):
        state = view.reservation.state if view.reservation is not None else None
        return settled(view) if not step.minimum and state is State.LIFTING else step
    return step if isinstance(step, Wait) else None


def _priorities(scene: Scene) -> dict[str, int]:
    """Learn from pods what priority classes mean."""
    return {
        pod.spec.priority_class_name: pod.spec.priority
        for pod in scene.caches.pods
        if pod.spec.priority_class_name
    }


def queue_of(view: GangView) -> str:
    """Name the queue that the gang or its pods say they stand in; "" if none of them says one."""
    marked = (view.gang.metadata, *(member.pod.metadata for member in view.members))
    return next(
        (meta.labels[key] for meta in marked for key in names.QUEUE_LABELS if meta.labels.get(key)),
        "",
    )
