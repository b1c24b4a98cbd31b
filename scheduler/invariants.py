"""What every plan must satisfy, checked apart from the search that made it.

1. A placed gang has a node for every pod of its minimum, for no pod twice, and for none that it
   did not ask for.
2. No node gives more than it had free, in any resource, but for what is kept for whoever is put
   there; and of that to each what the ones before have left, or to the first alone.
3. No pod is on a node that one of its filters excludes, by what is on the node, or by the other
   pods of the plan.
4. What must be close together is, with the gang's pods that were there before.
5. Replicas that must keep apart do: each leaves its domains as even as it asks for, counting those
   that were there and those that came before it in the plan.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final
from weakref import WeakKeyDictionary

from api.quantities import Amounts
from api.streams import Node
from scheduler.answers import Placement
from scheduler.eligible import obstacle
from scheduler.evenness import Evenness, domain_of
from scheduler.filters.constraints import Constraints
from scheduler.filters.together import Seated, Seating
from scheduler.requests import GangRequest
from scheduler.snapshot import Latest, Snapshot
from scheduler.topology import Topology

_MOST_JUDGED: Final = 64  # each takes some bytes for each node that pods were put on


class BrokenPlanError(AssertionError):
    """The engine contradicts itself; nothing of the plan may be used."""


def check(snapshot: Snapshot, placements: Iterable[Placement]) -> None:
    """Raise BrokenPlanError, naming gang and node, if an invariant does not hold."""
    plan = _Plan(snapshot)
    made = list(placements)
    plan.draw(made)
    for placement in made:
        _whole(placement)
        _close(snapshot, placement)
    for part in _in_turn(made):
        plan.add(part)
        plan.apart(part)
    plan.within_bounds()


def _in_turn(placements: Sequence[Placement]) -> Iterator[Placement]:
    """Give parts in the order in which they got their room: all minima, and then all extras."""
    for extra in (False, True):
        for placement in placements:
            if not placement.gang.extras:
                if placement.placed and not extra:
                    yield placement
                continue
            minimum = {(want.clique, want.index) for want in placement.gang.minimum}
            some = [
                each
                for each in placement.placed
                if ((each.want.clique, each.want.index) not in minimum) == extra
            ]
            if some:
                yield replace(placement, placed=tuple(some))


class _Plan:
    """What placements take together."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._column = {name: i for i, name in enumerate(snapshot.resources)}
        self._taken: dict[int, dict[str, int]] = {}
        self._last: dict[int, str] = {}  # gang, by row
        self._let_in: dict[Constraints, set[int]] = {}  # rows, by settled ones
        self._seating = Seating(snapshot.masks)
        self._evenness = Evenness(snapshot)
        self._drawn: dict[int, dict[str, int]] = {}  # of what is kept
        self._judged = _judged.setdefault(snapshot.latest, _Judged())

    def add(self, placement: Placement) -> None:
        """Count what a placement takes, and see that each pod may be where it is."""
        seats: list[Seated] = []
        row_of = self._snapshot.row_of
        # Pods of a gang are alike mostly, and several on a node.
        needs: dict[int, Amounts] = {}
        times: dict[tuple[int, int], int] = {}
        for placed in placement.placed:
            row, want = row_of[placed.node], placed.want
            need = want.need
            seats.append((row, want.constraints))
            key = row, id(need)
            if key in times:
                times[key] += 1
            else:
                times[key], needs[id(need)] = 1, need
        for (row, each), count in times.items():
            taken = self._taken.setdefault(row, {})
            for name, amount in needs[each].items():
                taken[name] = taken.get(name, 0) + amount * count
            self._last[row] = placement.gang.name
        self._check_filters(placement, seats)
        found = self._seating.conflict(seats)
        if found:
            raise BrokenPlanError(f"{placement.gang.name}: {found} among pods of the plan")
        self._seating.add(seats)

    def within_bounds(self) -> None:
        """See that no node gives more than it had. Only what pods ask for counts."""
        free = self._snapshot.free
        for row, taken in self._taken.items():
            left, drawn = free[row].tolist(), self._drawn.get(row)
            for name, amount in taken.items():
                at = self._column.get(name)
                own = amount if drawn is None else amount - drawn.get(name, 0)
                if amount and (at is None or own > left[at]):
                    node = self._snapshot.nodes[row].metadata.name
                    raise BrokenPlanError(f"{self._last[row]} overcommits {node} in {name}")

    def draw(self, placements: Sequence[Placement]) -> None:
        """See that gangs draw only what they use, of what is kept for them and not drawn yet."""
        left: dict[tuple[str, str], dict[str, int]] = {}
        drawers: dict[str, int] = {}
        for number, placement in enumerate(placements):
            gang, kept = placement.gang, placement.gang.kept
            if kept is None or not placement.drawn:
                if placement.drawn:
                    raise BrokenPlanError(f"{gang.name} draws on what is kept for others")
                continue
            if kept.once and drawers.setdefault(kept.name, number) != number:
                raise BrokenPlanError(f"{gang.name} is the second that draws on room for once")
            shares = {share.node: share.amounts for share in kept.shares}
            used = _by_node(placement)
            for share in placement.drawn:
                rest = left.setdefault((kept.name, share.node), dict(shares.get(share.node, {})))
                row = self._snapshot.row_of[share.node]
                drawn = self._drawn.setdefault(row, {})
                for name, amount in share.amounts.items():
                    rest[name] = rest.get(name, 0) - amount
                    if rest[name] < 0 or amount > used.get(share.node, {}).get(name, 0):
                        raise BrokenPlanError(f"{gang.name} draws too much of {share.node}")
                    drawn[name] = drawn.get(name, 0) + amount

    def apart(self, placement: Placement) -> None:
        """See that a replica that must keep apart from others does."""
        level = self._evenness.broken_by(placement)
        if level:
            raise BrokenPlanError(f"{placement.gang.name} is not apart by {level}")

    def _check_filters(self, placement: Placement, seats: Sequence[Seated]) -> None:
        snapshot, masks = self._snapshot, self._snapshot.masks
        alike = {id(constraints): constraints for _, constraints in seats}
        rows: dict[int, set[int]] = {each: set() for each in alike}
        for row, constraints in seats:
            rows[id(constraints)].add(row)
        for each, constraints in alike.items():
            settled = masks.settled(constraints, chain(alike.values(), self._seating.pods))
            let_in = self._let_in.setdefault(settled, set())
            fresh = rows[each] - let_in
            if not fresh:
                continue
            mask, judged = masks.mask(settled), self._judged.of(constraints.alone)
            for row in sorted(fresh):
                node = snapshot.nodes[row]
                if judged.get(row) is not node:
                    reason = obstacle(node, constraints)
                    if reason:
                        raise _barred(placement, node, reason)
                    judged[row] = node
                if not mask.item(row):
                    raise _barred(placement, node, "kept off by who is there")
            let_in |= fresh


class _Judged:
    """The very nodes that were found to let pods in, by what these demand of a node by itself."""

    def __init__(self) -> None:
        self._nodes: dict[Constraints, dict[int, Node]] = {}

    def of(self, constraints: Constraints) -> dict[int, Node]:
        """Give the nodes known of such pods, by row; to be added to."""
        found = self._nodes.get(constraints)
        if found is None:
            if len(self._nodes) >= _MOST_JUDGED:
                self._nodes.clear()
            found = self._nodes[constraints] = {}
        return found


_judged: WeakKeyDictionary[Latest, _Judged] = WeakKeyDictionary()


def _barred(placement: Placement, node: Node, reason: str) -> BrokenPlanError:
    return BrokenPlanError(f"{placement.gang.name} on {node.metadata.name}: {reason}")


def _by_node(placement: Placement) -> dict[str, dict[str, int]]:
    """Add up what a placement takes of each node."""
    used: dict[str, dict[str, int]] = {}
    for placed in placement.placed:
        there = used.setdefault(placed.node, {})
        for name, amount in placed.want.need.items():
            there[name] = there.get(name, 0) + amount
    return used


def _whole(placement: Placement) -> None:
    slots = [(placed.want.clique, placed.want.index) for placed in placement.placed]
    wanted = {(want.clique, want.index) for want in placement.gang.minimum}
    asked = wanted | {(want.clique, want.index) for want in placement.gang.extras}
    filled = set(slots)
    if len(filled) != len(slots) or not wanted <= filled <= asked:
        raise BrokenPlanError(f"{placement.gang.name} is not whole: {slots} for {wanted}")


def _close(snapshot: Snapshot, placement: Placement) -> None:
    gang = placement.gang
    required = [(None, gang.near.required)]
    wishes = [*required, *((set(g.cliques), g.near.required) for g in gang.groups)]
    for cliques, level in wishes:
        if not level:
            continue
        rows = {
            snapshot.row_of[placed.node]
            for placed in placement.placed
            if cliques is None or placed.want.clique in cliques
        }
        if not rows:
            continue  # what was there before may have become separated
        rows |= {
            snapshot.row_of[anchor.node]
            for anchor in gang.anchors
            if anchor.node in snapshot.row_of
            and anchor.clique
            and (cliques is None or anchor.clique in cliques)
        }
        network = _network(snapshot, gang)
        found = {domain_of(snapshot.nodes[row], network, level) for row in rows}
        if len(found) > 1 or None in found:
            raise BrokenPlanError(f"{gang.name} is not within one domain of {level}")


def _network(snapshot: Snapshot, gang: GangRequest) -> Topology:
    network = snapshot.topology(gang.topology)
    if network is None:
        raise BrokenPlanError(f"{gang.name} is placed in no topology")
    return network
