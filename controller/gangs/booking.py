"""Reservations as they are written: made from a placement, and grown by a later one. Pure."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from api import names, quantities
from api.jsons import Json, JsonObject
from api.objects import owner_reference, timestamp
from api.quantities import Amounts
from api.streams import Meta
from controller.gangs.views import Reservation, SlotKey
from kube.resources import PODGANGS, RESERVATIONS
from scheduler.placing import Placed, Placement


@dataclass(frozen=True)
class Terms:
    """On whose authority a reservation is made, and for how long."""

    now: datetime
    patience: timedelta
    generation: int


def body(gang: Meta, placement: Placement, terms: Terms) -> JsonObject:
    """Write a new reservation. It is called like its gang, so a gang can never have two."""
    spec: JsonObject = {
        "gang": {"name": gang.name, "uid": gang.uid},
        "deadline": timestamp(terms.now + terms.patience),
        "generation": terms.generation,
        "score": placement.score,
        "groups": _groups(placement.placed),
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


def grown(reservation: Reservation, placement: Placement) -> JsonObject:
    """Write the merge patch that adds slots; it fails if the reservation has changed since."""
    slots = _slots(reservation)
    requests: dict[str, Json] = {g.name: {**g.requests} for g in reservation.spec.groups}
    for placed in placement.placed:
        name = placed.want.group
        requests.setdefault(name, _requests(placed.want.need))
        slots.setdefault(name, []).append({"index": placed.want.index, "node": placed.node})
    return _patch(reservation, requests, slots)


def trimmed(reservation: Reservation, stale: Set[SlotKey]) -> JsonObject:
    """Write the merge patch that takes slots out; it fails if the reservation has changed since.

    Only this write frees their room: a slot that is in the ledger is always kept, since a pod that
    comes back to it is lifted without being asked again whether there is room.
    """
    requests: dict[str, Json] = {g.name: {**g.requests} for g in reservation.spec.groups}
    return _patch(reservation, requests, _slots(reservation, stale))


def _slots(reservation: Reservation, without: Set[SlotKey] = frozenset()) -> dict[str, list[Json]]:
    return {
        group.name: [
            {"index": slot.index, "node": slot.node}
            for slot in group.slots
            if (group.name, slot.index) not in without
        ]
        for group in reservation.spec.groups
    }


def _patch(
    reservation: Reservation, requests: Mapping[str, Json], slots: Mapping[str, list[Json]]
) -> JsonObject:
    groups: list[Json] = [
        {"name": name, "requests": requests[name], "slots": slots[name]}
        for name in sorted(slots)
        if slots[name]
    ]
    return {
        "metadata": {"resourceVersion": reservation.metadata.resource_version},
        "spec": {"groups": groups},
    }


def _groups(placed: Iterable[Placed]) -> list[Json]:
    slots: dict[str, list[Json]] = {}
    requests: dict[str, Json] = {}
    for each in sorted(placed, key=lambda p: (p.want.group, p.want.index)):
        requests.setdefault(each.want.group, _requests(each.want.need))
        slots.setdefault(each.want.group, []).append({"index": each.want.index, "node": each.node})
    return [{"name": name, "requests": requests[name], "slots": slots[name]} for name in slots]


def _requests(need: Amounts) -> JsonObject:
    return {name: quantities.text(name, amount) for name, amount in sorted(need.items())}
