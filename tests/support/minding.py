"""What pods of drawn gangs mind beside room: ports, each other, siblings; and whether it was kept.

It is judged from plain data, gang by gang in the order of a plan.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from api.streams import Expression, Port
from scheduler.filters.constraints import Constraints, Others
from scheduler.requests import GangRequest, Kin, Sibling, Spread, Want
from tests.bench.quality_cases import HOSTNAME, Case, Node, domain
from tests.bench.quality_judging import Put

SPACE: Final = "bench"  # the namespace of all
_APPS: Final = ("chat", "search")
_FEW: Final = 4  # pods that find a place also where no two may be on a node, mostly


@dataclass(frozen=True)
class Minds:
    """One gang's: host ports, and levels in which no two pods are to be, by clique; and the rest.

    The levels are those whose labels tell all domains apart.
    """

    name: str
    app: str
    ports: Mapping[str, int] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    spread: tuple[Spread, ...] = ()
    zone: str = ""

    @property
    def kin(self) -> Kin:
        return Kin(self.name, "", (("app", self.app),))

    def added(self, request: GangRequest) -> GangRequest:
        """The same request of a gang that minds all this."""
        return replace(
            request,
            name=self.name,
            namespace=SPACE,
            minimum=tuple(map(self._want, request.minimum)),
            extras=tuple(map(self._want, request.extras)),
            spread=self.spread,
            kin=self.kin,
            zone=self.zone,
        )

    def _want(self, want: Want) -> Want:
        port, level = self.ports.get(want.clique), self.alone.get(want.clique)
        if port is None and level is None:
            return want
        labels = (("clique", f"{self.name}-{want.clique}"),)
        selector = tuple(Expression(key, "In", (value,)) for key, value in labels)
        minding: Constraints = replace(
            want.constraints,
            ports=(Port(port),) if port is not None else (),
            apart=(Others(level, selector, (SPACE,)),) if level is not None else (),
            namespace=SPACE,
            labels=labels,
        )
        return replace(want, constraints=minding)


def drawn(dice: Random, case: Case, name: str) -> Minds:
    """Draw what a gang minds; often little, so that many find a place."""
    few = [c.name for c in case.cliques if c.minimum + c.extras <= _FEW]
    levels = [HOSTNAME, HOSTNAME, *(level for level in case.levels if _tells(case, level))]
    zones = sorted({node.path[0] for node in case.nodes} - {""})
    return Minds(
        name,
        dice.choice(_APPS),
        {dice.choice(few): dice.choice((80, 443))} if few and dice.random() < 0.4 else {},
        {dice.choice(few): dice.choice(levels)} if few and dice.random() < 0.3 else {},
        tuple(_spread(dice, case) for _ in range(dice.choice((0, 0, 1, 1, 2)))),
        dice.choice(zones) if zones and dice.random() < 0.3 else "",
    )


def _tells(case: Case, level: str) -> bool:
    """Whether no two domains of a level have the same label."""
    depth = case.levels.index(level)
    paths = {node.path[: depth + 1] for node in case.nodes}
    return len({path[-1] for path in paths}) == len(paths)


def _spread(dice: Random, case: Case) -> Spread:
    there = tuple(
        Sibling(f"there-{i}", (dice.choice(case.nodes).name,)) for i in range(dice.randint(0, 2))
    )
    among = (Expression("app", "In", (dice.choice(_APPS),)),)
    return Spread(
        dice.choice((*case.levels, HOSTNAME)),
        there,
        dice.random() < 0.5,
        dice.randint(1, 3),
        among,
        dice.choice((1, 1, 1, 1, 1, 3)),
        dice.random() < 0.5,
    )


class Judge:
    """Follows a plan of gangs in one cluster."""

    def __init__(self) -> None:
        self._ports: Counter[tuple[str, int]] = Counter()
        self._placed: list[tuple[Minds, frozenset[str]]] = []

    def problems(self, case: Case, minds: Minds, puts: Sequence[Put]) -> list[str]:
        """Say what this gang minds and was not kept; it counts for those that come later."""
        nodes = {node.name: node for node in case.nodes}
        found = [*self._port_clashes(minds, puts), *_too_near(case, minds, puts, nodes)]
        here = frozenset(put.node for put in puts)
        for spread in minds.spread:
            if spread.hard:
                found += self._uneven(case, minds, spread, [nodes[name] for name in here])
        self._placed.append((minds, here))
        return found

    def _port_clashes(self, minds: Minds, puts: Sequence[Put]) -> Iterator[str]:
        for put in puts:
            if put.clique in minds.ports:
                self._ports[put.node, minds.ports[put.clique]] += 1
        yield from (
            f"{at} is taken {count} times" for at, count in self._ports.items() if count > 1
        )

    def _uneven(
        self, case: Case, minds: Minds, spread: Spread, here: Sequence[Node]
    ) -> Iterator[str]:
        nodes = {node.name: node for node in case.nodes}
        (app,) = (expression.values[0] for expression in spread.among or ())
        siblings = [(each.replica, each.nodes) for each in spread.taken]
        siblings += [(m.name, tuple(names)) for m, names in self._placed if m.app == app]
        counts: Counter[tuple[str, ...]] = Counter()
        for _, names in siblings:
            counts.update({domain(case, nodes[name], spread.level) or () for name in names})
        open_to = {domain(case, n, spread.level) for n in case.nodes if _could(case, spread, n)}
        fewest = 0
        if len(open_to - {None}) >= spread.min_domains:
            fewest = min(counts[each] for each in open_to if each is not None)
        home = {
            domain(case, nodes[name], spread.level)
            for clique in case.cliques
            for name in clique.anchors
        }
        for at in {domain(case, node, spread.level) for node in here}:
            if at is None:
                yield f"{minds.name} is in no {spread.level}"
            elif at not in home and counts[at] + (minds.app == app) - fewest > spread.skew:
                yield f"{minds.name} in {at} with {counts[at]} others, where {fewest} could be"


def _could(case: Case, spread: Spread, node: Node) -> bool:
    """Whether the node could take the gang's largest pod if it was empty."""
    asked = [clique for clique in case.cliques if clique.minimum] or [
        clique for clique in case.cliques if clique.extras
    ]
    devices = [sum(n for name, n in c.need.items() if "/" in name) for c in asked]
    largest = asked[devices.index(max(devices))]
    if spread.by_affinity and largest.pool not in ("", node.pool):
        return False
    return all(node.has.get(name, 0) >= amount for name, amount in largest.need.items())


def _too_near(
    case: Case, minds: Minds, puts: Sequence[Put], nodes: Mapping[str, Node]
) -> Iterator[str]:
    for clique, level in minds.alone.items():
        found = Counter(
            domain(case, nodes[put.node], level) for put in puts if put.clique == clique
        )
        yield from (
            f"{count} pods of {clique} in {at}" for at, count in found.items() if at and count > 1
        )
