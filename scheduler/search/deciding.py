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
from scheduler.topology import Bools


def place(room: Room, request: GangRequest, steps: int) -> Placement | NoFit:
    """Place the gang into the Room, which is spent on success and untouched on refusal."""
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
    hard: Bools | None  # positions that siblings leave it, where that must be


def _decided(room: Room, where: Layout, request: GangRequest, budget: Budget) -> Placement | None:
    mates = Mates(room, where, request)
    asked = read(room, request, mates)
    hard, soft = apart(room, where, request)
    question = _Question(room, where, request, asked, pull(room, where, request), mates, hard)
    if not request.minimum:
        return _settled(question, [], {}, budget)
    zone = _zone(where, request)
    wishes = Wishes(room, where, asked, question.pull, mates, (hard, soft, zone))
    best = wishes.best(budget)
    if best is None:
        return None
    return _settled(question, dealt(best.tree, where, best.put), _spent(best, where), budget)


def _settled(
    question: _Question,
    found: list[tuple[Want, int]],
    spent: dict[int, list[tuple[Need, int]]],
    budget: Budget,
) -> Placement | None:
    """Spend what was found, add extras, and judge the whole."""
    room, where, request = question.room, question.where, question.request
    totals = room.totals(where)
    if request.extras:
        totals = totals.copy()
    order = {(want.clique, want.index): i for i, want in enumerate(request.minimum)}
    found.sort(key=lambda each: order[each[0].clique, each[0].index])
    room.spend(spent)
    room.seat(question.mates.seats(found))
    if request.extras:
        adding = Adding(room, where, question.asked, question.pull, question.hard)
        for want, position in found:
            adding.joined(want, position)
        for want in sorted(request.extras, key=lambda want: (want.index, want.clique)):
            at = adding.add(want, question.mates)
            if at is not None:
                found.append((want, at))
    if not found:
        return None
    positions = [position for _, position in found]
    room.keep(request, [where.rows[position] for position in positions])
    return Placement(
        request,
        tuple([Placed(want, room.names[where.rows[position]]) for want, position in found]),
        _home(where, positions[: len(request.minimum)] or positions),
        scoring.score(where, [*positions, *question.pull.positions]),
        scoring.fragmentation(where, totals, _devices(found)),
        budget.spent,
    )


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
