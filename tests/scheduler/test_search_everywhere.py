"""A place is found however many domains there are that look better and have none."""

from random import Random

import pytest

from api import names
from api.streams import Node
from scheduler import cycle
from scheduler.answers import Cause, Plan
from scheduler.requests import Closeness, GangRequest, Group, Want
from scheduler.settings import Settings
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import node

GPU = "nvidia.com/gpu"
BLOCK, RACK = names.BLOCK_KEY, names.RACK_KEY
LEVELS = [Levels("", (BLOCK, RACK))]
ROOM = {GPU: "8", "cpu": "80", "memory": "512Gi", "pods": "110"}
CORE = 1000


def cluster(racks: int, free: int, cpus: list[list[int]], gpus: int = 8) -> Snapshot:
    """Racks with so many cores free on each node, by turns; in one of them all is free."""
    nodes: list[Node] = []
    holds = []
    for rack in range(racks):
        left = [80] * len(cpus[0]) if rack == free else cpus[rack % len(cpus)]
        for i, cores in enumerate(left):
            name = f"n-{rack}-{i}"
            labels = {BLOCK: f"b{rack // 20}", RACK: f"r{rack}"}
            nodes.append(node(name, {**ROOM, GPU: str(gpus)}, labels=labels))
            holds.append(Hold(name, {"cpu": (80 - cores) * CORE}))
    return build(nodes, holds, LEVELS)


def wants(clique: str, count: int, cpu: int, gpus: int = 0) -> tuple[Want, ...]:
    need = {"cpu": cpu * CORE, "pods": 1} | ({GPU: gpus} if gpus else {})
    return tuple(Want(clique, i, need) for i in range(count))


def racks_of(made: Plan) -> set[str]:
    (placement,) = made.placements
    return {placed.node.split("-")[1] for placed in placement.placed}


# On a node with 70 cores there is room for one pod of 50 or two of 30: too little in four of them,
# though each kind fits, and so does the sum.
BOTH = {
    "devices": wants("a", 3, 50, 4) + wants("b", 3, 30, 2),
    "cores": wants("a", 3, 50) + wants("b", 3, 30),
}


@pytest.mark.parametrize("minimum", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("racks", [30, 75, 81, 300])
def test_one_free_rack_is_found_among_any_number_of_equal_ones_that_will_not_do(
    minimum: tuple[Want, ...], racks: int
) -> None:
    gang = GangRequest("team", "g", minimum, near=Closeness(RACK))
    snapshot = cluster(racks, racks // 2, [[70] * 4])
    assert racks_of(cycle.plan(snapshot, [gang])) == {str(racks // 2)}
    (refusal,) = cycle.plan(cluster(racks, -1, [[70] * 4]), [gang]).refusals
    assert not refusal.exhausted
    assert refusal.steps < 100


@pytest.mark.parametrize("racks", [20, 200])
def test_the_rack_that_takes_it_is_found_where_no_bound_sees_what_is_wrong_with_others(
    racks: int,
) -> None:
    # One node has cores for two pods, but not the memory if one of them is an `a`.
    nodes, holds = [], []
    for rack in range(racks):
        for i, (cores, gib) in enumerate([(80, 512 if rack == 15 else 30), (40, 80 + rack)]):
            name, labels = f"n-{rack}-{i}", {RACK: f"r{rack}"}
            nodes.append(node(name, ROOM, labels=labels))
            holds.append(Hold(name, {"cpu": (80 - cores) * CORE, "memory": (512 - gib) << 30}))
    snapshot = build(nodes, holds, [Levels("", (RACK,))])
    minimum = [
        Want(clique, i, {"cpu": 40 * CORE, "memory": gib << 30, "pods": 1})
        for clique, count, gib in (("a", 2, 30), ("b", 1, 10))
        for i in range(count)
    ]
    gang = GangRequest("team", "g", tuple(minimum), near=Closeness(RACK))
    assert racks_of(cycle.plan(snapshot, [gang])) == {"15"}
    full = build(nodes, [*holds, Hold("n-15-0", {GPU: 8, "cpu": 80 * CORE})], [Levels("", (RACK,))])
    (refusal,) = cycle.plan(full, [gang]).refusals
    assert (refusal.exhausted, refusal.cause) == (False, Cause.COMBINATION)


def test_groups_find_their_rack_where_the_gang_may_lie_anywhere() -> None:
    near = Closeness(RACK)
    gang = GangRequest(
        "team",
        "g",
        wants("a", 3, 50, 4) + wants("b", 3, 30, 2) + wants("far", 30, 1),
        groups=(Group("g", ("a", "b"), near),),
    )
    (placement,) = cycle.plan(cluster(120, 60, [[70] * 4]), [gang]).placements
    racks = {p.node.split("-")[1] for p in placement.placed if p.want.clique in "ab"}
    assert racks == {"60"}


def test_the_answer_is_the_same_however_the_cluster_is_listed() -> None:
    dice = Random(5)  # noqa: S311 - draws questions, guards no secret
    left = [[dice.choice((60, 65, 70, 75)) for _ in range(4)] for _ in range(60)]
    snapshot = cluster(100, 55, left)
    gang = GangRequest("team", "g", BOTH["devices"], near=Closeness(RACK))
    made = cycle.plan(snapshot, [gang])
    assert made.placements
    holds = [
        Hold(each.metadata.name, {"cpu": 80 * CORE - int(free[snapshot.resources.index("cpu")])})
        for each, free in zip(snapshot.nodes, snapshot.free, strict=True)
    ]
    nodes = list(snapshot.nodes)
    for _ in range(3):
        dice.shuffle(nodes)
        dice.shuffle(holds)
        again = cycle.plan(build(nodes, holds, LEVELS), [gang])
        assert again.placements == made.placements


@pytest.mark.parametrize("steps", [1, 30, 300, 3_000])
def test_no_more_steps_are_taken_than_there_are(steps: int) -> None:
    dice = Random(3)  # noqa: S311 - draws questions, guards no secret
    left = [[dice.randint(60, 79) for _ in range(8)] for _ in range(50)]
    minimum = wants("a", 5, 37) + wants("b", 5, 29) + wants("c", 4, 23) + wants("d", 4, 11)
    gang = GangRequest("team", "g", minimum, near=Closeness(RACK, RACK))
    made = cycle.plan(cluster(50, -1, left), [gang], Settings(steps=steps))
    spent = [*(p.steps for p in made.placements), *(r.steps for r in made.refusals)]
    assert len(spent) == 1
    assert spent[0] <= steps


def test_a_wish_is_kept_in_one_rack_among_hundreds_that_will_not_do() -> None:
    gang = GangRequest("team", "g", BOTH["devices"], near=Closeness(preferred=RACK))
    dice = Random(9)  # noqa: S311 - draws questions, guards no secret
    left = [[dice.choice((66, 68, 70, 72)) for _ in range(4)] for _ in range(40)]
    assert racks_of(cycle.plan(cluster(300, 150, left), [gang])) == {"150"}
