"""Expressions by themselves: what they mean, what is refused before, and that all of them end."""

import pytest

from policies.cel import expression, tokens
from policies.cel.expression import FAILS, HOLDS, Unclear, Verdict
from policies.cel.kinds import INT, STRING, STRINGS, WORDS, Kind, ListOf
from policies.cel.running import Meter
from policies.cel.tokens import BadExpressionError

GIVEN: dict[str, Kind] = {"l": ListOf(INT), "m": STRINGS, "s": STRING, "w": WORDS, "i": INT}
VALUES: dict[str, object] = {
    "l": [1, 2, 3],
    "m": ["a", "b"],
    "s": "Hello",
    "w": {"app": "chat"},
    "i": 7,
}


def asked(text: str, meter: Meter | None = None, **values: object) -> Verdict:
    return expression.read(text, GIVEN).ask({**VALUES, **values}, meter or Meter())


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "i == 7 && i != 8 && i < 8 && i <= 7 && i > 6 && i >= 7",
        "-i == 0 - 7 && -(-i) == i && !!true",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1",
        "0x1F == 31 && -9223372036854775808 < 0",
        "l.all(x, x > 0) && l.exists(x, x == 2) && l.exists_one(x, x == 2)",
        "l.map(x, x * 2) == [2, 4, 6] && l.map(x, x > 1, x) == [2, 3] && l.filter(x, x > 2) == [3]",
        "l.exists(x, l.exists(y, x + y == 6)) && l.all(x, l.exists(x, x == 1))",
        "l.sum() == 6 && l.min() == 1 && l.max() == 3 && [].sum() == 0",
        "size(l) == 3 && l.size() == 3 && size(s) == 5 && size(w) == 1 && size([]) == 0",
        "size('é') == 1 && '😀é'.size() == 2",
        "l[0] == 1 && w['app'] == 'chat' && w.app == 'chat' && has(w.app) && !has(w.none)",
        "'app' in w && 2 in l && !(9 in l) && 'a' in ['a'] && w.all(key, key == 'app')",
        "s.startsWith('He') && s.endsWith('lo') && s.contains('ll') && s + '!' == 'Hello!'",
        "s.like('H*o') && !s.like('h*') && s.lowerAscii() == 'hello' && s.upperAscii() == 'HELLO'",
        "string(i) == '7' && string(true) == 'true' && int('-7') == -i && int(i) == i",
        "quantity('1Gi') == 1024 * 1024 * 1024 && quantity('4') == 4",
        "(i > 5 ? 'large' : 'small') == 'large' && [1] + [2] == [1, 2,]",
        r"""'\\ \' \x41 \101 \u00e9' == "\\ ' A A é" && r'\d' == '\\d' // and a comment""",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "l.exists(x, 1 / (x - 1) == 1)",
        "!l.all(x, 1 / (x - 1) == 5)",
        "l == [1, 2, 3] && l != [] && 'a' < 'b' && false < true",
    ],
)
def test_what_is_true_holds(text: str) -> None:
    assert asked(text) == HOLDS


def test_what_is_false_does_not_hold() -> None:
    assert asked("i == 8") == FAILS
    assert asked("l.exists_one(x, x > 1)") == FAILS


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("i / 0 == 1", "divided by 0"),
        ("i % 0 == 1", "divided by 0"),
        ("9223372036854775807 + i > 0", "64 bits"),
        ("l[3] == 1", "no entry 3 in a list of 3"),
        ("l[-1] == 1", "no entry -1"),
        ("w.none == 'x'", "no key 'none'"),
        ("w[s] == 'x'", "no key 'Hello'"),
        ("int(s) == 1", "'Hello' is no whole number"),
        ("[l.filter(x, x > 9).min()] == l", "empty list has no min"),
        ("true && 1 / 0 == 1", "divided by 0"),
        ("l.all(x, 1 / (x - 1) == 1 || x > 1)", "divided by 0"),
        ("l.exists_one(x, 1 / (x - 1) == 1)", "divided by 0"),
    ],
)
def test_what_has_no_value_is_unclear(text: str, why: str) -> None:
    verdict = asked(text)
    assert isinstance(verdict, Unclear)
    assert why in verdict.why


@pytest.mark.parametrize(
    ("text", "told", "at"),
    [
        ("", "a value is expected, not the end", 0),
        ("i ==", "a value is expected, not the end", 4),
        ("i == 7 7", "'7' is not expected", 7),
        ("(i == 7", "')' is expected", 7),
        ("i = 7", "'=' means nothing", 2),
        ("i == 7.5", "numbers are whole", 5),
        ("i == 7u", "numbers are whole", 5),
        ("i == 9223372036854775808", "64 bits", 5),
        ("s == b'x'", "strings marked by 'b'", 5),
        (r"s == '\q'", "means nothing in a string", 5),
        ("s == null", "nothing is null here", 5),
        ("namespace == 'x'", "a word that CEL keeps", 0),
        ("j == 7", "no variable 'j'; there are i, l, m, s, w", 0),
        ("l.all(x, x > 0) && x > 0", "no variable 'x'", 19),
        ("s.length == 5", "string has no field 'length'", 2),
        ("i", "the whole expression must be bool, not int", 0),
        ("i && true", "what && joins must be bool, not int", 0),
        ("i == s", "int and string are never equal", 2),
        ("i < s", "must be int, not string", 4),
        ("l < l", "list of int has no order", 2),
        ("w == w", "map of string cannot be compared", 2),
        ("[l] == [l]", "list of list of int cannot be compared", 4),
        ("i + s == s", "cannot be added", 2),
        ("-s == s", "what - stands before must be int", 1),
        ("[1, 'a'] == l", "of one kind", 4),
        ("(true ? 1 : 'a') == 1", "of one kind", 6),
        ("i in i", "in looks into a list or map", 2),
        ("s in l", "what in looks for must be int", 0),
        ("l['a'] == 1", "place in a list must be int", 2),
        ("i[0] == 1", "int has no entries", 1),
        ("s.matches('x+')", "no regular expressions", 2),
        ("s.split(',') == m", "no function 'split'", 2),
        ("startsWith(s, 'x')", "is written x.startsWith()", 0),
        ("s.int() == 1", "is written int(x)", 2),
        ("s.startsWith() ", "takes 2 here, not 1", 2),
        ("m.sum() == 1", "takes a list of int", 0),
        ("quantity(s) == 1", "quantity('64Gi')", 0),
        ("quantity('64Qi') == 1", "is not a quantity", 9),
        ("has(w)", "has() takes one field", 0),
        ("l.all(x)", "takes a name and what is asked", 0),
        ("l.all(1, true)", "is a name", 6),
        ("l.all(x, x)", "what all() asks of each must be bool", 9),
        ("i.all(x, true)", "int is no list", 0),
        ("[].all(x, true)", "nothing in this list", 0),
        ("(" * 25 + "true" + ")" * 25, "nests more than", 24),
        ("true" + " " * tokens.LONGEST, "is longer than", 0),
        ("!" * tokens.MOST + "true", "more than 400", 0),
    ],
)  # fmt: skip
def test_what_can_never_be_evaluated_is_refused_with_its_place(
    text: str, told: str, at: int
) -> None:
    with pytest.raises(BadExpressionError) as raised:
        expression.read(text, GIVEN)
    assert told in str(raised.value)
    if "longer" not in told and "more than 400" not in told:
        assert raised.value.at == at


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"l.all(v{i}, " for i in range(20)) + "true" + ")" * 20,
        "['aaaaaaaa']" + ".map(x, x + x + x + x + x + x + x + x)" * 15 + ".size() > 0",
        "[l]" + ".map(x, x + x + x + x + x + x + x + x)" * 15 + ".size() > 0",
        "l.all(x, (l + l + l + l + l + l).all(y, (l + l + l + l + l + l).all(z, l.all(q, true))))",
        "l.all(x, (s + s + s + s).contains('y') || true)",
    ],
)
def test_every_expression_ends_after_so_many_steps(text: str) -> None:
    verdict = asked(text, l=[*range(100)], s="x" * 100_000)
    assert verdict == Unclear("that would take too long")


def test_the_longest_chains_are_no_deeper_than_python_goes() -> None:
    longest = (tokens.MOST - 4) // 2
    assert asked("1" + "+1" * longest + " > 0") == HOLDS
    assert asked("true" + "||true" * longest) == HOLDS
    assert asked("!" * (tokens.MOST - 2) + "true") == HOLDS
    assert asked("s" + "+''" * longest + " == s") == HOLDS


def test_the_same_question_takes_the_same_steps() -> None:
    left = []
    for _ in range(2):
        meter = Meter()
        assert asked("l.all(x, x in l)", meter) == HOLDS
        left.append(meter.left)
    assert left[0] == left[1] < Meter().left


def test_an_expression_knows_which_variables_it_looks_at() -> None:
    assert expression.read("l.all(s, s > i)", GIVEN).uses >= {"l", "i"}
    assert "w" not in expression.read("l.all(s, s > i)", GIVEN).uses
