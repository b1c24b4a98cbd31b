"""Reservations as they are written: made from a placement, and grown by a later one. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api import names, quantities
from api.jsons import Json, JsonObject
from api.objects import api_version, owner_reference, timestamp
from api.quantities import Amounts
from api.streams import Meta
from controller.gangs.views import Reservation
from scheduler.placing import Placed, Placement

API: Final = api_version(names.GROUP, names.VERSION)
GANG_API: Final = api_version(names.GROVE_GANG_GROUP, names.GROVE_VERSION)


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
        "apiVersion": API,
        "kind": "Reservation",
        "metadata": {
            "name": gang.name,
            "namespace": gang.namespace,
            "labels": {names.GANG_LABEL: gang.name},
            "ownerReferences": [owner_reference(GANG_API, "PodGang", gang)],
        },
        "spec": spec,
    }


def grown(reservation: Reservation, placement: Placement) -> JsonObject:
    """Write the merge patch that adds slots; it fails if the reservation has changed since."""
    slots: dict[str, list[Json]] = {}
    requests: dict[str, Json] = {}
    for group in reservation.spec.groups:
        requests[group.name] = {**group.requests}
        slots[group.name] = [{"index": s.index, "node": s.node} for s in group.slots]
    for placed in placement.placed:
        name = placed.want.group
        requests.setdefault(name, _requests(placed.want.need))
        slots.setdefault(name, []).append({"index": placed.want.index, "node": placed.node})
    groups: list[Json] = [
        {"name": name, "requests": requests[name], "slots": slots[name]} for name in sorted(slots)
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
