"""Bounds never say no to what has been packed, and say no to what no single bound sees."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from scheduler import cycle
from scheduler.filters.constraints import Constraints
from scheduler.requests import Closeness, GangRequest, Group, Want
from scheduler.room import Room
from scheduler.search.board import Board, Budget
from scheduler.search.bounding import times
from scheduler.search.tree import Kind
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import racks

GPU = "nvidia.com/gpu"
BLOCK, RACK = names.BLOCK_KEY, names.RACK_KEY
LEVELS = [Levels("", (names.ZONE_KEY, BLOCK, RACK))]
EACH = 4  # nodes in a rack


def left(free: list[int]) -> Snapshot:
    """One block, with so many GPUs free on each node."""
    nodes = racks(1, 1, len(free) // EACH, EACH)
    pairs = zip(nodes, free, strict=True)
    return build(nodes, [Hold(node.metadata.name, {GPU: 8 - n}) for node, n in pairs], LEVELS)


def most(free: list[int], asked: list[tuple[int, int]]) -> int | None:
    """How often so many pods, by their GPUs, fit one rack at most; None if nobody can tell."""
    snapshot = left(free)
    room = Room(snapshot)
    where = room.layout(snapshot.topologies[0])
    shapes = [room.shape({GPU: gpus, "pods": 1}, Constraints()) for gpus, _ in asked]
    kinds = [Kind(shape, 1) for shape in shapes if shape is not None]
    columns = [room.column(kind.shape, where) for kind in kinds]
    counts = [(kind, count) for kind, (_, count) in enumerate(asked)]
    found = times(Board(room, where, kinds, columns, Budget(1)), counts, 3)
    return None if found is None else int(found[0])


@given(st.lists(st.lists(st.integers(1, 8), max_size=4), min_size=EACH, max_size=EACH))
@settings(max_examples=150, deadline=None)
def test_what_was_packed_is_never_said_not_to_fit(nodes: list[list[int]]) -> None:
    packed: Counter[int] = Counter()
    free = []
    for pods in nodes:
        room = 8
        for gpus in pods:
            if gpus <= room:
                room -= gpus
                packed[gpus] += 1
        # Some of what is left over is taken by others.
        free.append(8 - room + room // 2)
    found = most(free, sorted(packed.items())) if packed else None
    assert found is None or found >= 1


def test_pods_that_leave_no_room_for_each_other_are_seen() -> None:
    assert most([7] * EACH, [(5, 2), (3, 4)]) == 1
    assert most([7] * EACH, [(5, 2), (3, 5)]) == 0  # 25 of 28 in sum, and each kind by itself fits
    assert most([8] * EACH, [(5, 4), (3, 4)]) == 1


def wants(clique: str, count: int, gpus: int) -> list[Want]:
    return [Want(clique, i, {GPU: gpus, "pods": 1}) for i in range(count)]


def test_a_group_that_fits_a_rack_only_in_sum_is_refused_without_a_search() -> None:
    near = Closeness(required=RACK)
    minimum = (*wants("wide", 2, 5), *wants("narrow", 5, 3), *wants("far", 6, 1))
    request = GangRequest("ns", "g", minimum, groups=(Group("g", ("wide", "narrow"), near),))
    (refusal,) = cycle.plan(left([7] * EACH * 3), [request]).refusals
    assert (refusal.steps, refusal.exhausted) == (0, False)


def test_groups_that_would_all_need_the_one_free_rack_are_refused_without_a_search() -> None:
    free = [8] * EACH + [1] * EACH * 2
    groups = tuple(Group(name, (name,), Closeness(required=RACK)) for name in ("a", "b"))
    both = GangRequest("ns", "g", (*wants("a", 3, 6), *wants("b", 3, 5)), groups=groups)
    (refusal,) = cycle.plan(left(free), [both]).refusals
    assert (refusal.steps, refusal.exhausted) == (0, False)
    one = GangRequest("ns", "g", (*wants("a", 3, 6), *wants("b", 3, 1)), groups=groups)
    assert cycle.plan(left(free), [one]).placements
