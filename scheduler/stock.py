"""The cluster kept up by events, so that a snapshot costs what has changed since the last one.

A Stock is the one thing in the engine that is written. Whatever came and went on the way, its
snapshot is the one that `snapshot.build` makes of what is there now.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import numpy as np

from api.daemonsets import DaemonSet
from api.quantities import Amounts
from api.streams import Node, Pod
from scheduler import daemons, needs, residents, topology
from scheduler.daemons import Daemon
from scheduler.emptied import Emptied
from scheduler.residents import Resident
from scheduler.snapshot import Hold, Latest, Since, Snapshot, housed, matrix, offered, written
from scheduler.topology import Ints, Levels, Natural

_NOBODY: Final[Amounts] = {}


def hold_of(pod: Pod, node: str = "") -> Hold | None:
    """Give the room a pod takes, or None if it takes none.

    It takes room on its node, or on the one it is nominated for, or, before anybody has told the
    API server, on the one that is named here.
    """
    where = "" if pod.finished else pod.spec.node_name or node or pod.status.nominated_node_name
    if not where:
        return None
    daemon = ""
    for owner in pod.metadata.owner_references:
        if owner.controller and owner.kind == "DaemonSet":
            daemon = owner.uid
    return Hold(where, needs.of_pod(pod), residents.of_pod(pod), daemon)


class _Spot:
    """One node: what it has, and what is taken of it. It may be spoken for before it is there."""

    __slots__ = (
        "daemons",
        "expected",
        "holds",
        "name",
        "node",
        "offer",
        "present",
        "taken",
        "there",
    )

    def __init__(self, name: str) -> None:
        self.name: Natural = topology.natural(name)
        self.node: Node | None = None
        self.offer: Amounts = _NOBODY
        self.holds: dict[Hashable, Hold] = {}
        self.taken: dict[str, int] = {}
        self.present: dict[str, int] = {}  # how many holds each DaemonSet has here
        self.daemons: tuple[Daemon, ...] = ()  # those that are to run here
        self.expected: tuple[Daemon, ...] = ()  # those of them that have no pod here
        self.there: tuple[Resident, ...] = ()

    def put(self, key: Hashable, hold: Hold) -> None:
        self.holds[key] = hold
        taken = self.taken
        for name, amount in hold.need.items():
            taken[name] = taken.get(name, 0) + amount
        if hold.daemon:
            self.present[hold.daemon] = self.present.get(hold.daemon, 0) + 1

    def drop(self, key: Hashable) -> None:
        hold = self.holds.pop(key)
        for name, amount in hold.need.items():
            self.taken[name] -= amount
        if hold.daemon:
            self.present[hold.daemon] -= 1
            if not self.present[hold.daemon]:
                del self.present[hold.daemon]

    def settle(self) -> None:
        """Say again who is here and who is still to come."""
        if self.daemons or self.expected:
            self.expected = tuple([d for d in self.daemons if d.uid not in self.present])
        there = [hold.resident for hold in self.holds.values() if hold.resident is not None]
        found = housed(there, self.expected)
        if found != self.there:
            self.there = found

    def free(self, resources: Sequence[str]) -> list[int]:
        """What is left, by column."""
        offer, taken = self.offer, self.taken
        left = [offer.get(name, 0) - taken.get(name, 0) for name in resources]
        for daemon in self.expected:
            for column, name in enumerate(resources):
                left[column] -= daemon.need.get(name, 0)
        return left


class _Table:
    """The spots of nodes in the order of rows, and the arrays that say what they have."""

    def __init__(self, spots: Iterable[_Spot], levels: Sequence[Levels]) -> None:
        found = [(spot, spot.node) for spot in spots if spot.node is not None]
        nodes = [node for _, node in found]
        order, self.topologies = topology.arranged(levels, nodes, [s.name for s, _ in found])
        self.spots = [found[i][0] for i in order]
        self.nodes = tuple([found[i][1] for i in order])
        self.row_of: Mapping[str, int] = {n.metadata.name: row for row, n in enumerate(self.nodes)}
        self.residents: tuple[tuple[Resident, ...], ...] = ()
        self.resources: tuple[str, ...] = ()
        self.capacity: Ints = matrix([], ())
        self.free: Ints = matrix([], ())

    def fill(self, resources: tuple[str, ...]) -> None:
        """Write all rows in these columns."""
        self.resources = resources
        self.capacity = written([spot.offer for spot in self.spots], resources)
        self.free = matrix([spot.free(resources) for spot in self.spots], resources)
        self.residents = tuple([spot.there for spot in self.spots])

    def follow(self, before: "_Table", changed: Set[str]) -> None:
        """Take rows from the table before, but for nodes that are new or not what they were."""
        self.resources = before.resources
        names = [spot.name[1] for spot in self.spots]
        old = [-1 if name in changed else before.row_of.get(name, -1) for name in names]
        rows = [row for row, there in enumerate(old) if there < 0]
        self.capacity, self.free = before.capacity[old], before.free[old]
        self.capacity.flags.writeable = False
        self.residents = tuple([spot.there for spot in self.spots])
        self.refill(rows, nodes=True)

    def refill(self, rows: Sequence[int], *, nodes: bool) -> None:
        """Write these rows again; only what is on them has changed, unless it is `nodes` too."""
        spots = [self.spots[row] for row in rows]
        fresh = self.free.copy()
        fresh[rows] = matrix([spot.free(self.resources) for spot in spots], self.resources)
        self.free = fresh
        if any(
            self.residents[row] is not spot.there for row, spot in zip(rows, spots, strict=True)
        ):
            there = list(self.residents)
            for row, spot in zip(rows, spots, strict=True):
                there[row] = spot.there
            self.residents = tuple(there)
        if nodes:
            self._renew(rows)

    def _renew(self, rows: Sequence[int]) -> None:
        offers = written([self.spots[row].offer for row in rows], self.resources)
        if not np.array_equal(self.capacity[rows], offers):
            capacity = self.capacity.copy()
            capacity[rows] = offers
            capacity.flags.writeable = False
            self.capacity = capacity
        every = list(self.nodes)
        for row in rows:
            every[row] = self.spots[row].node or every[row]
        self.nodes = tuple(every)


class Stock:
    """What there is, and what is taken of it. Keys of holds may be anything that can be hashed.

    Of several holds under one key only the last counts. Holds on nodes that are not there yet, or
    no longer, wait for them.
    """

    def __init__(self, levels: Sequence[Levels]) -> None:
        self._levels = tuple(levels)
        self._spots: dict[str, _Spot] = {}
        self._where: dict[Hashable, str] = {}
        self._daemonsets: dict[tuple[str, str], DaemonSet] = {}
        self._daemons: dict[tuple[str, str], Daemon] = {}
        self._naming: Counter[str] = Counter()  # how many nodes have each resource
        self._table = _Table((), self._levels)
        self._moved = True  # whether rows are other nodes, or in another order
        self._touched: set[str] = set()  # nodes whose rows are not what they were
        self._renewed: set[str] = set()  # nodes that are other objects than they were
        self._latest = Latest()
        self._since: Since | None = None
        self._last: Snapshot | None = None
        self._emptied: Emptied | None = None

    @property
    def levels(self) -> tuple[Levels, ...]:
        """The topologies that nodes are ordered by."""
        return self._levels

    def nodes(self) -> Iterator[Node]:
        """List the nodes that are there."""
        return (spot.node for spot in self._spots.values() if spot.node is not None)

    def holds(self) -> Iterator[Hold]:
        """List all that is taken, also where no node is."""
        return (hold for spot in self._spots.values() for hold in spot.holds.values())

    def entries(self) -> Iterator[tuple[Hashable, Hold]]:
        """List all that is taken with its keys, also where no node is."""
        return (entry for spot in self._spots.values() for entry in spot.holds.items())

    def daemonsets(self) -> Iterator[DaemonSet]:
        """List the DaemonSets whose pods are expected."""
        return iter(self._daemonsets.values())

    def overdrawn(self, name: str, leaving: Set[Hashable] = frozenset()) -> frozenset[str]:
        """Name the resources of which more is spoken for on a node than it has.

        Holds of those that are `leaving` do not count, unless a DaemonSet makes another at once.
        """
        spot = self._spots.get(name)
        if spot is None or spot.node is None:
            return frozenset()
        spot.settle()
        asked = {*spot.taken, *(each for daemon in spot.expected for each in daemon.need)}
        resources = tuple(asked)
        left = dict(zip(resources, spot.free(resources), strict=True))
        for key in leaving & spot.holds.keys():
            hold = spot.holds[key]
            for resource, amount in hold.need.items() if not hold.daemon else ():
                left[resource] += amount
        return frozenset(resource for resource, amount in left.items() if amount < 0)

    def arrange(self, levels: Sequence[Levels]) -> None:
        """Order nodes by these topologies from now on."""
        if tuple(levels) != self._levels:
            self._levels = tuple(levels)
            self._moved, self._emptied = True, None

    def put_node(self, node: Node) -> None:
        """Take a node as it is now."""
        name = node.metadata.name
        spot = self._spot(name)
        before, spot.node = spot.node, node
        offer = offered(node)
        if offer is not spot.offer:
            self._naming.update(offer.keys())
            self._naming.subtract(spot.offer.keys())
            spot.offer, self._emptied = offer, None
        if before is None or self._labels(before) != self._labels(node):
            self._moved = True
        if before is None or _differ(before, node):
            spot.daemons, self._emptied = self._run_on(node), None
            self._touched.add(name)
        self._renewed.add(name)

    def drop_node(self, name: str) -> None:
        """Let a node go; holds on it wait for it to come back."""
        spot = self._spots.get(name)
        if spot is None or spot.node is None:
            return
        self._naming.subtract(spot.offer.keys())
        spot.node, spot.offer, spot.daemons = None, _NOBODY, ()
        self._moved, self._emptied = True, None
        self._forget_if_empty(name, spot)

    def put(self, key: Hashable, hold: Hold) -> None:
        """Take room of a node."""
        before = self._where.get(key)
        if before is not None:
            spot = self._spots[before]
            if before == hold.node and spot.holds[key] == hold:
                return
            self.drop(key)
        name = hold.node
        self._where[key] = name
        spot = self._spots.get(name) or self._spot(name)
        spot.put(key, hold)
        self._touched.add(name)

    def drop(self, key: Hashable) -> None:
        """Give room back; what is not there costs nothing."""
        name = self._where.pop(key, None)
        if name is not None:
            spot = self._spots[name]
            spot.drop(key)
            self._touched.add(name)
            self._forget_if_empty(name, spot)

    def put_daemonset(self, daemonset: DaemonSet) -> None:
        """Keep room for the DaemonSet's pods wherever it is to have one and has none."""
        meta = daemonset.metadata
        key = meta.namespace, meta.name
        daemon = daemons.of(daemonset)
        self._daemonsets[key] = daemonset
        if daemon == self._daemons.get(key):
            return
        if daemon is None:
            del self._daemons[key]
        else:
            self._daemons[key] = daemon
        self._daemons_changed()

    def drop_daemonset(self, key: tuple[str, str]) -> None:
        """Expect no pods any more of the DaemonSet of this namespace and name."""
        self._daemonsets.pop(key, None)
        if self._daemons.pop(key, None) is not None:
            self._daemons_changed()

    def snapshot(self) -> Snapshot:
        """Give the cluster as it is now; the same snapshot as long as nothing changed."""
        resources = tuple(sorted(+self._naming))
        for name in self._touched:
            spot = self._spots.get(name)
            if spot is not None:
                spot.settle()
        changed = self._touched | self._renewed
        before = self._table
        if self._moved or before.resources != resources:
            self._since = None
        if self._moved:
            self._table = _Table(self._spots.values(), self._levels)
            if before.spots and before.resources == resources:
                self._table.follow(before, changed)
            else:
                self._table.fill(resources)
        elif changed:
            rows, there = self._rows(before, changed), before.residents
            before.refill(rows, nodes=bool(self._renewed))
            self._changed(there, rows)
            if before.resources != resources:
                before.fill(resources)
        elif self._last is not None:
            return self._last
        self._moved = False
        self._touched.clear()
        self._renewed.clear()
        self._last = self._taken(self._table)
        return self._last

    def _changed(self, before: tuple[tuple[Resident, ...], ...], rows: Iterable[int]) -> None:
        """Remember which rows changed since an instant, so that masks of it compare no others.

        It is the last one that masks were made of, as far as is known.
        """
        since, masks = self._since, self._latest.masks
        if since is None or (masks is not None and masks.company.rows is before):
            since = Since(before, frozenset())
        self._since = Since(since.residents, since.rows.union(rows))

    def emptied(self) -> Emptied:
        """Give the cluster as if nobody were on it; the same as long as no node changed."""
        if self._emptied is None:
            daemonsets = tuple(self._daemonsets.values())
            self._emptied = Emptied(tuple(self.nodes()), self._levels, daemonsets)
        return self._emptied

    def _taken(self, table: _Table) -> Snapshot:
        table.free.flags.writeable = False
        return Snapshot(
            table.nodes,
            table.resources,
            table.free,
            table.topologies,
            table.row_of,
            table.capacity,
            table.residents,
            self._latest,
            self._since,
        )

    def _rows(self, table: _Table, names: Iterable[str]) -> list[int]:
        return sorted(table.row_of[name] for name in names if name in table.row_of)

    def _spot(self, name: str) -> _Spot:
        spot = self._spots.get(name)
        if spot is None:
            spot = self._spots[name] = _Spot(name)
        return spot

    def _forget_if_empty(self, name: str, spot: _Spot) -> None:
        if spot.node is None and not spot.holds:
            del self._spots[name]

    def _labels(self, node: Node) -> list[str | None]:
        labels = node.metadata.labels
        return [labels.get(key) for levels in self._levels for key in levels.keys]

    def _run_on(self, node: Node) -> tuple[Daemon, ...]:
        every = self._daemons.values()
        return tuple([daemon for daemon in every if daemons.runs_on(daemon, node)])

    def _daemons_changed(self) -> None:
        self._emptied = None
        for name, spot in self._spots.items():
            found = self._run_on(spot.node) if spot.node is not None else ()
            if found != spot.daemons:
                spot.daemons = found
                self._touched.add(name)


def _differ(one: Node, other: Node) -> bool:
    """Whether a DaemonSet may be to run on the one and not on the other."""
    return one.metadata.labels != other.metadata.labels or one.spec != other.spec
