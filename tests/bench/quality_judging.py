"""Whether an answer is valid and how good it is, judged from the case alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from tests.bench.quality_cases import Case, Node, cell, domain, free, may_use


@dataclass(frozen=True)
class Put:
    """One pod of a clique on a node."""

    clique: str
    index: int
    node: str


def problems(case: Case, puts: Sequence[Put]) -> list[str]:
    """Say everything that is wrong with an answer; nothing where it is valid."""
    unknown = {put.node for put in puts} - {node.name for node in case.nodes}
    if unknown:
        return [f"there are no nodes {sorted(unknown)}"]
    return [*_whole(case, puts), *_let_in(case, puts), *_room(case, puts), *_together(case, puts)]


def _whole(case: Case, puts: Sequence[Put]) -> Iterator[str]:
    times = Counter((put.clique, put.index) for put in puts)
    for clique in case.cliques:
        first = len(clique.anchors)
        needed = {(clique.name, i) for i in range(first, first + clique.minimum)}
        if missing := sorted(i for _, i in needed - times.keys()):
            yield f"{clique.name} misses {missing}"
    most = {c.name: len(c.anchors) + c.minimum + c.extras for c in case.cliques}
    least = {c.name: len(c.anchors) for c in case.cliques}
    for (name, index), count in times.items():
        if count > 1 or not least.get(name, 0) <= index < most.get(name, 0):
            yield f"{name} has pod {index} {count} times"


def _let_in(case: Case, puts: Sequence[Put]) -> Iterator[str]:
    nodes, cliques = {n.name: n for n in case.nodes}, {c.name: c for c in case.cliques}
    for put in puts:
        if put.clique in cliques and not may_use(nodes[put.node], cliques[put.clique]):
            yield f"{put.clique} may not use {put.node}"


def _room(case: Case, puts: Sequence[Put]) -> Iterator[str]:
    needs = {clique.name: clique.need for clique in case.cliques}
    for node in case.nodes:
        room = free(node)
        here = [needs[put.clique] for put in puts if put.node == node.name and put.clique in needs]
        for name in {name for need in here for name in need}:
            taken = sum(need.get(name, 0) for need in here)
            if taken > room.get(name, 0):
                yield f"{node.name} gives {taken} of {room.get(name, 0)} {name}"


def _together(case: Case, puts: Sequence[Put]) -> Iterator[str]:
    nodes = {node.name: node for node in case.nodes}
    for cliques, near in case.tree():
        if near.required:
            found = {
                domain(case, node, near.required)
                for name, node in _pods(case, puts, nodes)
                if name in cliques
            }
            if len(found) > 1 or None in found:
                yield f"{cliques} are in {found} of {near.required}"


def kept(case: Case, puts: Sequence[Put]) -> tuple[int, int]:
    """Count preferences of the case that an answer keeps, and all there are."""
    nodes = {node.name: node for node in case.nodes}
    wishes = [(cliques, near.preferred) for cliques, near in case.tree() if near.preferred]
    met = 0
    for cliques, level in wishes:
        found = {
            domain(case, node, level) for name, node in _pods(case, puts, nodes) if name in cliques
        }
        met += len(found) == 1 and None not in found
    return met, len(wishes)


def score(case: Case, puts: Sequence[Put]) -> float:
    """Mean over pairs of pods of their deepest shared level, by the number of levels."""
    nodes = {node.name: node for node in case.nodes}
    places = [node for _, node in _pods(case, puts, nodes)]
    pairs = list(combinations(places, 2))
    if not pairs:
        return 1.0
    return sum(_shared(case, a, b) for a, b in pairs) / len(case.levels) / len(pairs)


def minimum_only(case: Case, puts: Sequence[Put]) -> list[Put]:
    """Leave out the extras."""
    most = {clique.name: len(clique.anchors) + clique.minimum for clique in case.cliques}
    return [put for put in puts if put.index < most[put.clique]]


def _shared(case: Case, a: Node, b: Node) -> int:
    if a.name == b.name:
        return len(case.levels)
    depths = range(len(case.levels), 0, -1)
    return next((depth for depth in depths if cell(case, a, depth) == cell(case, b, depth)), 0)


def _pods(case: Case, puts: Sequence[Put], nodes: dict[str, Node]) -> list[tuple[str, Node]]:
    there = [(clique.name, nodes[a]) for clique in case.cliques for a in clique.anchors]
    return there + [(put.clique, nodes[put.node]) for put in puts]
