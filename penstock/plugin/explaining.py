"""`penstock explain`: why a gang waits, what comes nearest, and what would let it in. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from api import names
from api.jsons import Json, JsonObject
from api.objects import condition_of
from controller.gangs import patience
from penstock.plugin import judging, reports
from penstock.plugin.judging import Said, Standing
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.status import age
from scheduler import explain, showing
from scheduler.answers import Plan

_STYLES: Final = {True: "green", False: "yellow"}


async def report(scene: Scene, namespace: str, *, gang: str) -> Report:
    """Tell all that is known of one gang's waiting, or where it is."""
    standings = judging.look(scene)
    found = judging.named(standings, gang, namespace)
    said = found.said(scene.now)
    base = standings.get(found.view.gang.base) if found.view.gang.base else None
    return Report(_data(found, said), lambda wide: _drawn(found, said, base, scene.now, wide=wide))


def _data(found: Standing, said: Said) -> JsonObject:
    view = found.view
    base = view.gang.base
    return {
        "gang": {"namespace": found.key[0], "name": found.key[1]},
        "phase": found.phase.value,
        "scheduled": said.scheduled,
        "reason": said.reason,
        "message": said.message,
        "podsToCome": found.early,
        "base": base[1] if base else None,
        "queue": judging.queue_of(view) or None,
        "notHeeded": found.unheeded or None,
        "cliques": [*_cliques(found)],
        "placement": showing.placement_json(found.placement) if found.placement else None,
        "refusal": explain.details(found.refusal) if found.refusal else None,
    }


def _cliques(found: Standing) -> Iterator[Json]:
    for group in found.view.gang.spec.pod_groups:
        members = found.view.of_clique(group.name)
        yield {
            "name": group.name,
            "asked": len(group.pod_references),
            "minimum": group.min_replicas,
            "there": len(members),
            "gated": sum(member.gated for member in members),
            "bound": sum(member.bound for member in members),
            "up": sum(member.up for member in members),
            "nodes": [*_homes(found, group.name)],
        }


def _homes(found: Standing, clique: str) -> list[str]:
    """Name the nodes that its pods are on, or have a slot on."""
    slots = found.view.nodes_by_slot().items()
    bound = {member.pod.spec.node_name for member in found.view.of_clique(clique) if member.bound}
    return sorted(bound | {node for (name, _), node in slots if name == clique})


def _drawn(
    found: Standing, said: Said, base: Standing | None, now: datetime, *, wide: bool
) -> Iterator[RenderableType]:
    gang = found.view.gang
    since = patience.waits_since(gang)
    waited = f", waits for {age(now - since)}" if since and not said.scheduled else ""
    yield Text.assemble(
        ("gang ", "dim"), ("/".join(found.key), "bold"), f"  {found.phase.value}{waited}"
    )
    yield Text.assemble(
        (said.reason, _STYLES[said.scheduled]), f": {said.message}" if said.message else ""
    )
    placed = condition_of(gang.status.conditions, names.PLACED)
    if placed is not None and placed.status == "True":
        yield Text.assemble(("placed ", "dim"), placed.message)
    if found.early:
        yield Text("its pods are still to be made; this is what their templates come to", "dim")
    if found.unheeded and found.unheeded not in said.message:
        yield Text(found.unheeded, "yellow")
    if base is not None and not found.view.base_started:
        its = base.said(now)
        why = f": {its.message}" if its.message else ""
        yield Text.assemble(("comes after ", "dim"), f"{'/'.join(base.key)}, {its.reason}{why}")
    if wide or found.refusal is None:
        yield Text("")
        yield _table(found, wide=wide)
    if found.refusal is not None:
        yield from _refusal(found)
    elif found.placement is not None:
        told = showing.gang_explained(Plan((found.placement,), ()), found.key) or ""
        yield Text(f"\n{told.rstrip()}")


def _refusal(found: Standing) -> Iterator[RenderableType]:
    """Tell what every level and domain lacks, and what would help; the sentence was told."""
    if found.refusal is None:
        return
    told = showing.gang_explained(Plan((), (found.refusal,)), found.key) or ""
    _, _, rest = told.partition("\n")
    if rest.strip():
        yield Text(rest.rstrip())


def _table(found: Standing, *, wide: bool) -> RenderableType:
    rows = []
    for each in _cliques(found):
        if not isinstance(each, dict):
            continue
        nodes = each["nodes"] if isinstance(each["nodes"], list) else []
        shown = ", ".join(map(str, nodes)) if wide else reports.count(len(nodes), "node")
        counts = [str(each[key]) for key in ("asked", "minimum", "there", "gated", "bound", "up")]
        rows.append((str(each["name"]), *counts, shown if nodes else "-"))
    head = ("CLIQUE", "PODS", "MINIMUM", "THERE", "GATED", "BOUND", "UP", "ON")
    return reports.table(head, rows, right="PODS,MINIMUM,THERE,GATED,BOUND,UP")
