"""`penstock explain`: why a gang waits, what comes nearest, and what would let it in. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from api import names
from api.jsons import Json, JsonObject
from api.objects import condition_of
from controller.gangs import patience
from kube.objects import Key
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, reports
from penstock.plugin.judging import Said, Standing
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.status import age
from scheduler import explain, showing
from scheduler.answers import Plan

_STYLES: Final = {True: "green", False: "yellow"}


async def report(scene: Scene, namespace: str, *, gang: str) -> Report:
    """Tell all that is known of a gang's waiting, or where it is; of a set's name, of its gangs."""
    standings = judging.look(scene)
    key = judging.key_meant(gang, namespace)
    if key in standings:
        one = _Told.of(standings[key], standings, scene.now)
        return Report(one.data(), lambda wide: one.drawn(wide=wide))
    gangs = {each: standing.view.gang for each, standing in standings.items()}
    its = judging.made_for(scene, key, gangs)
    if its is None:
        there = [*standings, *(each for each, _ in scene.sets.items())]
        raise AskedWronglyError(judging.unknown("gang or set", key, there), judging.NOT_FOUND)
    every = [_Told.of(standings[each], standings, scene.now) for each in its]
    data: JsonObject = {
        "set": {"namespace": key[0], "name": key[1]},
        "gangs": [each.data() for each in every],
    }
    return Report(data, lambda wide: _of_set(key, every, wide=wide))


@dataclass(frozen=True)
class _Told:
    """What is told of one gang."""

    found: Standing
    said: Said
    base: Standing | None
    now: datetime

    @classmethod
    def of(cls, found: Standing, standings: Mapping[Key, Standing], now: datetime) -> "_Told":
        base = standings.get(found.view.gang.base) if found.view.gang.base else None
        return cls(found, found.said(now), base, now)

    def data(self) -> JsonObject:
        return _data(self.found, self.said)

    def drawn(self, *, wide: bool) -> Iterator[RenderableType]:
        return _drawn(self.found, self.said, self.base, self.now, wide=wide)


def _of_set(key: Key, gangs: Sequence[_Told], *, wide: bool) -> Iterator[RenderableType]:
    """Tell who waits at length, and of the others where they are only if more is asked for."""
    waiting = sum(not each.said.scheduled for each in gangs)
    counted = reports.count(len(gangs), "gang") if gangs else "no gang has been made for it yet"
    how = f", of which {waiting} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
    yield Text.assemble(("set ", "dim"), ("/".join(key), "bold"), f"  {counted}{how}")
    for each in gangs:
        if wide or not each.said.scheduled:
            yield Text("")
            yield from each.drawn(wide=wide)
        else:
            yield from _headed(each.found, each.said, each.now)


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
    yield from _headed(found, said, now)
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


def _headed(found: Standing, said: Said, now: datetime) -> Iterator[RenderableType]:
    """Tell in two lines how it is."""
    since = patience.waits_since(found.view.gang)
    waited = f", waits for {age(now - since)}" if since and not said.scheduled else ""
    yield Text.assemble(
        ("gang ", "dim"), ("/".join(found.key), "bold"), f"  {found.phase.value}{waited}"
    )
    yield Text.assemble(
        (said.reason, _STYLES[said.scheduled]), f": {said.message}" if said.message else ""
    )


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
