"""The cluster as if nobody were on it: whether a gang could ever have room on the nodes there are.

Nodes count as ready and let pods on, since they may again, and of DaemonSets' pods each is there,
since none of them makes room. What others are on and near a node makes no difference then, nor
where the gang's own pods are by now. So who finds no place here finds none however much is freed.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import msgspec

from api.daemonsets import DaemonSet
from api.streams import Condition, Node, Taint
from scheduler import snapshot
from scheduler.answers import NoFit, Plan
from scheduler.requests import GangRequest, Want
from scheduler.retelling import question, retold
from scheduler.room import Room
from scheduler.search.deciding import place
from scheduler.settings import DEFAULTS
from scheduler.snapshot import Snapshot
from scheduler.topology import Levels

# Questions that are looked into for one plan; others of it may be asked with the next.
MOST: Final = 64
_REMEMBERED: Final = 1024
_READY: Final = Condition("Ready", "True")
# Taints that tell how a node is doing just now begin like this.
_PASSING: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True, eq=False)
class Emptied:
    """The nodes, and what takes room of them in any case. Made of what is there at one instant."""

    nodes: tuple[Node, ...]
    levels: tuple[Levels, ...]
    daemonsets: tuple[DaemonSet, ...] = ()
    steps: int = DEFAULTS.steps  # that may be spent on each question
    _known: OrderedDict[Hashable, NoFit | None] = field(default_factory=OrderedDict, repr=False)

    @cached_property
    def snapshot(self) -> Snapshot:
        """Take stock of it."""
        return snapshot.build(map(_opened, self.nodes), (), self.levels, self.daemonsets)

    @cached_property
    def _nobody(self) -> Room:
        """Give room that nothing is put into, to tell who is minded."""
        return Room(self.snapshot)

    def judged(self, plan: Plan) -> Plan:
        """Say of each refused gang that would find no place here either that it never fits."""
        return replace(plan, refusals=tuple(self._judged(plan.refusals)))

    def _judged(self, refusals: Iterable[NoFit]) -> Iterable[NoFit]:
        left = MOST
        for refusal in refusals:
            if not refusal.gang.minimum:
                yield refusal
                continue
            asked = _weakened(refusal.gang)
            key = question(asked, self._nobody.settled)
            if key not in self._known:
                if not left:
                    yield refusal
                    continue
                left -= 1
                self._known[key] = self._refused(asked)
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            found = self._known[key]
            if found is None:
                yield refusal
            else:
                yield replace(retold(found, asked), gang=refusal.gang, never=True)

    def _refused(self, asked: GangRequest) -> NoFit | None:
        answer = place(Room(self.snapshot), asked, self.steps)
        # One that ended with its budget proves nothing.
        return answer if isinstance(answer, NoFit) and not answer.exhausted else None


def _opened(node: Node) -> Node:
    """Give the node as it is when it does well and lets pods on."""
    taints = tuple([taint for taint in node.spec.taints if not _passes(taint)])
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=taints)
    status = msgspec.structs.replace(node.status, conditions=(_READY,))
    return msgspec.structs.replace(node, spec=spec, status=status)


def _passes(taint: Taint) -> bool:
    return taint.key.startswith(_PASSING)


def _weakened(request: GangRequest) -> GangRequest:
    """Ask for the minimum only, and for nothing that turns on where others are."""
    return replace(
        request,
        minimum=tuple([_by_itself(want) for want in request.minimum]),
        extras=(),
        anchors=(),
        spread=tuple([replace(each, taken=()) for each in request.spread]),
        kept=None,
    )


def _by_itself(want: Want) -> Want:
    constraints = want.constraints
    if not (constraints.near or constraints.left):
        return want
    return replace(want, constraints=replace(constraints, near=(), left=()))
