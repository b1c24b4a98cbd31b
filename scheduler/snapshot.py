"""The cluster as arrays at one instant. A snapshot is never written; a cycle copies what it spends.

Rows are nodes in the order of the first topology, so that each of its domains is a run of rows.
`build` takes stock from scratch; `scheduler.stock` keeps it up by events and gives equal snapshots.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np

from api.daemonsets import DaemonSet
from api.quantities import Amounts, BadQuantityError, amounts
from api.streams import Node
from scheduler import daemons, topology
from scheduler.filters.masks import Masks
from scheduler.residents import Resident
from scheduler.topology import Bools, Domain, Ints, Levels, Topology

_ORDER: Final = attrgetter("namespace", "name")
_FARTHEST: Final = 2**62  # no sum of what is taken of a node comes near, unless somebody means harm


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Room on a node that is taken, or spoken for."""

    node: str
    need: Amounts
    resident: Resident | None = None  # what other pods must know of who is to be there
    daemon: str = ""  # UID of the DaemonSet whose pod it is


@dataclass(eq=False)
class Latest:
    """The masks that were made last; those of the next instant go on from them."""

    masks: Masks | None = None


@dataclass(frozen=True, eq=False)
class Since:
    """The only rows whose residents may be others than they were in an earlier instant."""

    residents: tuple[tuple[Resident, ...], ...]
    rows: frozenset[int]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Nodes in topology order, what is free on each, who is there, and the domains they form."""

    nodes: tuple[Node, ...]
    resources: tuple[str, ...]
    free: Ints  # nodes x resources, in the units of api.quantities; may be negative
    topologies: tuple[Topology, ...]  # at least one
    row_of: Mapping[str, int]
    capacity: Ints  # nodes x resources, what each node has when nobody is there
    residents: tuple[tuple[Resident, ...], ...]  # by row; those of DaemonSets that are to come too
    latest: Latest = field(default_factory=Latest, repr=False)
    since: Since | None = field(default=None, repr=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """Node label keys of the first topology, widest first."""
        return self.topologies[0].keys

    @property
    def domains(self) -> tuple[tuple[Domain, ...], ...]:
        """Domains of the first topology, by depth."""
        return self.topologies[0].domains

    @cached_property
    def devices(self) -> Bools:
        """Which columns are devices: what is scarce, so what packing is judged by."""
        return np.array(["/" in name for name in self.resources], dtype=np.bool_)

    @cached_property
    def masks(self) -> Masks:
        """Which nodes which pods may use; answers live as long as what they were made of."""
        before = self.latest.masks
        if before is None:
            made = Masks(self.nodes, self.residents)
        else:
            since = self.since
            known = since is not None and before.company.rows is since.residents
            changed = since.rows if since is not None and known else None
            made = before.after(self.nodes, self.residents, changed)
        self.latest.masks = made
        return made

    def topology(self, name: str) -> Topology | None:
        """Give a topology by name, the first one for the empty name, or None if there is none."""
        if not name:
            return self.topologies[0]
        return next((found for found in self.topologies if found.name == name), None)

    def vector(self, need: Amounts) -> Ints | None:
        """Give a need in this snapshot's columns, or None if no node knows one of its resources."""
        if any(need[name] and name not in self.resources for name in need):
            return None
        return np.array([need.get(name, 0) for name in self.resources], dtype=np.int64)


def build(
    nodes: Iterable[Node],
    taken: Iterable[Hold],
    levels: Sequence[Levels],
    daemonsets: Iterable[DaemonSet] = (),
) -> Snapshot:
    """Take stock: what each node has, less what is taken of it, by whomever.

    A pod of a DaemonSet that a node is to have takes its room there before it exists.
    """
    every = tuple(nodes)
    names = [topology.natural(node.metadata.name) for node in every]
    order, topologies = topology.arranged(levels, every, names)
    ordered = tuple([every[i] for i in order])
    row_of = {node.metadata.name: row for row, node in enumerate(ordered)}
    offers = [offered(node) for node in ordered]
    resources = tuple(sorted({name for offer in offers for name in offer}))
    at, spent, there, present = _gathered(taken, row_of)
    to_come = [each for each in map(daemons.of, daemonsets) if each is not None]
    residents: list[tuple[Resident, ...]] = []
    for row, node in enumerate(ordered):
        missing = [
            each
            for each in to_come
            if (row, each.uid) not in present and daemons.runs_on(each, node)
        ]
        at += [row] * len(missing)
        spent += [daemon.need for daemon in missing]
        residents.append(housed(there[row], missing))
    capacity = written(offers, resources)
    free = _less(capacity, at, written(spent, resources))
    return Snapshot(ordered, resources, free, topologies, row_of, capacity, tuple(residents))


def _gathered(
    taken: Iterable[Hold], row_of: Mapping[str, int]
) -> tuple[list[int], list[Amounts], list[list[Resident]], set[tuple[int, str]]]:
    """Say where how much is taken, who is there by row, and which DaemonSets have a pod there."""
    at: list[int] = []
    spent: list[Amounts] = []
    there: list[list[Resident]] = [[] for _ in row_of]
    present: set[tuple[int, str]] = set()
    for hold in taken:
        row = row_of.get(hold.node)
        if row is None:
            continue
        at.append(row)
        spent.append(hold.need)
        if hold.resident is not None:
            there[row].append(hold.resident)
        if hold.daemon:
            present.add((row, hold.daemon))
    return at, spent, there, present


def written(every: Sequence[Amounts], resources: Sequence[str]) -> Ints:
    """Write amounts as rows. Most are shared by many, and read once."""
    distinct = {id(each): each for each in every}
    place = {key: i for i, key in enumerate(distinct)}
    kinds = [[each.get(name, 0) for name in resources] for each in distinct.values()]
    made = matrix(kinds, resources)[[place[id(each)] for each in every]]
    made.flags.writeable = False
    return made


def _less(has: Ints, at: Sequence[int], spent: Ints) -> Ints:
    """Take what is spent off the rows it is spent at."""
    most = int(np.abs(spent).max(initial=0)) * (len(spent) + 1)
    if most > _FARTHEST:  # whole numbers of 64 bits might not hold the sums
        exact = has.astype(object)
        np.subtract.at(exact, at, spent.astype(object))
        return matrix(exact.tolist(), range(has.shape[1]))
    left = has.copy()
    np.subtract.at(left, at, spent)
    left.flags.writeable = False
    return left


def housed(there: Sequence[Resident], missing: Sequence[daemons.Daemon]) -> tuple[Resident, ...]:
    """List who is on a node, and then who is to come, in an order that does not tell how."""
    found = sorted(there, key=_ORDER) if len(there) > 1 else there
    if not missing:
        return tuple(found)
    return *found, *sorted((each.resident for each in missing), key=_ORDER)


def matrix(rows: Sequence[Sequence[int]], resources: Sequence[object]) -> Ints:
    """Write rows of whole numbers as an array that nobody writes."""
    try:
        made = np.array(rows, dtype=np.int64)
    except OverflowError:
        bounded = [[max(-_FARTHEST, min(_FARTHEST, each)) for each in row] for row in rows]
        made = np.array(bounded, dtype=np.int64)
    made = np.clip(made.reshape(len(rows), len(resources)), -_FARTHEST, _FARTHEST)
    made.flags.writeable = False
    return made


def offered(node: Node) -> Amounts:
    """Read what a node has to give. Not to be written: nodes that are alike share it."""
    return _offered(frozenset(node.status.allocatable.items()))


@lru_cache(maxsize=1024)
def _offered(allocatable: frozenset[tuple[str, str]]) -> Amounts:
    try:
        return amounts(dict(allocatable))
    except BadQuantityError:
        return {}
