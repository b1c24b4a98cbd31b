"""Expressions drawn at random, each of a kind, to be held against another implementation of CEL."""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from policies.cel.kinds import BOOL, INT, STRING, WORDS, Kind, ListOf

GIVEN: dict[str, Kind] = {
    "i": INT,
    "s": STRING,
    "b": BOOL,
    "l": ListOf(INT),
    "m": ListOf(STRING),
    "w": WORDS,
}
Text = SearchStrategy[str]

_WORD = st.sampled_from(["", "a", "ab", "b", "x/y", "é"])
INTS = st.integers(-4, 4)
VALUES = st.fixed_dictionaries(
    {
        "i": INTS | st.sampled_from([2**63 - 1, -(2**63)]),
        "s": _WORD,
        "b": st.booleans(),
        "l": st.lists(INTS, max_size=3),
        "m": st.lists(_WORD, max_size=3),
        "w": st.dictionaries(_WORD, _WORD, max_size=3),
    }
)


def _binary(signs: list[str], part: Text) -> Text:
    return st.builds("({} {} {})".format, part, st.sampled_from(signs), part)


@cache
def numbers(depth: int) -> Text:
    leaf = st.sampled_from(["i", "x", "0", "1", "-2", "7", "9223372036854775807"])
    if not depth:
        return leaf
    below = numbers(depth - 1)
    return st.one_of(
        leaf,
        _binary(["+", "-", "*", "/", "%"], below),
        st.builds("size({})".format, words(depth - 1) | lists(depth - 1)),
        st.builds("{}[{}]".format, lists(depth - 1), below),
        st.builds("({} ? {} : {})".format, truths(depth - 1), below, below),
    )


@cache
def words(depth: int) -> Text:
    leaf = st.sampled_from(["s", "'a'", '"b"', "'x/y'", "''", "w.a", "w['b']"])
    if not depth:
        return leaf
    below = words(depth - 1)
    return leaf | _binary(["+"], below) | st.builds("string({})".format, numbers(depth - 1))


@cache
def lists(depth: int) -> Text:
    leaf = st.sampled_from(["l", "[1, 2, 3]", "[i]"])
    if not depth:
        return leaf
    below = lists(depth - 1)
    return st.one_of(
        leaf,
        _binary(["+"], below),
        st.builds("{}.map(x, {})".format, below, numbers(depth - 1)),
        st.builds("{}.filter(x, {})".format, below, truths(depth - 1)),
    )


@cache
def truths(depth: int) -> Text:
    """Expressions that are true or false; `x` may be free in them."""
    leaf = st.sampled_from(["b", "true", "false", "has(w.a)", "'b' in w", "i in l", "s in m"])
    if not depth:
        return leaf
    below, number, word = truths(depth - 1), numbers(depth - 1), words(depth - 1)
    return st.one_of(
        leaf,
        _binary(["&&", "||"], below),
        st.builds("!({})".format, below),
        _binary(["==", "!=", "<", "<=", ">", ">="], number),
        _binary(["==", "!=", "<", "<=", ">", ">="], word),
        st.builds("({} == {})".format, lists(depth - 1), lists(depth - 1)),
        st.builds(
            "{}.{}({})".format, word, st.sampled_from(["startsWith", "endsWith", "contains"]), word
        ),
        st.builds(
            "{}.{}(x, {})".format,
            lists(depth - 1),
            st.sampled_from(["all", "exists", "exists_one"]),
            below,
        ),
        st.builds("m.exists(y, y == {})".format, word),
        st.builds("w.all(k, k == {})".format, word),
    )
