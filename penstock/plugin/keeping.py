"""`penstock reservations`: the room that people keep, and the ledger of gangs' own. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from api.jsons import Json, JsonObject
from api.keep import OwnerRule, State
from api.objects import timestamp
from controller.gangs.entries import read_reservation
from controller.gangs.keeps import views
from controller.gangs.keeps.views import Keep
from controller.gangs.views import Reservation
from kube.objects import Key
from penstock.plugin import reports
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.status import age

_STYLES: Final = {State.AVAILABLE: "green", State.ALLOCATED: "green", State.PENDING: "yellow"}


async def report(
    scene: Scene, namespace: str, *, everywhere: bool = True, ledger: bool = False
) -> Report:
    """Show what people keep; with the ledger, what gangs have too."""
    chosen = {
        key: found
        for key, found in sorted(scene.caches.reservations.items())
        if everywhere or key[0] == namespace
    }
    keeps = {key: keep for key, found in chosen.items() if (keep := views.read(found)) is not None}
    entries: dict[Key, Reservation] = {}
    if ledger:
        read = ((key, read_reservation(found)) for key, found in chosen.items())
        entries = {key: entry for key, entry in read if entry is not None}
    data: JsonObject = {
        "kept": [_kept(keep) for keep in keeps.values()],
        "ledger": [_entry(entry) for entry in entries.values()],
    }
    return Report(data, lambda wide: _drawn(keeps, entries, scene.now, ledger=ledger, wide=wide))


def _kept(keep: Keep) -> Json:
    status = keep.status
    return {
        "namespace": keep.key[0],
        "name": keep.key[1],
        "state": status.state.value,
        "message": status.message,
        "replicas": keep.spec.replicas,
        "slots": [{"index": slot.index, "node": slot.node} for slot in status.slots],
        "kept": {**status.kept},
        "used": {**status.used},
        "users": [{"gang": user.gang, "pods": user.pods} for user in status.users],
        "owners": [_meant(rule) for rule in keep.spec.owners],
        "allocateOnce": keep.spec.allocate_once,
        "expires": timestamp(keep.expires) if keep.expires else None,
    }


def _entry(entry: Reservation) -> Json:
    return {
        "namespace": entry.metadata.namespace,
        "gang": entry.spec.gang.name,
        "state": entry.state.value,
        "domain": entry.spec.domain,
        "score": entry.spec.score,
        "drawsOn": entry.spec.uses.name if entry.spec.uses else None,
        "slots": [
            {"clique": clique, "index": slot.index, "node": slot.node}
            for clique, slot, _ in entry.slots()
        ],
    }


def _meant(rule: OwnerRule) -> str:
    """Say whom a rule means, in few words."""
    said: list[str] = []
    if rule.object is not None:
        said.append(f"{rule.object.kind} {rule.object.name}")
    if rule.controller is not None:
        said.append(f"of {rule.controller.kind} {rule.controller.name}")
    if rule.label_selector is not None:
        labels = [f"{key}={value}" for key, value in rule.label_selector.match_labels.items()]
        labels += [
            f"{each.key} {each.operator.value} {','.join(each.values)}".strip()
            for each in rule.label_selector.match_expressions
        ]
        said.append(", ".join(labels) or "everybody")
    return " and ".join(said)


def _drawn(
    keeps: Mapping[Key, Keep],
    entries: Mapping[Key, Reservation],
    now: datetime,
    *,
    ledger: bool,
    wide: bool,
) -> Iterator[RenderableType]:
    if not keeps:
        yield Text("nobody keeps room")
    else:
        head = ("RESERVATION", "STATE", "SLOTS", "KEPT", "USED", "FOR", "ENDS IN", "MESSAGE")
        rows = [_row(keep, now) for keep in keeps.values()]
        yield reports.table(head, rows, right="SLOTS")
    if wide and keeps:
        yield Text("")
        slots = [
            ("/".join(key), str(slot.index), slot.node)
            for key, keep in keeps.items()
            for slot in keep.status.slots
        ]
        yield reports.table(("RESERVATION", "SLOT", "NODE"), slots, right="SLOT")
    if ledger:
        yield Text("")
        yield from _ledger(entries, wide=wide)


def _row(keep: Keep, now: datetime) -> tuple[str | Text, ...]:
    status = keep.status
    left = age(keep.expires - now) if keep.expires and not keep.ended else "-"
    return (
        "/".join(keep.key),
        Text(status.state.value, _STYLES.get(status.state, "dim")),
        f"{len(status.slots)}/{keep.spec.replicas}",
        _amounts(status.kept),
        _amounts(status.used),
        "; ".join(map(_meant, keep.spec.owners)),
        left,
        status.message,
    )


def _ledger(entries: Mapping[Key, Reservation], *, wide: bool) -> Iterator[RenderableType]:
    if not entries:
        yield Text("no gang has room reserved")
        return
    rows = []
    for key, entry in entries.items():
        nodes = sorted({slot.node for _, slot, _ in entry.slots()})
        shown = ", ".join(nodes) if wide else reports.count(len(nodes), "node")
        rows.append(
            ("/".join(key), entry.state.value, str(entry.size), entry.spec.domain or "-", shown)
        )
    yield reports.table(("GANG", "STATE", "SLOTS", "DOMAIN", "ON"), rows, right="SLOTS")


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(amounts.items()) if name != "pods") or "-"
