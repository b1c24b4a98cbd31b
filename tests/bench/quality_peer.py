"""First-fit over domains, the fullest first: what the best known engine does, told anew.

A group, or the gang, asks for its domains in order and tries them one after another: from the
preferred level up to the required one, in each level those first of which it would take the largest
share. Members are placed in the order they are written, pods one by one. Where a member fails, the
whole try is undone and the next domain is tried; a sibling is never asked for another of its own
domains. A domain is tried when its summed room would do, which is the more hopeful of the peer's
two bounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.quality_cases import (
    HOSTNAME,
    Case,
    Clique,
    Domain,
    Group,
    Near,
    Need,
    Node,
    domain,
    free,
    may_use,
)
from tests.bench.quality_judging import Put


@dataclass(frozen=True)
class _Member:
    """A node of the gang's tree: either it has members, or it is one clique."""

    near: Near
    cliques: tuple[Clique, ...]
    members: tuple["_Member", ...] = ()


def place(case: Case) -> list[Put] | None:
    """Place the minimum, or say that first-fit does not."""
    return _FirstFit(case).run()


def _tree(case: Case) -> _Member:
    return _branch(case.near, case.cliques, sorted(case.groups, key=lambda g: -len(g.cliques)))


def _branch(near: Near, cliques: tuple[Clique, ...], groups: Sequence[Group]) -> _Member:
    """Nest what lies within: the widest groups are members, and cliques that are in none."""
    members: list[_Member] = []
    seen: set[str] = set()
    for clique in cliques:
        if clique.name in seen:
            continue
        group = next((g for g in groups if clique.name in g.cliques), None)
        inside = (
            (clique,) if group is None else tuple(c for c in cliques if c.name in group.cliques)
        )
        seen.update(each.name for each in inside)
        rest = [g for g in groups if g is not group and set(g.cliques) <= {c.name for c in inside}]
        wish = Near() if group is None else group.near
        single = len(inside) == 1 and not rest
        members.append(_Member(wish, inside) if single else _branch(wish, inside, rest))
    return _Member(near, cliques, tuple(members))


class _FirstFit:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._room = {node.name: free(node) for node in case.nodes}
        self._puts: list[Put] = []

    def run(self) -> list[Put] | None:
        return self._puts if self._member(_tree(self._case), list(self._case.nodes)) else None

    def _member(self, member: _Member, universe: Sequence[Node]) -> bool:
        for nodes in self._node_sets(member, universe):
            begun = len(self._puts)
            if self._inside(member, nodes):
                return True
            self._undo(begun)
        return False

    def _inside(self, member: _Member, nodes: Sequence[Node]) -> bool:
        if member.members:
            return all(self._member(each, nodes) for each in member.members)
        (clique,) = member.cliques
        first = len(clique.anchors)
        return all(self._pod(clique, first + i, nodes) for i in range(clique.minimum))

    def _pod(self, clique: Clique, index: int, nodes: Sequence[Node]) -> bool:
        """Take the node with the fewest devices left, then the least of everything."""
        fits = [node for node in nodes if self._fits(clique, node)]
        if not fits:
            return False
        best = min(fits, key=lambda node: self._fullness(node.name))
        for name, amount in clique.need.items():
            self._room[best.name][name] -= amount
        self._puts.append(Put(clique.name, index, best.name))
        return True

    def _fits(self, clique: Clique, node: Node) -> bool:
        room = self._room[node.name]
        return may_use(node, clique) and all(
            room.get(name, 0) >= amount for name, amount in clique.need.items()
        )

    def _fullness(self, name: str) -> tuple[int, int, str]:
        room = self._room[name]
        return sum(v for k, v in room.items() if "/" in k), room.get("cpu", 0), name

    def _undo(self, begun: int) -> None:
        needs = {clique.name: clique.need for clique in self._case.cliques}
        for put in self._puts[begun:]:
            for name, amount in needs[put.clique].items():
                self._room[put.node][name] += amount
        del self._puts[begun:]

    def _node_sets(self, member: _Member, universe: Sequence[Node]) -> Iterator[Sequence[Node]]:
        near, order = member.near, self._case.levels
        if not near.required and not near.preferred:
            yield universe
            return
        for level in _upward(near, order):
            sets = self._domains(universe, level)
            asked = _asked(member.cliques)
            ranked = [
                (-self._share(asked, nodes), where)
                for where, nodes in sets.items()
                if self._holds_anchors(member, nodes) and self._share(asked, nodes) <= 1
            ]
            yield from (sets[where] for _, where in sorted(ranked))
        if not near.required:
            yield universe

    def _domains(self, universe: Sequence[Node], level: str) -> dict[Domain, list[Node]]:
        sets: dict[Domain, list[Node]] = {}
        for node in universe:
            where = domain(self._case, node, level)
            if where is not None:
                sets.setdefault(where, []).append(node)
        return sets

    def _share(self, asked: Need, nodes: Sequence[Node]) -> float:
        """The largest share of a resource's room that would be taken."""
        shares = [0.0]
        for name, amount in asked.items():
            room = sum(self._room[node.name].get(name, 0) for node in nodes)
            shares.append(amount / room if room else float("inf"))
        return max(shares)

    def _holds_anchors(self, member: _Member, nodes: Sequence[Node]) -> bool:
        """Whether pods that are there already are in the same domain of the required level."""
        level = member.near.required
        anchors = {name for clique in member.cliques for name in clique.anchors}
        there = [node for node in self._case.nodes if node.name in anchors]
        within = {domain(self._case, node, level) for node in there} if level else set()
        return within <= {domain(self._case, nodes[0], level)}


def _asked(cliques: Sequence[Clique]) -> Need:
    total: Need = {}
    for clique in cliques:
        for name, amount in clique.need.items():
            total[name] = total.get(name, 0) + amount * clique.minimum
    return {name: amount for name, amount in total.items() if amount}


def _upward(near: Near, order: Sequence[str]) -> list[str]:
    """Give levels from the preferred one up to the required one, or to the widest."""
    every = list(dict.fromkeys((*order, HOSTNAME)))
    narrowest = every.index(near.preferred or near.required)
    widest = every.index(near.required) if near.required else 0
    return every[widest : narrowest + 1][::-1]
