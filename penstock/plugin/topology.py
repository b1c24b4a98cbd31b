"""`penstock topology`: the network as a picture, with what is free and used. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from api import exits, quantities
from api.jsons import Json, JsonObject
from api.streams import Node
from kube.objects import Key
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, reports
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from scheduler import explain, whatif
from scheduler.filters.counted import is_counted
from scheduler.snapshot import Snapshot
from scheduler.topology import Topology

BARS: Final = "▁▂▃▄▅▆▇"  # of what is used on a node, from a little to almost all
FREE: Final = "·"
FULL: Final = "█"
NOTHING: Final = " "  # a node that has none of the resource
CLOSED: Final = "×"  # not ready, or cordoned


@dataclass(frozen=True)
class Box:
    """A node in the picture."""

    name: str
    has: int
    used: int
    state: str  # "", "cordoned" or "not ready"
    gangs: tuple[str, ...]

    @property
    def sign(self) -> Text:
        """Draw it as one character."""
        if self.state:
            return Text(CLOSED, "dim")
        if not self.has:
            return Text(NOTHING)
        if self.used <= 0:
            return Text(FREE, "green")
        if self.used >= self.has:
            return Text(FULL, "red")
        return Text(BARS[self.used * len(BARS) // self.has], "yellow")


@dataclass(frozen=True)
class Area:
    """A domain of the network, or of the nodes that have no label for one: `path` ends in ""."""

    path: tuple[str, ...]
    level: str
    nodes: tuple[Box, ...]
    inner: tuple["Area", ...] = ()

    @property
    def has(self) -> int:
        """How much there is on nodes that take pods."""
        return sum(box.has for box in self.nodes if not box.state)

    @property
    def used(self) -> int:
        """How much of that is taken or spoken for."""
        return sum(box.used for box in self.nodes if not box.state)

    @property
    def name(self) -> str:
        """Name it; a label that repeats what is around it is not said twice."""
        return self.path[-1] if self.path and self.path[-1] else "(no label)"


async def report(scene: Scene, namespace: str, *, name: str = "", resource: str = "") -> Report:
    """Draw the topology of that name, else the built-in one."""
    del namespace  # the network is everybody's
    taken = judging.snapshot(scene)
    topology = chosen(taken, name)
    column = column_of(taken, resource)
    whole = _areas(taken, topology, column)
    what = taken.resources[column] if taken.resources else ""
    return Report(
        _data(whole, what, topology), lambda wide: _drawn(whole, what, topology, wide=wide)
    )


def chosen(taken: Snapshot, name: str) -> Topology:
    """Give the topology of that name, else the built-in one."""
    found = taken.topology(name)
    if found is None:
        there = (
            ", ".join(each.name for each in taken.topologies if each.name) or "only the built-in"
        )
        raise AskedWronglyError(f"there is no topology {name} ({there})", judging.NOT_FOUND)
    return found


def column_of(taken: Snapshot, resource: str) -> int:
    """Give the column of a resource; of none that is named, that of the commonest device."""
    if not taken.resources:
        return 0
    if resource:
        if resource not in taken.resources:
            there = ", ".join(name for name in taken.resources if not is_counted(name))
            raise AskedWronglyError(f"no node has {resource}; there is {there}", exits.BAD_SETTINGS)
        return taken.resources.index(resource)
    devices = [i for i, name in enumerate(taken.resources) if "/" in name and not is_counted(name)]
    if devices:
        return max(devices, key=lambda i: int(taken.capacity[:, i].sum()))
    return taken.resources.index("cpu") if "cpu" in taken.resources else 0


def _areas(taken: Snapshot, topology: Topology, column: int) -> Area:
    boxes = _boxes(taken, column)
    ordered = [boxes[row] for row in topology.order.tolist()]
    nodes = [taken.nodes[row] for row in topology.order.tolist()]
    return Area((), "", tuple(ordered), tuple(_inside(ordered, nodes, topology.keys, ())))


def _inside(
    boxes: Sequence[Box], nodes: Sequence[Node], keys: Sequence[str], path: tuple[str, ...]
) -> Iterator[Area]:
    depth = len(path)
    if depth == len(keys):
        return
    labels = [node.metadata.labels.get(keys[depth], "") for node in nodes]
    for label in dict.fromkeys(labels):
        chosen = [i for i, each in enumerate(labels) if each == label]
        mine, theirs = [boxes[i] for i in chosen], [nodes[i] for i in chosen]
        here = (*path, label)
        yield Area(here, keys[depth], tuple(mine), tuple(_inside(mine, theirs, keys, here)))


def _boxes(taken: Snapshot, column: int) -> list[Box]:
    return [
        Box(
            node.metadata.name,
            int(taken.capacity[row, column]) if taken.resources else 0,
            int(taken.capacity[row, column] - taken.free[row, column]) if taken.resources else 0,
            state_of(node),
            tuple(sorted({"/".join(key) for key in _gangs(taken, row)})),
        )
        for row, node in enumerate(taken.nodes)
    ]


def _gangs(taken: Snapshot, row: int) -> Iterator[Key]:
    for resident in taken.residents[row]:
        key = whatif.gang_of_resident(resident)
        if key is not None:
            yield key


def state_of(node: Node) -> str:
    """Say what keeps pods off a node; "" for nothing."""
    if not node.ready:
        return "not ready"
    return "cordoned" if node.spec.unschedulable else ""


def _drawn(
    whole: Area, resource: str, topology: Topology, *, wide: bool
) -> Iterator[RenderableType]:
    text = partial(_amount, resource)
    closed = [box for box in whole.nodes if box.state]
    head = Text.assemble(
        (resource, "bold"), f": {text(whole.used)} of {text(whole.has)} used, ",
        (f"{text(whole.has - whole.used)} free", "green"),
        f" on {reports.count(len(whole.nodes) - len(closed), 'node')}",
    )  # fmt: skip
    if closed:
        head.append(f"; {len(closed)} more are cordoned or not ready", "yellow")
    yield head
    levels = " > ".join(explain.level_word(key) for key in topology.keys) or "no levels"
    named = f"topology {topology.name}" if topology.name else "built-in topology"
    yield Text(f"{named}: {levels}; a node is {FREE} free, {BARS[3]} in part, {FULL} full or "
               f"{CLOSED} closed", "dim")  # fmt: skip
    rows = [row for area in whole.inner or (whole,) for row in _rows(area, 0, resource, wide=wide)]
    yield reports.table(("DOMAIN", "NODES", "USED", "FREE"), rows, right="USED,FREE")


def _amount(resource: str, amount: int) -> str:
    """Write an amount so that those below one another are in one unit."""
    in_cores = resource == quantities.CPU
    return f"{amount / 1000:.10g}" if in_cores else quantities.text(resource, amount)


def _rows(area: Area, depth: int, resource: str, *, wide: bool) -> Iterator[tuple[str | Text, ...]]:
    text = partial(_amount, resource)
    label = f"{'  ' * depth}{explain.level_word(area.level) or 'cluster'} "
    name = Text.assemble((label, "dim"), area.name if area.path else "")
    signs = Text("")
    if not area.inner:
        for box in area.nodes:
            signs.append_text(box.sign)
    used, free = f"{text(area.used)}/{text(area.has)}", text(area.has - area.used)
    yield (name, signs, used, free)
    for inner in area.inner:
        yield from _rows(inner, depth + 1, resource, wide=wide)
    if wide and not area.inner:
        yield from (_row(box, depth + 1, resource) for box in area.nodes)


def _row(box: Box, depth: int, resource: str) -> tuple[str | Text, ...]:
    text = partial(_amount, resource)
    who = f" {', '.join(box.gangs)}" if box.gangs else ""
    state = f" {box.state}" if box.state else ""
    sign = Text.assemble(box.sign, (state, "yellow"), who)
    free = "-" if box.state else text(box.has - box.used)
    return (f"{'  ' * depth}{box.name}", sign, f"{text(box.used)}/{text(box.has)}", free)


def _data(whole: Area, resource: str, topology: Topology) -> JsonObject:
    return {
        "topology": topology.name,
        "levels": list(topology.keys),
        "resource": resource,
        "capacity": whole.has,
        "used": whole.used,
        "free": whole.has - whole.used,
        "domains": [*_domains(whole.inner)],
        "nodes": [
            {
                "name": box.name, "capacity": box.has, "used": box.used,
                "state": box.state or "open", "gangs": [*box.gangs],
            }
            for box in whole.nodes
        ],
    }  # fmt: skip


def _domains(areas: Iterable[Area]) -> Iterator[Json]:
    for area in areas:
        yield {
            "path": list(area.path),
            "level": area.level,
            "nodes": len(area.nodes),
            "capacity": area.has,
            "used": area.used,
            "free": area.has - area.used,
        }
        yield from _domains(area.inner)
