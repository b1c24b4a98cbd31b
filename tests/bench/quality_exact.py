"""What is possible at all: an exact model in CP-SAT, written from the case alone.

It knows nothing of the engine. Pods of a clique are counted per node, a required level chooses one
domain, and each level scores the pairs of pods that share one of its domains.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import comb

from ortools.sat.python import cp_model

from tests.bench.quality_cases import Case, Clique, Domain, Node, cell, domain, free, may_use

_Counts = dict[tuple[str, str], cp_model.IntVar]


@dataclass(frozen=True)
class Exact:
    """Whether the minimum can be placed, and the best score there is.

    `possible` is None where the time ended before that was known; `closed` says that `best` is
    proved to be the best one.
    """

    possible: bool | None
    closed: bool
    best: float = 0.0
    counts: tuple[tuple[str, str, int], ...] = ()  # clique, node, pods


def solve(case: Case, limit: float) -> Exact:
    """Answer both questions at once within a limit of work, about as many seconds of one core."""
    model = cp_model.CpModel()
    counts = _counts(case, model)
    _capacity(case, model, counts)
    for cliques, near in case.tree():
        if near.required:
            _together(case, model, counts, cliques, near.required)
    pairs = _pairs(case, model, counts)
    model.maximize(pairs)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = limit
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Exact(possible=False, closed=True)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Exact(possible=None, closed=False)
    total = sum(clique.minimum + len(clique.anchors) for clique in case.cliques)
    most = len(case.levels) * comb(total, 2)
    found = tuple((*key, solver.value(count)) for key, count in counts.items())
    return Exact(
        possible=True,
        closed=status == cp_model.OPTIMAL,
        best=round(solver.objective_value) / most if most else 1.0,
        counts=tuple(each for each in found if each[2]),
    )


def _counts(case: Case, model: cp_model.CpModel) -> _Counts:
    counts: _Counts = {}
    for clique in case.cliques:
        mine = []
        for node in case.nodes:
            most = _most(node, clique)
            if most:
                count = model.new_int_var(0, most, f"{clique.name} on {node.name}")
                counts[clique.name, node.name] = count
                mine.append(count)
        model.add(cp_model.LinearExpr.sum(mine) == clique.minimum)
    return counts


def _most(node: Node, clique: Clique) -> int:
    if not may_use(node, clique):
        return 0
    room = free(node)
    fits = [room.get(name, 0) // amount for name, amount in clique.need.items() if amount]
    return min([clique.minimum, *fits])


def _capacity(case: Case, model: cp_model.CpModel, counts: _Counts) -> None:
    for node in case.nodes:
        for name, room in free(node).items():
            asked = [
                (counts[clique.name, node.name], clique.need.get(name, 0))
                for clique in case.cliques
                if (clique.name, node.name) in counts and clique.need.get(name, 0)
            ]
            if sum(need * _upper(count) for count, need in asked) > room:
                model.add(
                    cp_model.LinearExpr.weighted_sum(
                        [count for count, _ in asked], [need for _, need in asked]
                    )
                    <= room
                )


def _upper(count: cp_model.IntVar) -> int:
    """Give the most this count may be."""
    return int(count.proto.domain[1])


def _together(
    case: Case, model: cp_model.CpModel, counts: _Counts, cliques: Iterable[str], level: str
) -> None:
    """All pods of these cliques lie in one domain of the level."""
    inside: dict[Domain, list[Node]] = defaultdict(list)
    for node in case.nodes:
        where = domain(case, node, level)
        if where is not None:
            inside[where].append(node)
    chosen = {where: model.new_bool_var(f"{level} {where}") for where in inside}
    model.add_exactly_one(chosen.values())
    by_name = {node.name: node for node in case.nodes}
    for clique in (clique for clique in case.cliques if clique.name in cliques):
        for where, nodes in inside.items():
            mine = [counts[clique.name, n.name] for n in nodes if (clique.name, n.name) in counts]
            model.add(cp_model.LinearExpr.sum(mine) == clique.minimum * chosen[where])
        for anchor in clique.anchors:
            there = domain(case, by_name[anchor], level)
            model.add_bool_or([chosen[there]] if there is not None else [])


def _pairs(case: Case, model: cp_model.CpModel, counts: _Counts) -> cp_model.LinearExprT:
    """Count the pairs of pods in one domain, for each level; pods of one node share every level."""
    weighted: list[tuple[cp_model.IntVar, int]] = []
    fixed = 0
    for depth in range(1, len(case.levels) + 1):
        cells: dict[Domain, list[Node]] = defaultdict(list)
        for node in case.nodes:
            cells[cell(case, node, depth)].append(node)
        for nodes in cells.values():
            names = {node.name for node in nodes}
            mine = [count for (_, name), count in counts.items() if name in names]
            there = sum(a in names for clique in case.cliques for a in clique.anchors)
            fixed += comb(there, 2)
            weighted += _steps(model, mine, there, sum(c.minimum for c in case.cliques))
    return (
        cp_model.LinearExpr.weighted_sum([step for step, _ in weighted], [w for _, w in weighted])
        + fixed
    )


def _steps(
    model: cp_model.CpModel, mine: list[cp_model.IntVar], there: int, total: int
) -> list[tuple[cp_model.IntVar, int]]:
    """Write a number of pods in unary: the k-th of them makes a pair with each before it."""
    most = min(total, sum(_upper(count) for count in mine))
    steps = [model.new_bool_var(f"{k} more") for k in range(most)]
    model.add(cp_model.LinearExpr.sum(mine) == cp_model.LinearExpr.sum(steps))
    for before, after in pairwise(steps):
        model.add_implication(after, before)
    return [(step, k + there) for k, step in enumerate(steps)]
