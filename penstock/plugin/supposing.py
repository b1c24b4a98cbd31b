"""`penstock what-if`: who would move, starve or get in, if the cluster were another.

The cluster as it was read is changed, and gangs are placed into both as `gangs` would place them.
Pods of gangs that lose their node are made anew, gated, as their controllers would do it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from rich.console import RenderableType
from rich.text import Text

from api import exits, names
from api.jsons import Json, JsonObject
from api.streams import Affinity, Node, NodeSelector, Pod, PodStatus, SchedulingGate, Term
from controller.gangs.views import SlotKey
from kube.objects import Key, KubeObject, key_of
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS, Resource
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, reports
from penstock.plugin.asking import Nodes
from penstock.plugin.planning import WAITS
from penstock.plugin.rehearsing import Outcome, rehearse
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from scheduler import explain, whatif
from scheduler.filters.selecting import NAME_FIELD
from scheduler.whatif import AddNodes, UnknownNameError

_FEW: Final = 4  # pods whose way is told, unless all are asked for

Contents = dict[Resource, list[KubeObject]]


@dataclass(frozen=True)
class Supposed:
    """Another cluster: what is in it, who lost which node, and who is no longer there."""

    what: str
    contents: Contents
    lost: Mapping[Key, Mapping[SlotKey, str]]
    strangers: int = 0  # pods of no gang that lost their node
    gone: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Way:
    """Where a pod was, and where it would be."""

    slot: SlotKey
    before: str
    after: str


@dataclass(frozen=True)
class Effects:
    """What would become of whom."""

    moves: Mapping[Key, tuple[Way, ...]]
    starves: Mapping[Key, str]  # and why
    shrinks: Mapping[Key, int]  # pods beyond the minimum that would find no place any more
    enters: Mapping[Key, tuple[str, ...]]  # who waits now and would have room, in which domain
    waits: tuple[Key, ...]  # as they do now


async def report(
    scene: Scene,
    namespace: str,
    *,
    drain: Sequence[str] = (),
    add: Nodes | None = None,
    delete: str = "",
) -> Report:
    """Tell what an edit would come to."""
    if add is not None:
        supposed = added(scene, AddNodes(add.like, add.count, add.labels))
    elif delete:
        supposed = deleted(scene, namespace, delete)
    else:
        supposed = drained(scene, drain)
    before = rehearse(await scene.with_contents(scene.contents()))
    after = rehearse(await scene.with_contents(supposed.contents))
    effects = compared(before, after, supposed)
    code = WAITS if effects.starves else exits.OK
    return Report(_data(supposed, effects), lambda wide: _drawn(supposed, effects, wide=wide), code)


def drained(scene: Scene, nodes: Sequence[str]) -> Supposed:
    """Cordon these nodes, and take everything off them but pods of DaemonSets."""
    there = {node.metadata.name for node in scene.caches.nodes}
    for name in nodes:
        if name not in there:
            raise AskedWronglyError(judging.unknown_node(name, there, "drain"), judging.NOT_FOUND)
    slots = _slots(scene)
    contents = scene.contents()
    lost: dict[Key, dict[SlotKey, str]] = {}
    pods: list[KubeObject] = []
    strangers = 0
    for pod in scene.caches.pods:
        if pod.spec.node_name not in nodes or pod.finished or _stays(pod):
            pods.append(pod)
        elif key_of(pod) in slots:
            gang, slot = slots[key_of(pod)]
            lost.setdefault(gang, {})[slot] = pod.spec.node_name
            pods.append(made_anew(pod, scene.now))
        else:
            strangers += 1
    contents[PODS] = pods
    contents[NODES] = [
        _cordoned(node) if node.metadata.name in nodes else node for node in scene.caches.nodes
    ]
    return Supposed(f"{_named(nodes)} were drained", contents, lost, strangers)


def added(scene: Scene, add: AddNodes) -> Supposed:
    """Add empty nodes like one that is there."""
    contents = scene.contents()
    try:
        fresh = whatif.more(tuple(scene.caches.nodes), add)
    except UnknownNameError:
        there = {node.metadata.name for node in scene.caches.nodes}
        said = judging.unknown_node(add.like, there, "be like")
        raise AskedWronglyError(said, judging.NOT_FOUND) from None
    contents[NODES] = [*contents[NODES], *fresh]
    what = f"there were {reports.count(add.count, 'more node')} like {add.like}"
    return Supposed(what, contents, {})


def deleted(scene: Scene, namespace: str, name: str) -> Supposed:
    """Take a gang away, or all gangs of a set, with their pods and their room."""
    gangs, _ = scene.world.known()
    key = judging.key_meant(name, namespace)
    gone = {key} & gangs.keys() | {*(judging.made_for(scene, key, gangs) or ())}
    if not gone:
        there = [*gangs, *(each for each, _ in scene.sets.items())]
        raise AskedWronglyError(judging.unknown("gang or set", key, there), judging.NOT_FOUND)
    slots = _slots(scene)
    contents = scene.contents()
    contents[PODGANGS] = [each for each in contents[PODGANGS] if key_of(each) not in gone]
    contents[RESERVATIONS] = [each for each in contents[RESERVATIONS] if key_of(each) not in gone]
    contents[PODS] = [
        pod for pod in scene.caches.pods if slots.get(key_of(pod), (("", ""),))[0] not in gone
    ]
    return Supposed(f"{'/'.join(key)} were deleted", contents, {}, gone=frozenset(gone))


def compared(before: Outcome, after: Outcome, supposed: Supposed) -> Effects:
    """Tell who would move, starve, do with fewer pods, get in, or go on waiting."""
    moves: dict[Key, tuple[Way, ...]] = {}
    starves: dict[Key, str] = {}
    shrinks: dict[Key, int] = {}
    enters: dict[Key, tuple[str, ...]] = {}
    waits: list[Key] = []
    for key in sorted(after.standings):
        now, then = before.nodes_of(key), after.nodes_of(key)
        lost = supposed.lost.get(key, {})
        refusal = after.refusal_of(key)
        if lost:
            ways = [
                Way(slot, node, then[slot]) for slot, node in sorted(lost.items()) if slot in then
            ]
            moves |= {key: tuple(ways)} if ways else {}
        if refusal is not None and (lost or now):
            starves[key] = explain.sentence(refusal)
        elif refusal is not None:
            waits.append(key)
        elif then and not now and not lost:
            enters[key] = after.placed[key][0].domain
        fewer = after.extras_without(key) - before.extras_without(key)
        if fewer > 0:
            shrinks[key] = fewer
    return Effects(moves, starves, shrinks, enters, tuple(waits))


def made_anew(pod: Pod, now: datetime) -> Pod:
    """Give the pod that comes in the place of one that is gone: gated, and tied to no node."""
    spec = msgspec.structs.replace(
        pod.spec,
        node_name="",
        scheduling_gates=(SchedulingGate(names.GATE),),
        affinity=_unpinned(pod.spec.affinity),
    )
    meta = msgspec.structs.replace(
        pod.metadata, uid=f"{pod.metadata.uid}-anew", creation_timestamp=now
    )
    return Pod(meta, spec, PodStatus())


def _unpinned(affinity: Affinity | None) -> Affinity | None:
    """Take the pin out of every term; what was only a pin is no term."""
    nodes = affinity.node_affinity if affinity is not None else None
    if affinity is None or nodes is None or nodes.required is None:
        return affinity
    terms = [_without_pin(term) for term in nodes.required.node_selector_terms]
    kept = tuple(term for term in terms if term.match_expressions or term.match_fields)
    required = NodeSelector(kept) if kept else None
    return msgspec.structs.replace(
        affinity, node_affinity=msgspec.structs.replace(nodes, required=required)
    )


def _without_pin(term: Term) -> Term:
    fields = tuple(
        each
        for each in term.match_fields
        if not (each.key == NAME_FIELD and each.operator == "In" and len(each.values) == 1)
    )
    return msgspec.structs.replace(term, match_fields=fields)


def _slots(scene: Scene) -> dict[Key, tuple[Key, SlotKey]]:
    """Give the gang and the slot of each pod that has one."""
    gangs, _ = scene.world.known()
    return {
        key_of(member.pod): (key, member.slot)
        for key in gangs
        if (view := scene.world.view(key)) is not None
        for member in view.members
    }


def _stays(pod: Pod) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references)


def _cordoned(node: Node) -> Node:
    spec = msgspec.structs.replace(node.spec, unschedulable=True)
    return msgspec.structs.replace(node, spec=spec)


def _named(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) if len(nodes) <= 2 else f"{len(nodes)} nodes"


def _data(supposed: Supposed, effects: Effects) -> JsonObject:
    return {
        "supposed": supposed.what,
        "moves": [
            {
                **_gang(key),
                "pods": [
                    {
                        "clique": way.slot[0], "index": way.slot[1],
                        "from": way.before, "to": way.after,
                    }
                    for way in ways
                ],
            }
            for key, ways in effects.moves.items()
        ],
        "starves": [{**_gang(key), "message": why} for key, why in effects.starves.items()],
        "shrinks": [{**_gang(key), "pods": pods} for key, pods in effects.shrinks.items()],
        "enters": [{**_gang(key), "domain": [*path]} for key, path in effects.enters.items()],
        "waits": [_gang(key) for key in effects.waits],
        "gone": [_gang(key) for key in sorted(supposed.gone)],
        "podsOfNoGang": supposed.strangers,
    }  # fmt: skip


def _gang(key: Key) -> dict[str, Json]:
    return {"namespace": key[0], "name": key[1]}


def _drawn(supposed: Supposed, effects: Effects, *, wide: bool) -> Iterator[RenderableType]:
    yield Text(f"if {supposed.what}:", "bold")
    rows: list[tuple[Text, str, str]] = []
    rows += [
        (Text("  moves", "yellow"), "/".join(key), _told(ways, wide=wide))
        for key, ways in effects.moves.items()
    ]
    rows += [(Text("  starves", "red"), "/".join(key), why) for key, why in effects.starves.items()]
    rows += [
        (Text("  shrinks", "yellow"), "/".join(key), f"{reports.count(pods, 'pod')} beyond its"
         " minimum would find no place")
        for key, pods in effects.shrinks.items()
    ]  # fmt: skip
    rows += [
        (Text("  gets in", "green"), "/".join(key), f"to {explain.domain_text(path)}")
        for key, path in effects.enters.items()
    ]
    if rows:
        yield reports.table(("", "", ""), rows)
    else:
        yield Text("  no gang would move, starve or get in")
    if supposed.strangers:
        yield Text(
            f"  {reports.count(supposed.strangers, 'pod')} of no gang would lose their node too;"
            " kube-scheduler places them",
            "dim",
        )
    if effects.waits:
        yield Text(f"  {reports.count(len(effects.waits), 'gang')} would wait as now", "dim")


def _told(ways: Iterable[Way], *, wide: bool) -> str:
    every = list(ways)
    shown = every if wide else every[:_FEW]
    said = ", ".join(f"{way.slot[0]}-{way.slot[1]} {way.before} → {way.after}" for way in shown)
    more = f" and {len(every) - len(shown)} more" if len(every) > len(shown) else ""
    return f"{reports.count(len(every), 'pod')}: {said}{more}"
