import sys
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json
from webhook import contents
from webhook.nesting import Nesting

LEAVES = st.none() | st.integers(-9, 9) | st.text(max_size=4)
JSONS: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def depth_of(value: Json) -> int:
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or isinstance(inside, str):
        return 0
    return 1 + max(map(depth_of, inside), default=0)  # type: ignore[arg-type]


def nested(levels: int, *, lists: bool, core: Json = 0) -> Json:
    value = core
    for _ in range(levels):
        value = [0, value] if lists else {"a": 0, "b": value}
    return value


@given(JSONS, st.integers(0, 9))
def test_a_value_is_held_that_nests_no_deeper(value: Json, levels: int) -> None:
    assert Nesting(levels).holds(value) == (depth_of(value) <= levels)


@pytest.mark.parametrize("lists", [True, False])
def test_the_last_level_is_held_and_none_after_it(lists: bool) -> None:  # noqa: FBT001
    nesting = Nesting(contents.DEEPEST)
    for levels in (0, 1, contents.DEEPEST - 1, contents.DEEPEST):
        assert nesting.holds(nested(levels, lists=lists))
    for levels in (contents.DEEPEST + 1, 300, 900):
        assert not nesting.holds(nested(levels, lists=lists))
    assert nesting.holds({})


def test_many_threads_may_ask_at_once() -> None:
    nesting, begin = Nesting(8), Barrier(8)
    wrong: list[int] = []

    def ask(levels: int) -> None:
        value = nested(levels, lists=True)
        begin.wait()
        wrong.extend(levels for _ in range(300) if nesting.holds(value) != (levels <= 8))

    threads = [Thread(target=ask, args=(levels,)) for levels in range(5, 13)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
