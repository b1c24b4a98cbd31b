"""Put a case to the engine as a cluster and a request, and read its answer as plain data."""

from dataclasses import dataclass

from api.jsons import Json
from api.quantities import Amounts
from api.streams import Node, Toleration
from scheduler import cycle, snapshot
from scheduler.answers import NoFit, Placement
from scheduler.eligible import Constraints
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Want
from scheduler.snapshot import Hold, Snapshot
from scheduler.topology import Levels
from tests.bench import quality_cases as cases
from tests.bench.quality_cases import HOSTNAME, Case, Clique, Near, Need
from tests.bench.quality_judging import Put
from tests.support.clusters import node

POOL = "bench.penstock.dev/pool"
TAINT = {"key": "bench.penstock.dev/kept", "value": "yes", "effect": "NoSchedule"}
_UNITS = {"cpu": 1000, "memory": 1 << 30}
_SUFFIXES = {"memory": "Gi"}


@dataclass(frozen=True)
class Answer:
    """What the engine said: where pods go, or that they do not."""

    placed: bool
    exhausted: bool
    puts: tuple[Put, ...] = ()
    score: float | None = None  # as it is said; None where nothing is
    steps: int = 0


def ask(case: Case) -> Answer:
    """Have the engine plan this one gang."""
    made = cycle.plan(stock(case), [request(case)])
    return read(made.placements[0] if made.placements else made.refusals[0])


def read(found: Placement | NoFit) -> Answer:
    """Read an answer as plain data."""
    if isinstance(found, NoFit):
        return Answer(placed=False, exhausted=found.exhausted, steps=found.steps)
    puts = tuple(Put(each.want.clique, each.want.index, each.node) for each in found.placed)
    return Answer(True, False, puts, found.score, found.steps)  # noqa: FBT003 - as the fields are


def stock(case: Case) -> Snapshot:
    """Build the snapshot of a case."""
    holds = [Hold(each.name, amounts(hold)) for each in case.nodes for hold in each.held]
    return snapshot.build([_node(case, each) for each in case.nodes], holds, levels(case))


def levels(case: Case) -> list[Levels]:
    """Give the case's only topology."""
    return [Levels("", case.levels)]


def _node(case: Case, given: cases.Node) -> Node:
    labels = {key: value for key, value in zip(case.levels, given.path, strict=True) if value} | {
        HOSTNAME: given.name
    }
    if given.pool:
        labels[POOL] = given.pool
    room = {name: f"{amount}{_SUFFIXES.get(name, '')}" for name, amount in given.has.items()}
    taints: list[Json] = [dict(TAINT)] if given.tainted else []
    return node(given.name, room, labels=labels, spec={"taints": taints})


def request(case: Case, name: str = "gang") -> GangRequest:
    """Ask for the case's gang."""
    anchors = tuple(Anchor(where, c.name) for c in case.cliques for where in c.anchors)
    return GangRequest(
        "bench",
        name,
        tuple(want for clique in case.cliques for want in _wants(clique, 0, clique.minimum)),
        tuple(want for c in case.cliques for want in _wants(c, c.minimum, c.extras)),
        near=_near(case.near),
        groups=tuple(Group(g.name, g.cliques, _near(g.near)) for g in case.groups),
        anchors=anchors,
    )


def _wants(clique: Clique, first: int, count: int) -> tuple[Want, ...]:
    need = amounts(clique.need)
    begin = len(clique.anchors) + first
    keeps = Constraints(
        selector=((POOL, clique.pool),) if clique.pool else (),
        tolerations=(Toleration(TAINT["key"], "Exists"),) if clique.tolerant else (),
    )
    return tuple(Want(clique.name, index, need, keeps) for index in range(begin, begin + count))


def _near(near: Near) -> Closeness:
    return Closeness(near.required, near.preferred)


def amounts(need: Need) -> Amounts:
    """Give plain amounts in the engine's units."""
    return {name: amount * _UNITS.get(name, 1) for name, amount in need.items()}
