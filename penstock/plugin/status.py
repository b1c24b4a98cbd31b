"""`penstock status`: how the cluster, its gangs and its sets are doing, on one page. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError
from rich.console import RenderableType
from rich.text import Text

from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from controller.gangs import patience
from kube.objects import Key
from penstock.plugin import judging, reports
from penstock.plugin.judging import Standing
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from scheduler.filters.counted import is_counted
from scheduler.snapshot import Snapshot

SHOWN: Final = 20  # gangs that wait, unless all are asked for
_CUT: Final = 100  # characters of a message, unless it is asked for in full
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """A gang that waits, in short."""

    key: Key
    since: datetime | None
    reason: str
    message: str
    pods: int


@dataclass(frozen=True)
class _Sum:
    """How much of a resource there is, and how much is free where pods may go."""

    resource: str
    capacity: int
    free: int


async def report(scene: Scene, namespace: str, *, everywhere: bool = True) -> Report:
    """Sum up the whole cluster; of gangs and sets, only those of a namespace if so asked."""
    standings = [
        each for key, each in judging.look(scene).items() if everywhere or key[0] == namespace
    ]
    waiting = sorted(_waiting(standings, scene.now), key=lambda line: (_born(line), line.key))
    taken = judging.snapshot(scene)
    data: JsonObject = {
        "nodes": _nodes(taken),
        "resources": [
            {"name": each.resource, "capacity": each.capacity, "free": each.free}
            for each in _sums(taken)
        ],
        "sets": [each for each in _sets(scene) if everywhere or each["namespace"] == namespace],
        "gangs": dict(sorted(Counter(each.phase.value for each in standings).items())),
        "waiting": [_written(line) for line in waiting],
    }
    return Report(data, lambda wide: _drawn(data, waiting, scene.now, wide=wide))


def _waiting(standings: Iterable[Standing], now: datetime) -> Iterator[Line]:
    for each in standings:
        said = each.said(now)
        if not said.scheduled:
            gang = each.view.gang
            pods = sum(len(group.pod_references) for group in gang.spec.pod_groups)
            since = patience.waits_since(gang)
            yield Line(each.key, since, said.reason, said.message, pods)


def _born(line: Line) -> datetime:
    return line.since or _NEVER


def _nodes(taken: Snapshot) -> JsonObject:
    cordoned = sum(node.spec.unschedulable for node in taken.nodes)
    down = sum(not node.ready for node in taken.nodes)
    return {"all": len(taken.nodes), "cordoned": cordoned, "notReady": down}


def _sums(taken: Snapshot) -> Iterator[_Sum]:
    rows = [
        row for row, node in enumerate(taken.nodes) if node.ready and not node.spec.unschedulable
    ]
    for column, name in enumerate(taken.resources):
        if "/" in name and not is_counted(name):
            there = taken.capacity[rows, column]
            free = taken.free[rows, column].clip(min=0)
            yield _Sum(name, int(there.sum()), int(free.sum()))


def _sets(scene: Scene) -> Iterator[JsonObject]:
    for (namespace, name), found in sorted(scene.sets.items()):
        try:
            spec = PodCliqueSetSpec.model_validate_json(bytes(found.spec))
            status = PodCliqueSetStatus.model_validate_json(bytes(found.status))
        except ValidationError:
            continue  # its own status says what is wrong with it
        yield {
            "namespace": namespace,
            "name": name,
            "replicas": spec.replicas,
            "available": status.available_replicas,
        }


def _written(line: Line) -> Json:
    return {
        "namespace": line.key[0],
        "name": line.key[1],
        "since": timestamp(line.since) if line.since else None,
        "reason": line.reason,
        "message": line.message,
        "pods": line.pods,
    }


def _drawn(
    data: JsonObject, waiting: Sequence[Line], now: datetime, *, wide: bool
) -> Iterator[RenderableType]:
    yield Text.assemble(("nodes  ", "dim"), _counts(data["nodes"], "all"))
    for each in _objects(data["resources"]):
        used = int(str(each["capacity"])) - int(str(each["free"]))
        yield Text.assemble(
            ("       ", ""), f"{each['name']}: {used} of {each['capacity']} used, ",
            (f"{each['free']} free", "green"),
        )  # fmt: skip
    yield Text.assemble(("gangs  ", "dim"), _counts(data["gangs"]) or "none")
    sets = _objects(data["sets"])
    short = [each for each in sets if each["available"] != each["replicas"]]
    told = f"{len(sets) - len(short)} of {reports.count(len(sets), 'set')} with all replicas up"
    yield Text.assemble(("sets   ", "dim"), told if sets else "none")
    if wide and sets:
        yield Text("")
        rows = [(_name(each), f"{each['available']}/{each['replicas']}") for each in sets]
        yield reports.table(("SET", "AVAILABLE"), rows, right="AVAILABLE")
    yield from _queue(waiting, now, wide=wide)


def _queue(waiting: Sequence[Line], now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    """Show who waits, the longest first."""
    yield Text("")
    if not waiting:
        yield Text("no gang waits", "green")
        return
    shown = waiting if wide else waiting[:SHOWN]
    rows = [
        (
            "/".join(line.key),
            age(now - line.since) if line.since else "-",
            str(line.pods),
            Text(line.reason, "yellow"),
            line.message if wide else _short(line.message),
        )
        for line in shown
    ]
    yield reports.table(("WAITING", "FOR", "PODS", "REASON", "MESSAGE"), rows, right="PODS")
    if len(waiting) > len(shown):
        yield Text(f"and {len(waiting) - len(shown)} more; -o wide lists all", "dim")
    yield Text("why, and what would help: penstock explain GANG", "dim")


def _short(message: str) -> str:
    return message if len(message) <= _CUT else f"{message[: _CUT - 1]}…"


def age(since: timedelta) -> str:
    """Write for how long, as kubectl does."""
    seconds = max(0, int(since.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _counts(found: Json, total: str = "") -> str:
    counts = found if isinstance(found, dict) else {}
    said = [f"{number} {word}" for word, number in counts.items() if number and word != total]
    said = [each.replace("notReady", "not ready") for each in said]
    if not total:
        return ", ".join(said)
    return f"{counts[total]} ({', '.join(said)})" if said else str(counts[total])


def _objects(found: Json) -> list[JsonObject]:
    listed = found if isinstance(found, list) else []
    return [each for each in listed if isinstance(each, dict)]


def _name(each: JsonObject) -> str:
    return f"{each['namespace']}/{each['name']}"
