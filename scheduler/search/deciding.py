"""One gang: placed whole and spent of the Room, or refused with the Room as it was."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler import scoring
from scheduler.answers import NoFit, Placed, Placement
from scheduler.cells import Layout
from scheduler.ranking import dealt
from scheduler.refusing import refuse
from scheduler.requests import GangRequest, Want
from scheduler.room import Need, Room
from scheduler.search.adding import Adding
from scheduler.search.apart import apart
from scheduler.search.board import Budget
from scheduler.search.mates import Mates
from scheduler.search.pulling import Pull, pull
from scheduler.search.searching import Found
from scheduler.search.tree import Asked, UnplaceableError, read
from scheduler.search.wishing import Wishes
from scheduler.sums import Column
from scheduler.topology import Bools


def place(room: Room, request: GangRequest, steps: int) -> "Placement | Begun | NoFit":
    """Place the gang into the Room, which is spent on success and untouched on refusal.

    One that asks for more than its minimum has only begun then.
    """
    budget = Budget(steps)
    network = room.snapshot.topology(request.topology)
    if network is not None and room.snapshot.nodes:
        where = room.layout(network)
        try:
            found = _decided(room, where, request, budget)
        except UnplaceableError:
            found = None
        if found is not None:
            return found
    return _refused(room, request, budget)


@dataclass(eq=False)
class _Question:
    """A request, and what bears on where it may go."""

    room: Room
    where: Layout
    request: GangRequest
    asked: Asked
    pull: Pull
    mates: Mates


def _decided(
    room: Room, where: Layout, request: GangRequest, budget: Budget
) -> "Placement | Begun | None":
    mates = Mates(room, where, request)
    asked = read(room, request, mates)
    hard, soft = apart(room, where, request)
    question = _Question(room, where, request, asked, pull(room, where, request), mates)
    if not request.minimum:
        return Begun(question, [], budget)
    zone = _liked(room, where, request)
    wishes = Wishes(room, where, asked, question.pull, mates, (hard, soft, zone))
    best = wishes.best(budget)
    if best is None:
        return None
    found = dealt(best.tree, where, best.put)
    order = {id(want): i for i, want in enumerate(request.minimum)}
    found.sort(key=lambda each: order[id(each[0])])
    totals = room.totals(where)
    room.spend(_spent(best, where))
    room.seat(mates.seats(found))
    room.keep(request, [where.rows[position] for _, position in found])
    if request.extras:
        return Begun(question, found, budget)
    return _placed(question, found, totals, budget, best.value)


@dataclass(eq=False)
class Begun:
    """A gang that has its minimum, and gets its extras when all others have theirs."""

    question: _Question
    pods: list[tuple[Want, int]]
    budget: Budget

    def finished(self) -> Placement | NoFit:
        """Add extras as far as there is room; without any pod at all it is refused."""
        question, found = self.question, list(self.pods)
        room, where, request = question.room, question.where, question.request
        # As it was without this gang, but with all others.
        totals = room.totals(where).copy()
        totals = _given_back(totals, where, room, _devices(found))
        hard, soft = apart(room, where, request)
        liked = [*soft, *([zone] if (zone := _liked(room, where, request)) is not None else [])]
        adding = Adding(room, where, question.asked, question.pull, (hard, liked))
        mates = Mates(room, where, request)
        for want, position in found:
            adding.joined(want, position)
        for want in sorted(request.extras, key=lambda want: (want.index, want.clique)):
            at = adding.add(want, mates)
            if at is not None:
                found.append((want, at))
        if not found:
            return _refused(room, request, self.budget)
        more = found[len(self.pods) :]
        room.keep(request, [where.rows[position] for _, position in more])
        return _placed(question, found, totals, self.budget)


def _placed(
    question: _Question,
    found: list[tuple[Want, int]],
    totals: Column,
    budget: Budget,
    value: int | None = None,
) -> Placement:
    """Judge the whole; `totals` are those before it was there, `value` what its pairs share."""
    room, where, request = question.room, question.where, question.request
    positions = [position for _, position in found]
    there = question.pull.positions
    if value is None or there:
        value = scoring.shared(where, [*positions, *there])
    return Placement(
        request,
        tuple([Placed(want, room.names[where.rows[position]]) for want, position in found]),
        _home(where, positions[: len(request.minimum)] or positions),
        scoring.mean(where, len(positions) + len(there), value),
        scoring.fragmentation(where, totals, _devices(found)),
        budget.spent,
    )


def _given_back(totals: Column, where: Layout, room: Room, used: dict[int, int]) -> Column:
    """Give devices back that are used at these positions, in what fragmentation is told by."""
    at = np.array([position for position, count in used.items() if count], dtype=np.int64)
    if at.size:
        values = totals.values[at]
        values[:, -3] += [used[position] for position in at.tolist()]
        has = room.snapshot.capacity[where.topology.order[at]][:, room.devices].sum(axis=1)
        values[:, -1] = values[:, -2] * (values[:, -3] >= has)
        totals.put(where, at, values)
    return totals


def _spent(found: Found, where: Layout) -> dict[int, list[tuple[Need, int]]]:
    spent: dict[int, list[tuple[Need, int]]] = {}
    for position, kind, count in found.put:
        need = found.tree.kinds[kind].shape.need
        spent.setdefault(where.rows[position], []).append((need, count))
    return spent


def _devices(found: Sequence[tuple[Want, int]]) -> dict[int, int]:
    used: dict[int, int] = {}
    for want, position in found:
        for name, amount in want.need.items():
            if "/" in name:
                used[position] = used.get(position, 0) + amount
    return used


def _home(where: Layout, positions: Sequence[int]) -> tuple[str, ...]:
    """Name the smallest domain that holds all these positions."""
    for depth in range(where.deepest, 0, -1):
        at = where.depths[depth].at_list
        cells = {at[position] for position in positions}
        if len(cells) == 1:
            return where.domain(depth, cells.pop())
    return ()


def _liked(room: Room, where: Layout, request: GangRequest) -> Bools | None:
    """Which positions are preferred to all others: those that are kept for it, or in its zone."""
    if request.kept is None:
        return _zone(where, request)
    row_of = room.snapshot.row_of
    allowed: Bools = np.zeros(len(where.rows), dtype=np.bool_)
    for share in request.kept.shares:
        if share.node in row_of:
            allowed[where.positions[row_of[share.node]]] = True
    return allowed if allowed.any() else None


def _zone(where: Layout, request: GangRequest) -> Bools | None:
    """Which positions are in the preferred domain of the widest level."""
    if not request.zone or len(where.topology.domains) < 2:
        return None
    allowed: Bools = np.zeros(len(where.rows), dtype=np.bool_)
    for domain in where.topology.domains[1]:
        if domain.path[0] == request.zone:
            allowed[domain.start : domain.stop] = True
    return allowed if allowed.any() else None


def _refused(room: Room, request: GangRequest, budget: Budget) -> NoFit:
    """Say why."""
    return refuse(room, request, exhausted=budget.cut, steps=budget.spent)
