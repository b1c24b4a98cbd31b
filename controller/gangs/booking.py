"""Reservations as they are written: made from a placement, and grown by a later one. Pure."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from api import names, quantities
from api.jsons import Json, JsonObject
from api.objects import owner_reference, timestamp
from api.quantities import Amounts
from api.reservation import Refused, State
from api.streams import Meta
from controller.gangs.keeps.views import drawn_by
from controller.gangs.standing import Standing
from controller.gangs.views import Reservation, SlotKey
from kube.resources import PODGANGS, RESERVATIONS
from scheduler.answers import Placed, Placement

DIGITS: Final = 4  # of scores; no more can be told apart, and sums of parts have no last digit

# A clique, and what one pod takes of its node: those of a plain gang need not be alike.
Shape: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Terms:
    """On whose authority a reservation is made, and for how long."""

    now: datetime
    patience: timedelta
    generation: int


@dataclass(frozen=True)
class Refusals:
    """How many pods of those that are taken back were refused, and what is remembered of it."""

    pods: int = 0
    remembered: Refused | None = None


NO_REFUSALS: Final = Refusals()


def body(gang: Meta, placement: Placement, standing: Standing, terms: Terms) -> JsonObject:
    """Write a new reservation. It is called like its gang, so a gang can never have two."""
    spec: JsonObject = {
        "gang": {"name": gang.name, "uid": gang.uid},
        **_begun(placement, standing, terms),
    }
    return {
        "apiVersion": RESERVATIONS.api_version,
        "kind": RESERVATIONS.kind,
        "metadata": {
            "name": gang.name,
            "namespace": gang.namespace,
            "labels": {names.GANG_LABEL: gang.name},
            "ownerReferences": [owner_reference(PODGANGS.api_version, "PodGang", gang)],
        },
        "spec": spec,
    }


def renewed(
    reservation: Reservation, placement: Placement, standing: Standing, terms: Terms
) -> JsonObject:
    """Write the merge patch that begins another try where the last one was rolled back.

    What its status says is about the last try, so from this one write on it is Held. If nothing
    came of that and its room was given back, the same try begins once more.
    """
    spec = _begun(placement, standing, terms)
    if reservation.spec.uses is not None:
        spec = {"uses": None, **spec}
    more = int(reservation.state is State.ROLLED_BACK)
    return {
        "metadata": {"resourceVersion": reservation.metadata.resource_version},
        "spec": {
            **spec,
            "attempt": reservation.spec.attempt + more,
            "repairs": 0,
            "refused": None,
        },
    }


def repaired(
    reservation: Reservation, slots: Set[SlotKey], standing: Standing, refusals: Refusals
) -> JsonObject:
    """Write the merge patch that takes slots out whose pods were not bound."""
    said = {**_said(standing), "repairs": reservation.spec.repairs + refusals.pods}
    if refusals.remembered is not None:
        said["refused"] = refusals.remembered.model_dump(mode="json", by_alias=True)
    return _patch(reservation, _slots(reservation, slots), said)


def grown(reservation: Reservation, placement: Placement, standing: Standing) -> JsonObject:
    """Write the merge patch that adds slots, or moves those whose nodes were lost.

    It fails if the reservation has changed since. Of fragmentation it keeps the worst.
    """
    slots = _slots(reservation, _moved(placement))
    for placed in placement.placed:
        slots.setdefault(_shape_of(placed), []).append(_slot(placed.want.index, placed.node))
    worst = max(reservation.spec.fragmentation or 0.0, placement.fragmentation)
    said: JsonObject = {"fragmentation": round(worst, DIGITS), **_said(standing)}
    if placement.drawn:
        said["uses"] = _uses(placement, drawn_by(reservation))
    return _patch(reservation, slots, said)


def trimmed(reservation: Reservation, stale: Set[SlotKey], standing: Standing) -> JsonObject:
    """Write the merge patch that takes slots out; it fails if the reservation has changed since.

    Only this write frees their room: a slot that is in the ledger is always kept, since a pod that
    comes back to it is lifted without being asked again whether there is room.
    """
    return _patch(reservation, _slots(reservation, stale), _said(standing))


def homes(
    reservation: Reservation | None,
    placement: Placement | None = None,
    without: Set[SlotKey] = frozenset(),
) -> list[str]:
    """List the node of every slot there will be, once the placement is in and these are out."""
    there = reservation.slots() if reservation else ()
    gone = without | (_moved(placement) if placement else frozenset())
    kept = [slot.node for name, slot, _ in there if (name, slot.index) not in gone]
    return [*kept, *(placed.node for placed in (placement.placed if placement else ()))]


def _begun(placement: Placement, standing: Standing, terms: Terms) -> JsonObject:
    uses: JsonObject = {"uses": _uses(placement, {})} if placement.drawn else {}
    return {
        **uses,
        "deadline": timestamp(terms.now + terms.patience),
        "generation": terms.generation,
        "groups": _groups(_placed(placement.placed)),
        "fragmentation": round(placement.fragmentation, DIGITS),
        **_said(standing),
    }


def _uses(placement: Placement, before: Mapping[str, Amounts]) -> Json:
    """Write what is drawn of what a person has kept, beside what was before."""
    kept = placement.gang.kept
    name, _, uid = kept.name.rpartition("/") if kept else ("", "", "")
    drawn = dict(before)
    for share in placement.drawn:
        drawn[share.node] = quantities.plus(drawn.get(share.node, {}), share.amounts)
    shares: list[Json] = [
        {"node": node, "requests": {n: quantities.text(n, a) for n, a in sorted(there.items())}}
        for node, there in sorted(drawn.items())
    ]
    return {"name": name, "uid": uid, "shares": shares}


def _slots(
    reservation: Reservation, without: Set[SlotKey] = frozenset()
) -> dict[Shape, list[Json]]:
    slots: dict[Shape, list[Json]] = {}
    for name, slot, requests in reservation.slots():
        if (name, slot.index) not in without:
            shape = name, tuple(sorted(requests.items()))
            slots.setdefault(shape, []).append(_slot(slot.index, slot.node))
    return slots


def _moved(placement: Placement) -> frozenset[SlotKey]:
    return frozenset((placed.want.clique, placed.want.index) for placed in placement.placed)


def _said(standing: Standing) -> JsonObject:
    return {"score": round(standing.score, DIGITS), "domain": "/".join(standing.domain)}


def _patch(
    reservation: Reservation, slots: Mapping[Shape, list[Json]], said: JsonObject
) -> JsonObject:
    return {
        "metadata": {"resourceVersion": reservation.metadata.resource_version},
        "spec": {"groups": _groups(slots), **said},
    }


def _groups(slots: Mapping[Shape, list[Json]]) -> list[Json]:
    return [
        {"name": name, "requests": dict(requests), "slots": slots[name, requests]}
        for name, requests in sorted(slots)
    ]


def _placed(placed: Iterable[Placed]) -> dict[Shape, list[Json]]:
    slots: dict[Shape, list[Json]] = {}
    for each in sorted(placed, key=lambda p: (p.want.clique, p.want.index)):
        slots.setdefault(_shape_of(each), []).append(_slot(each.want.index, each.node))
    return slots


def _shape_of(placed: Placed) -> Shape:
    need = sorted(placed.want.need.items())
    return placed.want.clique, tuple((name, quantities.text(name, amount)) for name, amount in need)


def _slot(index: int, node: str) -> Json:
    return {"index": index, "node": node}
