"""How the parts of a refused gang stand against each domain, by bounds that cost one pass each.

All arrays run over positions of the gang's topology, in which every domain is a run.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from api import names
from api.streams import Toleration
from scheduler import spacing
from scheduler.answers import ANCHORED, FILTERED, FRAGMENTED, GROUPED, SPREAD
from scheduler.eligible import Constraints
from scheduler.filters.selecting import UNSCHEDULABLE
from scheduler.filters.together import exclusive_keys
from scheduler.parts import Part, Shape, scarcity, shapes, together
from scheduler.ranges import Judged, Ranges, ranges_of
from scheduler.requests import GangRequest
from scheduler.room import Room
from scheduler.room import Shape as Sort
from scheduler.sums import Column, column_of, sums_within
from scheduler.topology import Bools, Ints

_ANY_CORDON: Final = Toleration(UNSCHEDULABLE.key, "Exists", effect=UNSCHEDULABLE.effect)
MANY: Final = 2**30  # pods that need nothing fit this often, so that sums stay within 64 bits


class Survey:
    """One request against one state of the room; nothing of it is written."""

    def __init__(self, room: Room, request: GangRequest) -> None:
        self.room = room
        self.snapshot = snapshot = room.snapshot
        self.request = request
        self.topology = snapshot.topology(request.topology) or snapshot.topologies[0]
        self.order = self.topology.order
        self.size = len(self.order)
        self.where = room.layout(self.topology)
        self.shapes = self._shapes()
        # The same as the search has asked for, so that what the Room knows of them is known here.
        self._asked = [room.shape(shape.need, shape.constraints) for shape in self.shapes]
        self.resources = (*snapshot.resources, *self._key_texts())
        self._judged: dict[tuple[str, str], Judged] = {}
        # Kept by which mask it is that is summed up over, and some for which level.
        self._columns: dict[int, list[Column]] = {}
        self._sums: dict[tuple[int, str], Ints] = {}
        self._needs: dict[tuple[int, ...], Ints] = {}
        self._room: dict[tuple[int, tuple[int, ...], str], Ints] = {}
        self._pods: dict[tuple[int, tuple[int, ...], str], Ints] = {}

    def _shapes(self) -> tuple[Shape, ...]:
        """Give what must be placed: the minimum, or of each kind of extras one."""
        request, masks = self.request, self.snapshot.masks
        wants = request.minimum or request.extras
        self.plain = shapes(wants)
        mates = dict.fromkeys(shape.constraints for shape in self.plain)
        found = together(self.plain, lambda constraints: masks.settled(constraints, mates))
        return found if request.minimum else tuple(replace(shape, count=1) for shape in found)

    def _key_texts(self) -> list[str]:
        """Name the columns of what each node has once."""
        found = [""] * (self.room.free.shape[1] - self.room.resources)
        for shape, asked in zip(self.shapes, self._asked, strict=True):
            columns = [c - self.room.resources for c, _ in asked.need] if asked is not None else []
            own = [column for column in columns if column >= 0]
            for column, key in zip(own, exclusive_keys(shape.constraints), strict=True):
                found[column] = found[column] or _key_text(key)
        return found

    @cached_property
    def free(self) -> Ints:
        """What is free at each position; what a node has once comes after its resources."""
        free = self.room.free
        return free if self._straight else free[self.order]

    @cached_property
    def unknown(self) -> str:
        """Name a resource that a pod needs and no node knows, or give ""."""
        known = set(self.snapshot.resources)
        asked = (name for shape in self.shapes for name in sorted(shape.need) if shape.need[name])
        return next((name for name in asked if name not in known), "")

    @cached_property
    def vectors(self) -> Ints:
        """Needs, shapes x resources; resources that no node knows are left out."""
        found = np.zeros((len(self.shapes), len(self.resources)), dtype=np.int64)
        for row, asked in zip(found, self._asked, strict=True):
            for column, amount in asked.need if asked is not None else ():
                row[column] = amount
        return found

    @cached_property
    def dividing(self) -> tuple[Ints, Bools]:
        """Needs of what is asked for, to divide by, and which are none; shapes x 1 x resources."""
        vectors = self.vectors[:, list(self.asked)][:, None, :]
        return np.maximum(vectors, 1), vectors == 0

    @cached_property
    def counts(self) -> Ints:
        """How many pods of each shape are asked for."""
        return np.array([shape.count for shape in self.shapes], dtype=np.int64)

    @cached_property
    def asked(self) -> tuple[int, ...]:
        """Columns that any pod asks for, the scarcest first."""
        found = np.flatnonzero((self.vectors > 0).any(axis=0))
        return tuple(sorted((int(c) for c in found), key=lambda c: scarcity(self.resource(c))))

    def resource(self, column: int) -> str:
        """Name a column."""
        return self.resources[column]

    @cached_property
    def allowed(self) -> Bools:
        """Which positions each shape may use as far as filters go; shapes x positions."""
        return self._mask([shape.constraints for shape in self.shapes])

    @cached_property
    def _filtered(self) -> bool:
        return not self.allowed.all()

    @cached_property
    def everywhere(self) -> Bools:
        """The same if there were no filters."""
        return np.ones_like(self.allowed)

    @cached_property
    def uncordoned(self) -> Bools:
        """Which positions each shape might really use if no node were cordoned."""
        found: Bools = self._mask([bold(shape.constraints) for shape in self.shapes]) & self.apart
        return found

    def _mask(self, constraints: Sequence[Constraints]) -> Bools:
        order = slice(None) if self._straight else self.order
        masks = {each: self.room.mask(each)[order] for each in dict.fromkeys(constraints)}
        found: Bools = np.array([masks[each] for each in constraints], dtype=np.bool_)
        for group in self.request.groups:
            ranges = self.ranges(group.near.required)
            # Also where a group requires less than what it lies in, its pods must be in a domain.
            if ranges is not None and ranges.size < self.size:
                cliques = [
                    i for i, shape in enumerate(self.shapes) if shape.clique in group.cliques
                ]
                found[cliques] &= ranges.covered(self.size)
        return found

    @property
    def _straight(self) -> bool:
        """Whether positions are rows."""
        return self.topology is self.snapshot.topologies[0]

    @cached_property
    def apart(self) -> Bools:
        """Which positions siblings leave it, where it must keep apart from them."""
        return self._kept(self.request)

    @cached_property
    def loosened(self) -> tuple[tuple[str, Bools], ...]:
        """Name the levels it must be spread over, and what each shape could use but for that."""
        return tuple(
            (each.level, self.allowed & self._kept(spacing.loosened(self.request, each)))
            for each in self.request.spread
            if each.hard
        )

    def _kept(self, request: GangRequest) -> Bools:
        found = spacing.kept(self.room, self.where, request)
        return np.ones(self.size, dtype=np.bool_) if found is None else found

    def positions(self, nodes: Sequence[str]) -> list[int]:
        """Find the positions of those nodes that are there."""
        rows = (self.snapshot.row_of[node] for node in nodes if node in self.snapshot.row_of)
        return sorted(int(self.topology.position[row]) for row in rows)

    def name(self, position: int) -> str:
        """Name the node at a position."""
        return str(self.snapshot.nodes[self.order[position]].metadata.name)

    def fits(self, where: Bools) -> Ints:
        """How many pods of each shape a mask leaves room for, each shape by itself."""
        found: Ints = self._slots(where, self.domains(""))[:, 0]
        return found

    @cached_property
    def usable(self) -> Bools:
        """Which positions each shape may really use."""
        return self.allowed if self.apart.all() else self.allowed & self.apart

    def ranges(self, level: str) -> Ranges | None:
        """Give the domains of a level; None if the topology has no such level."""
        if level == names.HOSTNAME_KEY and self.topology.depth_of(level) is None:
            each = np.arange(self.size)
            return Ranges(level, each, each + 1, None)
        depth = self.topology.depth_of(level) if level else 0
        return None if depth is None else ranges_of(self.topology, depth, level)

    def domains(self, level: str) -> Ranges:
        """Give the domains of a level that is known to be there."""
        if (found := self.ranges(level)) is None:
            raise KeyError(level)
        return found

    def path(self, ranges: Ranges, domain: int) -> tuple[str, ...]:
        """Name a domain by its whole path; a node that is one by its own after its domain's."""
        if ranges.paths is not None:
            return ranges.paths[domain]
        *_, deepest = self.topology.domains
        around = (each.path for each in deepest if each.start <= domain < each.stop)
        return (*next(around, ()), self.name(domain))

    @property
    def depths(self) -> dict[str, int]:
        """How deep each level lies that may be required; a node by itself is deepest."""
        found = {level: depth for depth, level in enumerate(self.levels)}
        return {names.HOSTNAME_KEY: len(found), **found}

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels there are, widest first: the cluster, then those of the topology."""
        return ("", *self.topology.keys)

    def judged(self, part: Part, level: str) -> Judged:
        """Hold each domain of a level, which must be there, against a part."""
        key = (part.name, level)
        if key not in self._judged:
            self._judged[key] = self._judge(part, self.domains(level))
        return self._judged[key]

    def _judge(self, part: Part, ranges: Ranges) -> Judged:
        chosen = part.shapes
        short, few = self.bounds(chosen, ranges, self.everywhere)
        found = [*short, few]
        stops = [self.resource(c) for c in self.asked] + [FRAGMENTED]
        if self._filtered:
            short, few = self.bounds(chosen, ranges, self.allowed)
            found.append(few | np.any(short, axis=0))
            stops.append(FILTERED)
        if self.usable is not self.allowed:
            short, few = self.bounds(chosen, ranges, self.usable)
            found.append(few | np.any(short, axis=0))
            stops.append(SPREAD)
        for inner in part.inner:
            found.append(self._inside(inner, ranges) == 0)
            stops.append(GROUPED)
        found.append(~ranges.holds(self.positions(part.anchors)))
        stops.append(ANCHORED)
        by_bound: Bools = np.array(found, dtype=np.bool_)
        first = np.where(by_bound.any(axis=0), by_bound.argmax(axis=0), -1)
        return Judged(ranges, tuple(stops), first)

    def _inside(self, part: Part, ranges: Ranges) -> Ints:
        """Count by domain those inside it that pass every bound of the part."""
        judged = self.judged(part, part.level)
        passing = judged.ranges.starts[judged.enough]
        first, last = np.searchsorted(passing, (ranges.starts, ranges.stops))
        found: Ints = last - first
        return found

    def offered(self, positions: Ints) -> Ints:
        """What the nodes at these positions have to offer, whoever is there now."""
        rows = self.snapshot.capacity[self.order[positions]]
        once = np.ones((len(rows), len(self.resources) - rows.shape[1]), dtype=np.int64)
        return np.concatenate([rows, once], axis=1)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Rank shapes: those that are hard to place lower.

        Those with the least choice, where filters leave them different nodes, and then those that
        take most, of what is scarcest first.
        """
        sizes = (-self.vectors[:, list(self.asked)]).tolist()
        if self._alike:
            return tuple(map(tuple, sizes))
        room = self.fits(self.usable) // self.counts
        return tuple((choice, *size) for choice, size in zip(room.tolist(), sizes, strict=True))

    @cached_property
    def _alike(self) -> bool:
        """Whether filters leave all shapes the same nodes."""
        return bool((self.allowed == self.allowed[:1]).all())

    # Below, `where` is one of the masks above: sums are kept by which one it is.

    def bounds(self, chosen: tuple[int, ...], ranges: Ranges, where: Bools) -> tuple[Bools, Bools]:
        """Tell by domain which resources are short in sum, in their order, and whether slots are.

        Resources x domains, and domains.
        """
        slots = self._slots(where, ranges)[list(chosen)]
        few: Bools = np.any(slots < self.counts[list(chosen)][:, None], axis=0)
        return self.lacking(chosen, ranges, where) > 0, few

    def pods(self, chosen: tuple[int, ...], ranges: Ranges, where: Bools) -> Ints:
        """Tell by domain how many pods the bounds leave room for. Not to be written."""
        key = id(where), chosen, ranges.level
        if key not in self._pods:
            self._pods[key] = self._bounded(chosen, ranges, where)
        return self._pods[key]

    def _bounded(self, chosen: tuple[int, ...], ranges: Ranges, where: Bools) -> Ints:
        counts = self.counts[list(chosen)]
        slots = self._slots(where, ranges)[list(chosen)]
        found: Ints = np.minimum(slots, counts[:, None]).sum(axis=0)
        lacking = self.lacking(chosen, ranges, where)
        for need, missing in zip(self._needed(chosen).tolist(), lacking, strict=True):
            if need:
                np.minimum(found, (need - missing) * int(counts.sum()) // need, out=found)
        return found

    def lacking(self, chosen: tuple[int, ...], ranges: Ranges, where: Bools) -> Ints:
        """Tell how much is missing in sum where these may go, resources asked for x domains."""
        key = id(where), () if self._alike else chosen, ranges.level
        if key not in self._room:
            self._room[key] = self._free_in(np.any(where[list(chosen)], axis=0), ranges)
        found: Ints = self._needed(chosen)[:, None] - self._room[key]
        np.maximum(found, 0, out=found)
        return found

    def _free_in(self, where: Bools, ranges: Ranges) -> Ints:
        """What is free there of each resource asked for, by domain."""
        asked = list(self.asked)
        if ranges.paths is None:
            each: Ints = self._totals.values.T[asked] * where
            return each
        found: Ints = ranges.of(sums_within(self._totals, self.where, where)).T[asked]
        return found

    def free_in_all(self, column: int, where: Bools) -> int:
        """What is free of a resource at all these positions, nowhere less than nothing."""
        return int(sums_within(self._totals, self.where, where)[0][0, column])

    @cached_property
    def _totals(self) -> Column:
        """What is free of each resource at each position, nowhere less than nothing."""
        if all(column < self.room.resources for column in self.asked):
            return self.room.totals(self.where)
        return column_of(self.where, np.maximum(self.free, 0))

    def _needed(self, chosen: tuple[int, ...]) -> Ints:
        """Sum up what these pods ask for, by resource asked for."""
        if chosen not in self._needs:
            vectors = self.vectors[list(chosen)][:, list(self.asked)]
            self._needs[chosen] = self.counts[list(chosen)] @ vectors
        return self._needs[chosen]

    def _slots(self, where: Bools, ranges: Ranges) -> Ints:
        """Sum up slots by domain; shapes x domains."""
        key = id(where), ranges.level
        if key not in self._sums:
            if ranges.paths is None:
                self._sums[key] = self.left(where, (0, self.size))
            else:
                columns = self._counted(where)
                self._sums[key] = np.array([ranges.of(each.sums) for each in columns])
        return self._sums[key]

    def left(self, where: Bools, run: tuple[int, int]) -> Ints:
        """How many pods of each shape have room in a run of positions where a mask lets them."""
        return np.array([each.values[slice(*run)] for each in self._counted(where)])

    def _counted(self, where: Bools) -> list[Column]:
        """Count pods of each shape where a mask lets them; the Room knows most of it already."""
        if id(where) not in self._columns:
            rows = where if self._straight else where[:, self.topology.position]
            needs = [asked.need if asked is not None else () for asked in self._asked]
            self._columns[id(where)] = [
                self.room.column(Sort(need, self.room.numbered(mask)), self.where)
                for need, mask in zip(needs, rows, strict=True)
            ]
        return self._columns[id(where)]


def _key_text(key: Hashable) -> str:
    """Name what a node has once."""
    match key:
        case (str(protocol), int(port)):
            return f"host port {port} ({protocol})"
        case _:
            return "nodes without such a pod"


@lru_cache(maxsize=1024)
def bold(constraints: Constraints) -> Constraints:
    """Give the same constraints of pods that put up with cordons."""
    return replace(constraints, tolerations=(*constraints.tolerations, _ANY_CORDON))


def room_for(vector: Ints, free: Ints) -> Ints:
    """Tell for each row how many such pods it has room for; what they do not need counts not."""
    found = np.full(len(free), MANY, dtype=np.int64)
    for column in np.flatnonzero(vector):
        need = int(vector[column])
        has = free[:, column]
        np.minimum(found, has if need == 1 else has // need, out=found)
    return np.maximum(found, 0, out=found)
