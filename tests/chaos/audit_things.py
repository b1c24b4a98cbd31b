"""Pods, Reservations and the like, as the checker reads them from plain JSON.

Written by itself on purpose: it shares no reading with the controllers it judges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from api import names, quantities
from api.jsons import Json, JsonObject
from api.quantities import Amounts
from tests.chaos.audit_log import part

SlotKey: TypeAlias = tuple[str, str, int]  # namespace, clique and index
NO_SLOT: Final[SlotKey] = ("", "", -1)


@dataclass(frozen=True)
class PodSeen:
    """A pod at an instant."""

    namespace: str
    name: str
    uid: str
    gang: str = ""
    slot: SlotKey = NO_SLOT
    gated: bool = False
    node: str = ""
    pinned: str = ""
    takes: Amounts = field(default_factory=dict)
    deleting: bool = False
    finished: bool = False
    waits: bool = False  # for other cliques to start
    owned: bool = False

    @property
    def lifted(self) -> bool:
        """Whether it is released to one node and not bound yet."""
        return not self.gated and not self.node and bool(self.pinned)

    @property
    def at(self) -> str:
        """The node whose room it takes, or will; empty if none."""
        if self.finished:
            return ""
        return self.node or (self.pinned if not self.gated else "")

    @property
    def bound(self) -> bool:
        """Whether it has a node and stays there."""
        return bool(self.node) and not self.deleting and not self.finished


@dataclass(frozen=True)
class LedgerSeen:
    """A Reservation at an instant."""

    namespace: str
    name: str
    uid: str
    state: str
    slots: Mapping[SlotKey, tuple[str, Amounts]]
    bind_by: float = 0.0


@dataclass(frozen=True)
class GangSeen:
    """A PodGang at an instant: how many pods of each clique it cannot do without."""

    namespace: str
    name: str
    uid: str
    minima: Mapping[str, int]


def pod(body: JsonObject) -> PodSeen:
    """Read a pod."""
    meta, spec, status = part(body, "metadata"), part(body, "spec"), part(body, "status")
    labels = part(meta, "labels")
    namespace, clique = str(meta.get("namespace")), labels.get(names.PODCLIQUE_LABEL)
    index = labels.get(names.POD_INDEX_LABEL)
    gates = [each.get("name") for each in dicts(spec.get("schedulingGates"))]
    blocked = [
        each.get("status")
        for each in dicts(status.get("conditions"))
        if each.get("type") == names.STARTUP_BLOCKED
    ]
    return PodSeen(
        namespace,
        str(meta.get("name")),
        str(meta.get("uid")),
        gang=str(labels.get(names.PODGANG_LABEL) or ""),
        slot=(namespace, str(clique), int(str(index))) if clique and index else NO_SLOT,
        gated=names.GATE in gates,
        node=str(spec.get("nodeName") or ""),
        pinned=_pinned(spec),
        takes=_takes(spec),
        deleting=bool(meta.get("deletionTimestamp")),
        finished=status.get("phase") in ("Succeeded", "Failed"),
        waits="True" in blocked,
        owned=bool(meta.get("ownerReferences")),
    )


def ledger(body: JsonObject) -> LedgerSeen:
    """Read a Reservation; what its status says of an earlier try does not count."""
    meta, spec, status = part(body, "metadata"), part(body, "spec"), part(body, "status")
    namespace = str(meta.get("namespace"))
    current = int(str(spec.get("attempt") or 0)) == int(str(status.get("attempt") or 0))
    said = str(status.get("state") or "Held")
    until = str(status.get("bindBy") or "")
    slots: dict[SlotKey, tuple[str, Amounts]] = {}
    for group in dicts(spec.get("groups")):
        takes = _amounts(part(group, "requests"))
        for slot in dicts(group.get("slots")):
            key = namespace, str(group.get("name")), int(str(slot.get("index")))
            slots[key] = str(slot.get("node")), takes
    return LedgerSeen(
        namespace,
        str(meta.get("name")),
        str(meta.get("uid")),
        said if current else "Held",
        slots,
        seconds(until) if current else 0.0,
    )


def gang(body: JsonObject) -> GangSeen:
    """Read a PodGang."""
    meta, spec = part(body, "metadata"), part(body, "spec")
    groups = dicts(spec.get("podgroups") or spec.get("podGroups"))
    return GangSeen(
        str(meta.get("namespace")),
        str(meta.get("name")),
        str(meta.get("uid")),
        {str(each.get("name")): int(str(each.get("minReplicas") or 0)) for each in groups},
    )


def allocatable(body: JsonObject) -> Amounts:
    """Read what a node has for pods."""
    return _amounts(part(part(body, "status"), "allocatable"))


def seconds(text: str) -> float:
    """Read an instant."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def dicts(value: Json | None) -> list[JsonObject]:
    """Give the objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _pinned(spec: JsonObject) -> str:
    """Give the one node that every term which could match names; empty if there is none."""
    affinity = part(part(spec, "affinity"), "nodeAffinity")
    required = part(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    found: set[str] = set()
    for term in dicts(required.get("nodeSelectorTerms")):
        values = [
            each.get("values")
            for each in dicts(term.get("matchFields"))
            if each.get("key") == "metadata.name" and each.get("operator") == "In"
        ]
        if not values and not term.get("matchExpressions"):
            continue  # it matches nothing
        named = values[0] if values else None
        found.add(str(named[0]) if isinstance(named, list) and len(named) == 1 else "")
    return found.pop() if len(found) == 1 else ""


def _takes(spec: JsonObject) -> Amounts:
    """Add up containers; an init container may need more for a while."""
    total: Amounts = {"pods": 1}
    for container in dicts(spec.get("containers")):
        total = quantities.plus(total, _requests(container))
    for container in dicts(spec.get("initContainers")):
        total = quantities.larger(total, _requests(container))
    return total


def _requests(container: JsonObject) -> Amounts:
    resources = part(container, "resources")
    return _amounts({**part(resources, "limits"), **part(resources, "requests")})


def _amounts(found: JsonObject) -> Amounts:
    return quantities.amounts({name: str(text) for name, text in found.items()})
