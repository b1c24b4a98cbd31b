"""What is taken over from one snapshot to the next is what would be counted anew."""

from random import Random

import msgspec
import pytest

from api import names
from api.streams import Node
from scheduler import cycle
from scheduler.filters.constraints import Constraints
from scheduler.requests import Closeness, GangRequest, Want
from scheduler.room import Room
from scheduler.snapshot import Hold, Snapshot
from scheduler.stock import Stock
from scheduler.sums import Column
from scheduler.topology import Levels
from tests.support.clusters import racks

GPU = "nvidia.com/gpu"
LEVELS = [Levels("", (names.BLOCK_KEY, names.RACK_KEY))]
NODES = racks(1, 3, 4, 4)
NEEDS = [{GPU: gpus, "pods": 1} for gpus in (1, 3, 8)]


def stocked(nodes: list[Node], holds: dict[str, Hold]) -> Stock:
    stock = Stock(LEVELS)
    for node in nodes:
        stock.put_node(node)
    for key, hold in holds.items():
        stock.put(key, hold)
    return stock


def columns(snapshot: Snapshot) -> list[Column]:
    """What the search reads of a snapshot that nobody has spent anything of."""
    room = Room(snapshot)
    where = room.layout(snapshot.topologies[0])
    shapes = [room.shape(need, Constraints()) for need in NEEDS]
    return [*(room.column(shape, where) for shape in shapes if shape), room.totals(where)]


def told(found: list[Column]) -> list[object]:
    return [[each.values.tolist(), [sums.tolist() for sums in each.sums]] for each in found]


@pytest.mark.parametrize("seed", range(4))
def test_columns_are_the_same_after_events_as_from_scratch(seed: int) -> None:
    dice = Random(seed)  # noqa: S311 - draws events, guards no secret
    nodes, holds = {node.metadata.name: node for node in NODES}, dict[str, Hold]()
    stock = stocked(NODES, holds)
    for turn in range(25):
        name = dice.choice(sorted(nodes))
        match dice.randrange(6):
            case 0 if holds:
                key = dice.choice(sorted(holds))
                del holds[key]
                stock.drop(key)
            case 1:
                spec = msgspec.structs.replace(nodes[name].spec, unschedulable=dice.random() < 0.5)
                nodes[name] = msgspec.structs.replace(nodes[name], spec=spec)
                stock.put_node(nodes[name])
            case 2:
                room = {**nodes[name].status.allocatable, GPU: str(dice.choice((4, 8)))}
                status = msgspec.structs.replace(nodes[name].status, allocatable=room)
                nodes[name] = msgspec.structs.replace(nodes[name], status=status)
                stock.put_node(nodes[name])
            case _:
                holds[f"h{turn}"] = Hold(name, {GPU: dice.randint(1, 4), "pods": 1})
                stock.put(f"h{turn}", holds[f"h{turn}"])
        if turn % 3 == 2:
            continue  # several events between two snapshots
        scratch = stocked(list(nodes.values()), holds)
        if turn % 2:
            assert told(columns(stock.snapshot())) == told(columns(scratch.snapshot()))
        else:
            Room(stock.snapshot())  # nobody asks for any column of this one


def test_a_plan_takes_nothing_of_what_the_next_snapshot_takes_over() -> None:
    stock = stocked(NODES, {})
    minimum = tuple(Want("a", i, NEEDS[1]) for i in range(12))
    gang = GangRequest("ns", "g", minimum, near=Closeness(names.BLOCK_KEY))
    before = cycle.plan(stock.snapshot(), [gang])
    stock.put("h", Hold(NODES[-1].metadata.name, {GPU: 1, "pods": 1}))
    stock.snapshot()
    stock.drop("h")
    stock.put("other", Hold("nowhere", {GPU: 1}))
    assert cycle.plan(stock.snapshot(), [gang]).placements == before.placements
