"""Pods that are still to come, as far as the templates of their PodCliques tell. Pure.

What only the API server, a webhook or a claim's controller adds is not known yet: a runtime's
overhead, what a LimitRange fills in, and which devices or volumes claims will be met by. A forecast
made of these errs on the side of room.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.podgang import PodGroup
from api.streams import Meta, Pod, PodClique, PodSpec, SchedulingGate
from controller.gangs.deciding import Place
from controller.gangs.views import GangView, Member

_GATED: Final = (SchedulingGate(names.GATE),)
_AMOUNTS: Final = ("requests", "limits")


def foreseen(
    view: GangView, specs: Mapping[str, PodSpec | None], priority_of: Callable[[PodSpec], int]
) -> tuple[GangView, Place] | None:
    """Give the gang as it will be when its minimum is there, and what it will ask for then.

    `specs` are the templates of its cliques. None if these do not tell, as where one is not there
    yet, or where some of its pods are on their nodes already.
    """
    if not view.base_started or view.reservation is not None:
        return None
    if any(not member.gated or member.pod.gates != (names.GATE,) for member in view.members):
        return None
    members = list(view.members)
    minimum: list[Member] = []
    for group in view.gang.spec.pod_groups:
        there = view.of_clique(group.name)[: group.min_replicas]
        missing = group.min_replicas - len(there)
        spec, clique = specs.get(group.name), view.cliques.get(group.name)
        if missing and (
            spec is None or clique is None or spec.scheduling_gates not in ((), _GATED)
        ):
            return None
        fresh = []
        if missing and spec is not None and clique is not None:
            spec = msgspec.structs.replace(
                spec, scheduling_gates=_GATED, priority=priority_of(spec)
            )
            fresh = list(_to_come(view, group, clique, spec))[:missing]
        members += fresh
        minimum += [*there, *fresh]
    return replace(view, members=tuple(members)), Place(tuple(minimum), ())


def read(raw: bytes) -> PodSpec | None:
    """Read a template's podSpec, or give None if it is not one that we can read.

    Amounts may be numbers there, which the API server turns into text in a pod.
    """
    try:
        found: Json = msgspec.json.decode(raw)
        spec = msgspec.convert(_settled(found), PodSpec)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        return None
    # Which claims they will have, and what these will say, nobody knows yet.
    return msgspec.structs.replace(spec, volumes=(), resource_claims=(), node_name="")


def pod(body: JsonObject) -> Pod:
    """Read a pod that nobody has stored yet: amounts may be numbers, and fields null."""
    return msgspec.convert(_settled(body), Pod)


def _to_come(view: GangView, group: PodGroup, clique: PodClique, spec: PodSpec) -> Iterator[Member]:
    """Make up pods for the slots of a clique that have none."""
    taken = {member.slot[1] for member in view.of_clique(group.name)}
    labels = {
        **clique.metadata.labels,
        names.PODGANG_LABEL: view.gang.metadata.name,
        names.PODCLIQUE_LABEL: group.name,
    }
    index = 0
    for _ in range(group.min_replicas):
        while index in taken:
            index += 1
        taken.add(index)
        meta = Meta(f"{group.name}-{index}", view.gang.metadata.namespace, labels=labels)
        yield Member((group.name, index), Pod(meta, spec))


def _settled(found: Json) -> Json:
    """Leave out nulls, and write amounts as text."""
    if isinstance(found, list):
        return [_settled(each) for each in found if each is not None]
    if not isinstance(found, dict):
        return found
    kept: JsonObject = {key: _settled(each) for key, each in found.items() if each is not None}
    for key in (*_AMOUNTS, "overhead"):
        amounts = kept.get(key)
        if isinstance(amounts, dict):
            kept[key] = {
                name: str(amount) if isinstance(amount, int | float) else amount
                for name, amount in amounts.items()
            }
    return kept
