"""What is told one by one where there is little to tell is what arrays tell of much."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import tightest
from scheduler.room import Room
from scheduler.search.board import Board, Budget
from scheduler.search.choosing import first
from scheduler.search.closing import Closely
from scheduler.search.filling import Filler
from scheduler.search.mates import Mates
from scheduler.search.pulling import pull
from scheduler.search.tree import grown, read
from tests.bench import quality_drawing, quality_engine

WANTED = 12
MANY, NOT_ONE = 10_000, 0


@given(st.lists(st.integers(0, WANTED), min_size=1, max_size=200))
def test_the_tightest_of_few_rows_are_those_of_many(slots: list[int]) -> None:
    few = tightest.of_few(slots, WANTED).tolist()
    assert few == tightest.of_many(np.array(slots), WANTED).tolist()
    assert few == tightest.tightest(np.array(slots), WANTED).tolist()
    used = [slots[row] for row in few]
    assert used == sorted(used)
    assert 0 not in used
    assert sum(used[:-1]) < WANTED
    assert sum(used) >= min(WANTED, sum(slots))


KEYS = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.tuples(*[st.integers(0, 2)] * size), min_size=1, max_size=20)
)


@given(KEYS, st.none() | st.integers(1, 6))
@settings(max_examples=500)
def test_the_first_of_many_are_those_of_all_sorted(
    drawn: list[tuple[int, ...]], most: int | None
) -> None:
    # The last key counts most, and of equal ones the earlier comes first.
    order = sorted(range(len(drawn)), key=lambda i: drawn[i][::-1])
    columns = [np.array(key) for key in zip(*drawn, strict=True)]
    assert first(columns, most).tolist() == order[:most]


def filled(number: int, few: int) -> tuple[tuple[bool, ...], tuple[object, ...], int]:
    """What a filler puts where for a gang that is drawn, and what that costs."""
    case = quality_drawing.draw(1, number)
    request = quality_engine.request(case)
    room = Room(quality_engine.stock(case))
    where = room.layout(room.snapshot.topologies[0])
    tree = grown(read(room, request, Mates(room, where, request)), where, {}, room)
    budget = Budget(MANY)
    columns = [room.column(kind.shape, where) for kind in tree.kinds]
    board = Board(room, where, tree.kinds, columns, budget)
    drawn_to = pull(room, where, request)
    closely = Closely(board, drawn_to, None)
    order = sorted(range(len(tree.kinds)), key=lambda kind: -board.demand[kind])
    filler = Filler(board, order, drawn_to, closely=lambda: closely)
    filler.few = few
    done = [
        filler.whole(tree.root, depth, cell)
        for depth in range(tree.root.depth, where.deepest + 1)
        for cell in range(len(where.depths[depth].starts))
    ]
    return tuple(done), tuple(board.put), budget.spent


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_a_filler_chooses_the_same_cells_however_it_looks_at_them(start: int) -> None:
    found = [filled(number, MANY) for number in range(start, start + 20)]
    assert found == [filled(number, NOT_ONE) for number in range(start, start + 20)]
    assert any(any(done) for done, *_ in found), "nothing was placed, so nothing was compared"
