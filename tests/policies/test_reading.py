import copy

import pytest
from hypothesis import given

from api.jsons import Json
from policies import reading
from tests.policies.chaos import JSONS


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (None, {}),
        (None, []),
        (None, ""),
        ({"a": None, "b": {"c": []}}, {}),
        ({"a": {"b": ""}}, None),
        ([{"a": 1, "b": None}], [{"a": 1}]),
    ],
)
def test_empty_and_left_out_mean_the_same(left: Json, right: Json) -> None:
    assert reading.alike(left, right)
    assert reading.alike(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (None, 0),
        (None, False),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ([1, 2], [2, 1]),
        ([1], [1, None]),
        ("a", ["a"]),
    ],
)
def test_everything_else_is_a_difference(left: Json, right: Json) -> None:
    assert not reading.alike(left, right)
    assert not reading.alike(right, left)


@given(JSONS)
def test_everything_is_like_itself(value: Json) -> None:
    assert reading.alike(value, copy.deepcopy(value))


def test_no_depth_brings_a_comparison_down() -> None:
    left: Json = {"a": 1}
    right: Json = {"a": 2}
    for _ in range(5_000):
        left, right = {"x": left}, {"x": right}
    assert not reading.alike(left, right)


def test_what_is_of_another_type_counts_as_left_out() -> None:
    assert reading.mapping([1]) == {}
    assert reading.items({"a": 1}) == []
    assert reading.text(4) is None
    assert reading.number(True) is None  # noqa: FBT003
    assert reading.number(1.0) is None
    assert reading.listed(["a", 4, "b", "c"], 3) == [(0, "a"), (2, "b")]
    assert reading.names([{"name": "a"}, {"name": 4}, "a", {}]) == ["a", None, None, None]
