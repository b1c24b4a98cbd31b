"""From what is known of the cluster to what the page shows. Neither reads nor waits for anything.

Each row is made by a pure function of what it is about. A gang's row is kept until something has
changed for the gang, since to look at all of them anew takes long where there are thousands.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from api import names
from api.objects import condition_of, timestamp
from controller.gangs import patience
from controller.gangs.views import GangView
from controller.gangs.world import World
from kube.objects import Key
from penstock.dashboard.view import Cell, GangRow, Head, Part, QueueRow, RefusalRow, View
from penstock.plugin import queueing, topology
from policies.policy import BUILT_IN, Policy
from policies.policy_queues import Queue
from scheduler import explain, needs, whatif
from scheduler.snapshot import Hold, Snapshot
from scheduler.topology import Topology, path

_NOT_YET: Final = "gangs has said nothing of it yet"


@dataclass(frozen=True)
class Asked:
    """What people asked to see: which topology and resource, if they said so; of which cluster."""

    topology: str = ""
    resource: str = ""
    cluster: str = ""


@dataclass(frozen=True)
class Around:
    """What is known beside the caches: the policy, what was refused, and what cannot be told."""

    policy: Policy = BUILT_IN
    refusals: Mapping[str, RefusalRow] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    audited: bool = False


@dataclass(frozen=True)
class Line:
    """A gang's row, and what its queue counts of it."""

    row: GangRow
    pods: int
    devices: Mapping[str, int]


class Board:
    """Draws the world, again and again. `touch` says for which gang something has changed."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._policy: Policy = BUILT_IN
        self._resource = ""
        self._lines: dict[Key, Line] = {}
        self._touched: set[Key] = set()
        self._stamp = 0

    def touch(self, gang: Key) -> None:
        """Look at this gang anew the next time."""
        self._touched.add(gang)

    def draw(self, world: World, around: Around) -> View:
        """Give the view of the world as it is now."""
        taken = world.stockroom.snapshot([network.levels for network in world.topologies.networks])
        # One that went away, or a resource, is no reason to show nothing.
        chosen = taken.topology(self._asked.topology) or taken.topologies[0]
        resource = resource_of(taken, self._asked.resource)
        if around.policy is not self._policy or resource != self._resource:
            self._policy, self._resource = around.policy, resource
            self._lines.clear()
        self._look(world)
        head = Head(
            self._asked.cluster, resource, tuple(map(explain.level_word, chosen.keys)),
            around.notes, around.audited,
        )  # fmt: skip
        gangs = {"/".join(key): line.row for key, line in self._lines.items()}
        cells = dict(nodes(taken, chosen, resource, world.stockroom.shares()))
        counted = queues(self._policy, self._lines.values())
        return View(head, cells, gangs, counted, around.refusals)

    def row(self, view: GangView) -> GangRow:
        """Tell of one gang as it is now, in the words of the last view."""
        return line(view, self._policy, self._resource, self._stamp).row

    def _look(self, world: World) -> None:
        known, _ = world.known()
        for key in self._lines.keys() - known.keys():
            del self._lines[key]
        self._stamp += 1
        for key in known.keys() - (self._lines.keys() - self._touched):
            view = world.view(key)
            if view is None or view.gang.metadata.deletion_timestamp is not None:
                self._lines.pop(key, None)
            else:
                self._lines[key] = line(view, self._policy, self._resource, self._stamp)
        self._touched.clear()


def resource_of(taken: Snapshot, wanted: str) -> str:
    """Name the resource that is shown: the one that is asked for, else the commonest device."""
    there = taken.resources and (not wanted or wanted in taken.resources)
    return taken.resources[topology.column_of(taken, wanted)] if there else wanted


def nodes(
    taken: Snapshot,
    chosen: Topology,
    resource: str,
    shares: Iterable[tuple[Key | None, Hold]],
) -> Iterator[tuple[str, Cell]]:
    """Draw each node, in the order of the topology."""
    parts = _parts(shares, resource)
    column = taken.resources.index(resource) if resource in taken.resources else None
    rows: list[int] = chosen.order.tolist()
    has: list[int] = taken.capacity[:, column].tolist() if column is not None else [0] * len(rows)
    free: list[int] = taken.free[:, column].tolist() if column is not None else has
    for row in rows:
        node = taken.nodes[row]
        name, used = node.metadata.name, has[row] - free[row]
        mine = parts.get(name, {})
        told = [Part(gang, amount, held) for gang, (amount, held) in sorted(mine.items()) if amount]
        others = used - sum(part.amount for part in told)
        if others > 0:
            told.append(Part("", others))
        where = path(node, chosen.keys)
        yield name, Cell(where, has[row], used, topology.state_of(node), tuple(told))


def _parts(
    shares: Iterable[tuple[Key | None, Hold]], resource: str
) -> dict[str, dict[str, tuple[int, int]]]:
    """Sum up what each gang has of each node, and how much of it is only kept for it."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for slot_of, hold in shares:
        amount = hold.need.get(resource, 0)
        key = slot_of
        if key is None and hold.resident is not None:
            key = whatif.gang_of_resident(hold.resident)
        if amount and key is not None:
            here = found.setdefault(hold.node, {})
            name = f"{key[0]}/{key[1]}"
            there, held = here.get(name, (0, 0))
            here[name] = there + amount, held + (amount if slot_of is not None else 0)
    return found


def line(view: GangView, policy: Policy, resource: str, stamp: int) -> Line:
    """Tell of one gang what its own status says, and how many of its pods have a node."""
    gang = view.gang
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    since = patience.waits_since(gang)
    made = gang.metadata.creation_timestamp
    bound = [each for each in view.members if each.bound and not each.pod.finished]
    taken: Counter[str] = Counter()
    for each in bound:
        taken.update({k: v for k, v in needs.of_pod(each.pod).items() if "/" in k})
    asked = sum(needs.of_pod(each.pod).get(resource, 0) for each in view.members)
    row = GangRow(
        phase=gang.status.phase.value,
        scheduled=said is not None and said.status == "True",
        reason=said.reason if said is not None else "",
        message=said.message if said is not None else _NOT_YET,
        since=timestamp(since) if since is not None else "",
        made=timestamp(made) if made is not None else "",
        queue=queueing.queue_of(policy, view),
        pods=sum(len(group.pod_references) for group in gang.spec.pod_groups),
        bound=len(bound),
        amount=asked,
        stamp=stamp,
    )
    return Line(row, len(bound), taken)


def queues(policy: Policy, lines: Iterable[Line]) -> dict[str, QueueRow]:
    """Sum up the gangs of each queue, those of the policy first."""
    inside: dict[str, list[Line]] = {queue.name: [] for queue in policy.queues}
    for each in lines:
        inside.setdefault(each.row.queue or queueing.NONE, []).append(each)
    known = {queue.name: queue for queue in policy.queues}
    return {name: _queue(known.get(name), found) for name, found in inside.items()}


def _queue(queue: Queue | None, found: Sequence[Line]) -> QueueRow:
    devices: Counter[str] = Counter()
    for each in found:
        devices.update(each.devices)
    return QueueRow(
        gangs=len(found),
        waiting=sum(not each.row.scheduled for each in found),
        pods=sum(each.pods for each in found),
        devices=dict(sorted(devices.items())),
        known=queue is not None,
        default=queue is not None and queue.default,
        namespaces=tuple(queue.namespaces) if queue is not None else (),
        limits=tuple(queueing.limits(queue)) if queue is not None else (),
    )
