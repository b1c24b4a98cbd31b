"""The same question about another cluster: saved snapshots edited, and plans compared. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from api import names
from api.streams import Node
from scheduler.answers import Placement, Plan
from scheduler.filters.counted import is_counted
from scheduler.requests import GangRequest
from scheduler.residents import Resident
from scheduler.saving import Saved
from scheduler.snapshot import Hold

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a gang."""


class UnknownNameError(LookupError):
    """An edit names something that the saved snapshot does not have."""


@dataclass(frozen=True)
class AddNodes:
    """Add empty nodes like one that is there, with these labels beside its own."""

    like: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drain:
    """Cordon these nodes and take everything off them but pods of DaemonSets."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class RemoveGang:
    """Take a gang away: the room its pods have, and what it asks for."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Reprioritise:
    """Let a gang that asks for room have another priority."""

    namespace: str
    name: str
    priority: int


Edit: TypeAlias = AddNodes | Drain | RemoveGang | Reprioritise


@dataclass(frozen=True)
class Move:
    """A gang that is placed both times, and where."""

    gang: Key
    before: tuple[str, ...]  # the domain
    after: tuple[str, ...]
    pods: int  # on other nodes than before


@dataclass(frozen=True)
class Difference:
    """What became of each gang of the first plan, in the order of names."""

    placed: tuple[Key, ...]  # refused before
    starved: tuple[Key, ...]  # placed before, refused now
    moved: tuple[Move, ...]
    same: tuple[Key, ...]  # placed on the same nodes
    waiting: tuple[Key, ...]  # refused both times
    gone: tuple[Key, ...]  # not asked about any more


def apply(saved: Saved, edits: Iterable[Edit]) -> Saved:
    """Give the saved snapshot with these edits made, one after another."""
    for edit in edits:
        match edit:
            case AddNodes():
                saved = _added(saved, edit)
            case Drain(nodes):
                saved = _drained(saved, nodes)
            case RemoveGang(namespace, name):
                saved = _removed(saved, (namespace, name))
            case Reprioritise(namespace, name, priority):
                saved = _reprioritised(saved, (namespace, name), priority)
    return saved


def displaced(saved: Saved, edits: Iterable[Edit]) -> dict[Key, int]:
    """Count the pods of running gangs that drained nodes lose, by gang; all others by no name."""
    drained = {node for edit in edits if isinstance(edit, Drain) for node in edit.nodes}
    found: dict[Key, int] = {}
    for hold in saved.holds:
        if hold.node in drained and not hold.daemon and not all(map(is_counted, hold.need)):
            key = gang_of(hold) or ("", "")
            found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items()))


def compare(before: Plan, after: Plan) -> Difference:
    """Tell what became of each gang that the first plan was about."""
    old = {_key(placement.gang): placement for placement in before.placements}
    new = {_key(placement.gang): placement for placement in after.placements}
    refused = {_key(refusal.gang) for refusal in before.refusals}
    asked = new.keys() | {_key(refusal.gang) for refusal in after.refusals}
    both = sorted(old.keys() & new.keys())
    moves = {key: _move(key, old[key], new[key]) for key in both}
    return Difference(
        tuple(sorted(refused & new.keys())),
        tuple(sorted((old.keys() & asked) - new.keys())),
        tuple(moves[key] for key in both if moves[key].pods),
        tuple(key for key in both if not moves[key].pods),
        tuple(sorted((refused & asked) - new.keys())),
        tuple(sorted((old.keys() | refused) - asked)),
    )


def gang_of(hold: Hold) -> Key | None:
    """Tell whose room it is, as far as the labels of who is there tell."""
    return gang_of_resident(hold.resident) if hold.resident is not None else None


def gang_of_resident(who: Resident) -> Key | None:
    """Tell whose pod it is, as far as its labels tell."""
    name = who.labels.get(names.PODGANG_LABEL) or who.labels.get(names.GANG_LABEL)
    return (who.namespace, name) if name else None


def more(nodes: Sequence[Node], edit: AddNodes) -> tuple[Node, ...]:
    """Make the nodes that an edit adds to these."""
    model = next((node for node in nodes if node.metadata.name == edit.like), None)
    if model is None:
        raise UnknownNameError(f"there is no node {edit.like} to add nodes like")
    taken = {node.metadata.name for node in nodes}
    fresh: list[Node] = []
    number = 0
    while len(fresh) < edit.count:
        name = f"{edit.like}-new-{number}"
        number += 1
        if name not in taken:
            fresh.append(_copy(model, name, edit.labels))
    return tuple(fresh)


def _added(saved: Saved, edit: AddNodes) -> Saved:
    return msgspec.structs.replace(saved, nodes=(*saved.nodes, *more(saved.nodes, edit)))


def _copy(model: Node, name: str, labels: Mapping[str, str]) -> Node:
    own = {names.HOSTNAME_KEY: name} if names.HOSTNAME_KEY in model.metadata.labels else {}
    meta = msgspec.structs.replace(
        model.metadata, name=name, labels={**model.metadata.labels, **own, **labels}
    )
    spec = msgspec.structs.replace(model.spec, unschedulable=False)
    return msgspec.structs.replace(model, metadata=meta, spec=spec)


def _drained(saved: Saved, nodes: tuple[str, ...]) -> Saved:
    known = {node.metadata.name for node in saved.nodes}
    for name in nodes:
        if name not in known:
            raise UnknownNameError(f"there is no node {name} to drain")
    cordoned = tuple(
        _cordoned(node) if node.metadata.name in nodes else node for node in saved.nodes
    )
    left = tuple(hold for hold in saved.holds if hold.daemon or hold.node not in nodes)
    return msgspec.structs.replace(saved, nodes=cordoned, holds=left)


def _cordoned(node: Node) -> Node:
    spec = msgspec.structs.replace(node.spec, unschedulable=True)
    return msgspec.structs.replace(node, spec=spec)


def _removed(saved: Saved, key: Key) -> Saved:
    holds = tuple(hold for hold in saved.holds if gang_of(hold) != key)
    requests = tuple(request for request in saved.requests if _key(request) != key)
    if (len(holds), len(requests)) == (len(saved.holds), len(saved.requests)):
        raise UnknownNameError(f"there is no gang {'/'.join(key)}: no pod has room as one of it")
    return msgspec.structs.replace(saved, holds=holds, requests=requests)


def _reprioritised(saved: Saved, key: Key, priority: int) -> Saved:
    if key not in map(_key, saved.requests):
        raise UnknownNameError(f"no gang {'/'.join(key)} asks for room")
    requests = tuple(
        replace(request, priority=priority) if _key(request) == key else request
        for request in saved.requests
    )
    return msgspec.structs.replace(saved, requests=requests)


def _move(key: Key, old: Placement, new: Placement) -> Move:
    where = {(p.want.clique, p.want.index): p.node for p in old.placed}
    now = {(p.want.clique, p.want.index): p.node for p in new.placed}
    pods = sum(where.get(slot) != now.get(slot) for slot in where.keys() | now.keys())
    return Move(key, old.domain, new.domain, pods)


def _key(request: GangRequest) -> Key:
    return request.namespace, request.name
