"""Views, the differences between them, and the pieces in which a whole one is sent."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.dashboard import view as views
from penstock.dashboard.view import (
    EMPTY,
    Cell,
    Delta,
    GangRow,
    Head,
    Part,
    QueueRow,
    RefusalRow,
    View,
    Violation,
)

KEYS = some.sampled_from(["a", "b", "c", "d", "team/é-0"])
NUMBERS = some.integers(0, 3)
PARTS = some.builds(Part, KEYS, NUMBERS, NUMBERS)
CELLS = some.builds(
    Cell, some.tuples(KEYS, KEYS), NUMBERS, NUMBERS, some.sampled_from(["", "cordoned"]),
    some.lists(PARTS, max_size=2).map(tuple),
)  # fmt: skip
GANGS = some.builds(
    GangRow, some.sampled_from(["Pending", "Running"]), some.booleans(), KEYS, pods=NUMBERS
)
QUEUES = some.builds(QueueRow, NUMBERS, devices=some.dictionaries(KEYS, NUMBERS, max_size=2))
REFUSALS = some.builds(
    RefusalRow, KEYS, KEYS, KEYS,
    violations=some.lists(some.builds(Violation, KEYS, KEYS), max_size=2).map(tuple),
)  # fmt: skip
VIEWS = some.builds(
    View, some.builds(Head, KEYS, KEYS), some.dictionaries(KEYS, CELLS),
    some.dictionaries(KEYS, GANGS), some.dictionaries(KEYS, QUEUES),
    some.dictionaries(KEYS, REFUSALS),
)  # fmt: skip


def sent(delta: Delta) -> Delta:
    """As it arrives at a viewer."""
    return msgspec.json.decode(msgspec.json.encode(delta), type=Delta)


@given(VIEWS, VIEWS)
def test_a_view_and_what_is_other_in_the_next_give_the_next(before: View, after: View) -> None:
    assert views.applied(before, sent(views.delta(before, after))) == after


@given(VIEWS)
def test_nothing_is_other_in_the_same_view(view: View) -> None:
    assert views.delta(view, msgspec.json.decode(msgspec.json.encode(view), type=View)).is_empty


@given(VIEWS, some.integers(1, 3))
def test_the_pieces_of_a_view_give_it_whole(view: View, rows: int) -> None:
    found = EMPTY
    for piece in views.pieces(view, rows):
        assert len(piece.nodes) <= rows
        found = views.applied(found, sent(piece))
    assert found == view


def test_only_rows_that_changed_are_sent() -> None:
    cell = Cell(("z0",), 8, 0)
    before = View(nodes={"a": cell, "b": cell, "c": cell})
    after = View(nodes={"a": cell, "b": Cell(("z0",), 8, 4), "d": cell})
    assert views.delta(before, after) == Delta(nodes={"b": after.nodes["b"], "d": cell, "c": None})


@pytest.mark.parametrize("field", ["nodes", "gangs", "queues", "refusals"])
def test_a_row_that_went_is_told_in_every_table(field: str) -> None:
    row = {"nodes": Cell((), 1, 1), "gangs": GangRow("Pending"), "queues": QueueRow(),
           "refusals": RefusalRow("", "", "")}[field]  # fmt: skip
    before = msgspec.structs.replace(EMPTY, **{field: {"x": row}})
    assert getattr(views.delta(before, EMPTY), field) == {"x": None}
