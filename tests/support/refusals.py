"""Gangs that are refused in small clusters, and what is said to unblock them, carried out."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from api import names
from api.quantities import Amounts
from api.streams import Node
from scheduler import cycle
from scheduler.answers import (
    AskFewer,
    FreeRoom,
    Loosen,
    MoreNodes,
    NoFit,
    Placement,
    Remedy,
    Uncordon,
    Widen,
)
from scheduler.eligible import Constraints
from scheduler.requests import Closeness, GangRequest, Want
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels

KEYS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
LEVELS = [Levels("", KEYS)]
GPU = "nvidia.com/gpu"


def wants(
    clique: str, count: int, gpus: int = 8, constraints: Constraints | None = None
) -> tuple[Want, ...]:
    """Pods that take some GPUs each."""
    need: Amounts = {GPU: gpus, "pods": 1}
    return tuple(Want(clique, i, need, constraints or Constraints()) for i in range(count))


@dataclass(frozen=True)
class Case:
    """A gang, the nodes there are, and what is taken of them."""

    gang: GangRequest
    nodes: Sequence[Node]
    holds: Sequence[Hold] = field(default_factory=tuple)

    def snapshot(self) -> Snapshot:
        return build(self.nodes, self.holds, LEVELS)

    def answer(self) -> Placement | NoFit:
        made = cycle.plan(self.snapshot(), [self.gang])
        return made.placements[0] if made.placements else made.refusals[0]

    def refused(self) -> NoFit:
        answer = self.answer()
        assert isinstance(answer, NoFit)
        return answer


def taken(gpus: Mapping[str, int]) -> list[Hold]:
    """Holds of so many GPUs by node."""
    return [Hold(node, {GPU: amount, "pods": 1}) for node, amount in gpus.items()]


def remedied(case: Case, remedy: Remedy) -> Case:
    """Do what the remedy says."""
    match remedy:
        case FreeRoom(_, _, nodes):
            gone = [Hold(n, {r: -a for r, a in less.items()}) for n, less in nodes.items()]
            return dataclasses.replace(case, holds=[*case.holds, *gone])
        case MoreNodes(domain, count, like):
            fresh = [_like(case.nodes, like, domain, i) for i in range(count)]
            return dataclasses.replace(case, nodes=[*case.nodes, *fresh])
        case Uncordon(some):
            back = [cordoned(n, off=False) if n.metadata.name in some else n for n in case.nodes]
            return dataclasses.replace(case, nodes=back)
        case Widen(part, level, wider, _):
            return dataclasses.replace(case, gang=_widened(case.gang, part, level, wider))
        case Loosen(level):
            spread = tuple(each for each in case.gang.spread if each.level != level)
            return dataclasses.replace(case, gang=dataclasses.replace(case.gang, spread=spread))
        case AskFewer(_, pods):
            fewer = tuple(
                w for w in case.gang.minimum if _rank(case.gang, w) < pods.get(w.clique, 0)
            )
            return dataclasses.replace(case, gang=dataclasses.replace(case.gang, minimum=fewer))


def _rank(gang: GangRequest, want: Want) -> int:
    return [w for w in gang.minimum if w.clique == want.clique].index(want)


def _like(nodes: Sequence[Node], like: str, domain: tuple[str, ...], number: int) -> Node:
    found = next(n for n in nodes if n.metadata.name == like)
    labels = {**found.metadata.labels, **dict(zip(KEYS, domain, strict=False))}
    meta = msgspec.structs.replace(found.metadata, name=f"fresh-{number}", labels=labels)
    return msgspec.structs.replace(found, metadata=meta)


def cordoned(node: Node, *, off: bool = True) -> Node:
    """The same node, cordoned or not."""
    spec = msgspec.structs.replace(node.spec, unschedulable=off)
    return msgspec.structs.replace(node, spec=spec)


def _widened(gang: GangRequest, part: str, level: str, wider: str) -> GangRequest:
    def near(was: Closeness) -> Closeness:
        assert was.required == level
        return dataclasses.replace(was, required=wider)

    if not part:
        return dataclasses.replace(gang, near=near(gang.near))
    groups = tuple(
        dataclasses.replace(g, near=near(g.near)) if g.name == part else g for g in gang.groups
    )
    return dataclasses.replace(gang, groups=groups)
