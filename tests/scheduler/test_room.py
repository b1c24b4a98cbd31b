"""A Room counts the same, kept up as it is spent, as if it were counted anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.streams import Expression
from scheduler.cells import layout
from scheduler.eligible import Constraints
from scheduler.requests import GangRequest, Kin, Sibling, Spread, Want
from scheduler.room import Room, Shape, slots
from scheduler.search.deciding import place
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.sums import column_of
from scheduler.topology import Levels
from tests.support.clusters import node, racks

KEYS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
GPU = "nvidia.com/gpu"
PLAIN = Constraints()


def stock(*holds: Hold) -> Snapshot:
    return build(racks(1, 2, 2, 2), holds, [Levels("", KEYS), Levels("racks", KEYS[2:])])


def shape(room: Room, gpus: int) -> Shape:
    found = room.shape({GPU: gpus, "pods": 1}, PLAIN)
    assert found is not None
    return found


@settings(max_examples=40, deadline=None)
@given(spends=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=12))
def test_columns_kept_up_are_as_if_counted_anew(spends: list[tuple[int, int]]) -> None:
    snapshot = stock()
    room = Room(snapshot)
    where = room.layout(snapshot.topologies[0])
    asked = [shape(room, gpus) for gpus in (1, 3, 8)]
    for row, gpus in spends:
        room.spend({row: [(shape(room, gpus).need, 1)]})
        for each in asked[: row % 3]:
            room.column(each, where)
    for each in asked:
        column = room.column(each, where)
        fresh = column_of(where, slots(room.free, each.need))
        assert (column.values == fresh.values).all()
        assert all((a == b).all() for a, b in zip(column.sums, fresh.sums, strict=True))
    totals = room.totals(where)
    assert (totals.values[:, :-3] == np.maximum(room.free, 0)).all()
    assert totals.sums[0][0, -1] == len(set(range(8)) - {row for row, _ in spends})


def test_what_one_room_spends_no_other_room_of_the_snapshot_sees() -> None:
    snapshot = stock()
    spent, fresh = Room(snapshot), Room(snapshot)
    where = spent.layout(snapshot.topologies[0])
    for room in (spent, fresh):
        room.column(shape(room, 8), where)
    spent.spend({0: [(shape(spent, 8).need, 1)]})
    assert spent.column(shape(spent, 8), where).sums[0][0] == 7
    assert fresh.column(shape(fresh, 8), where).sums[0][0] == 8
    assert Room(snapshot).column(shape(fresh, 8), where).sums[0][0] == 8


@pytest.mark.parametrize("count", [3, 40])
def test_sums_follow_few_positions_and_many(count: int) -> None:
    snapshot = build(racks(2, 3, 4, 2), [], [Levels("", KEYS)])
    where = layout(snapshot.topologies[0])
    dice = np.random.default_rng(count)
    values = dice.integers(0, 9, (48, 2))
    positions = dice.permutation(48)[:count]
    column, fresh = column_of(where, values.copy()), dice.integers(0, 9, (count, 2))
    column.put(where, positions, fresh)
    values[positions] = fresh
    for found, wanted in zip(column.sums, column_of(where, values).sums, strict=True):
        assert found.tolist() == wanted.tolist()


def test_a_refused_gang_leaves_the_room_bit_for_bit_as_it_was() -> None:
    room = Room(stock())
    free = room.free.copy()
    need = {GPU: 8, "pods": 1}
    request = GangRequest("default", "g", tuple(Want("a", i, need) for i in range(9)))
    refusal = place(room, request, 1000)
    assert (room.free == free).all()
    assert refusal == place(room, request, 1000)


def test_pods_with_other_words_for_the_same_nodes_are_alike() -> None:
    room = Room(stock())
    everywhere = Constraints(selector=((names.ZONE_KEY, "z0"),))
    assert room.shape({GPU: 1}, PLAIN) == room.shape({GPU: 1}, everywhere)
    assert room.shape({GPU: 1}, PLAIN) != room.shape({GPU: 1}, Constraints(selector=(("a", "b"),)))
    assert room.shape({"example.com/unknown": 1}, PLAIN) is None


@pytest.mark.parametrize("name", ["", "racks"])
def test_cells_of_every_depth_share_out_all_positions(name: str) -> None:
    topology = stock().topology(name)
    assert topology is not None
    for cells in layout(topology).depths:
        assert [start for start, _ in cells.runs[1:]] == [stop for _, stop in cells.runs[:-1]]
        assert (cells.runs[0][0], cells.runs[-1][1]) == (0, 8)


def test_what_lies_in_no_domain_is_a_cell_by_itself_or_as_the_next_level_has_it() -> None:
    block, rack = KEYS[1:]
    nodes = [
        node("a-0", labels={rack: "r0"}),
        node("a-1", labels={rack: "r0"}),
        node("b-0", labels={block: "b0"}),
        node("b-1", labels={block: "b0"}),
        node("c"),
    ]
    found = layout(build(nodes, [], [Levels("", (block, rack))]).topologies[0])
    sizes = [sorted(stop - start for start, stop in cells.runs) for cells in found.depths]
    assert sizes == [[5], [1, 2, 2], [1, 1, 1, 2]]
    assert [int(cells.real.sum()) for cells in found.depths] == [1, 1, 1]


def test_without_levels_every_node_is_a_cell() -> None:
    found = layout(build([node("a"), node("b")], [], [Levels("", ())]).topologies[0])
    assert found.deepest == 1
    assert found.depths[1].runs == [(0, 1), (1, 2)]


def test_siblings_are_those_of_the_family_or_those_that_are_selected() -> None:
    room = Room(stock())
    there = (Sibling("set-1", ("n-0-0-0-1", "gone")),)
    chat = (Expression("app", "In", ("chat",)),)
    by_family, by_label = Spread(names.RACK_KEY, there), Spread(names.RACK_KEY, among=chat)
    gang = GangRequest("default", "set-0", (), kin=Kin("set-0", "set"))
    row = room.snapshot.row_of["n-0-0-0-1"]
    assert room.siblings(gang, by_family) == (["set-1"], [row])
    room.keep(replace(gang, kin=Kin("set-2", "set")), [6, 7])
    room.keep(replace(gang, kin=Kin("x", "", (("app", "chat"),))), [4])
    room.keep(replace(gang, namespace="other", kin=Kin("y", "set", (("app", "chat"),))), [5])
    assert room.siblings(gang, by_family) == (["set-1", "set-2", "set-2"], [row, 6, 7])
    assert room.siblings(gang, by_label) == (["x"], [4])
