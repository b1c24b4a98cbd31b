"""The functions there are: CEL's own over text and numbers, Kubernetes' over lists, and like()."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from api import quantities
from api.quantities import BadQuantityError
from policies import globs
from policies.cel import running
from policies.cel.grammar import Literal, Node
from policies.cel.kinds import BOOL, INT, STRING, Kind, ListOf, MapOf, Plain
from policies.cel.operators import CHARACTERS
from policies.cel.running import ExpressionError, Frame, charge, whole
from policies.cel.scope import Built
from policies.cel.tokens import BadExpressionError

_Test = Callable[[str, str], bool]

_TESTS: Final[dict[str, _Test]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "like": lambda text, pattern: globs.matches(pattern[: globs.LONGEST], text),
}
_UPPER: Final = str.maketrans({chr(i): chr(i - 32) for i in range(ord("a"), ord("z") + 1)})
_LOWER: Final = str.maketrans({chr(i): chr(i + 32) for i in range(ord("A"), ord("Z") + 1)})
_CASES: Final = {"lowerAscii": _LOWER, "upperAscii": _UPPER}
_OVER_LISTS: Final[dict[str, Callable[[list[int]], int]]] = {"sum": sum, "min": min, "max": max}
_METHODS: Final = frozenset({*_TESTS, *_CASES, *_OVER_LISTS, "size"})
_ALONE: Final = frozenset({"size", "int", "string", "quantity"})
NAMES: Final = _METHODS | _ALONE
_PLAIN: Final = "there are no regular expressions here, since they may take for ever; like() takes "


def call(name: str, parts: Sequence[Built], nodes: Sequence[Node], at: int) -> Built:
    """Build a function; the first part is what it is called on, if it is a method."""
    if name == "matches":
        raise BadExpressionError(f"{_PLAIN}patterns in which * stands for any text", at)
    builder = {
        **dict.fromkeys(_TESTS, _test),
        **dict.fromkeys(_CASES, _case),
        **dict.fromkeys(_OVER_LISTS, _over_list),
        "size": _size,
        "int": _int,
        "string": _string,
    }.get(name)
    if name == "quantity":
        return _quantity(nodes, at)
    if builder is None:
        raise BadExpressionError(f"there is no function {name!r}", at)
    wanted = 2 if name in _TESTS else 1
    if len(parts) != wanted:
        raise BadExpressionError(f"{name}() takes {wanted} here, not {len(parts)}", at)
    kind, run = builder(name, parts)
    return Built(kind, run, 1 + sum(part.size for part in parts), at)


def refuse_style(name: str, at: int, *, is_method: bool) -> None:
    """Refuse `f(x)` for what is written `x.f()`, and the other way round."""
    if is_method and name in _ALONE and name not in _METHODS:
        raise BadExpressionError(f"{name}() is written {name}(x)", at)
    if not is_method and name in _METHODS and name not in _ALONE:
        raise BadExpressionError(f"{name}() is written x.{name}()", at)


_Found = tuple[Kind, running.Run]


def _test(name: str, parts: Sequence[Built]) -> _Found:
    text, part = (_text(name, each) for each in parts)
    test, constant = _TESTS[name], parts[1].constant

    def run_constant(frame: Frame) -> object:
        whole_text = text(frame)
        if len(whole_text) > CHARACTERS:
            charge(frame, len(whole_text) // CHARACTERS)
        return test(whole_text, known)

    if isinstance(constant, str):
        known = constant
        return BOOL, run_constant

    def run(frame: Frame) -> object:
        whole_text = text(frame)
        if len(whole_text) > CHARACTERS:
            charge(frame, len(whole_text) // CHARACTERS)
        return test(whole_text, part(frame))

    return BOOL, run


def _case(name: str, parts: Sequence[Built]) -> _Found:
    text, table = _text(name, parts[0]), _CASES[name]

    def run(frame: Frame) -> object:
        found = text(frame)
        charge(frame, len(found) // CHARACTERS)
        return found.translate(table)

    return STRING, run


def _over_list(name: str, parts: Sequence[Built]) -> _Found:
    (part,) = parts
    if part.kind not in (ListOf(INT), ListOf(None)):
        raise BadExpressionError(f"{name}() takes a list of int, not {part.kind.name}", part.at)
    many, work = cast("Callable[[Frame], list[int]]", part.run), _OVER_LISTS[name]

    def run(frame: Frame) -> object:
        found = many(frame)
        charge(frame, len(found))
        if not found and work is not sum:
            raise ExpressionError(f"an empty list has no {name}")
        return whole(work(found))

    return INT, run


def _size(name: str, parts: Sequence[Built]) -> _Found:
    (part,) = parts
    if part.kind != STRING and not isinstance(part.kind, ListOf | MapOf):
        raise BadExpressionError(f"{part.kind.name} has no {name}", part.at)
    many = cast("Callable[[Frame], list[object]]", part.run)
    return INT, lambda frame: len(many(frame))


def _int(name: str, parts: Sequence[Built]) -> _Found:
    (part,) = parts
    if part.kind == INT:
        return INT, part.run
    text = _text(name, part)

    def run(frame: Frame) -> object:
        found = text(frame)
        digits = found[1:] if found[:1] in ("-", "+") else found
        if not (digits.isascii() and digits.isdigit() and len(digits) <= CHARACTERS):
            raise ExpressionError(f"{found[:CHARACTERS]!r} is no whole number")
        return whole(int(found))

    return INT, run


def _string(name: str, parts: Sequence[Built]) -> _Found:
    (part,) = parts
    if not isinstance(part.kind, Plain):
        raise BadExpressionError(f"{part.kind.name} has no {name}", part.at)
    inner = part.run
    if part.kind == STRING:
        return STRING, inner
    return STRING, lambda frame: str(inner(frame)).lower()


def _quantity(nodes: Sequence[Node], at: int) -> Built:
    written = nodes[0] if len(nodes) == 1 else None
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise BadExpressionError("quantity() takes an amount as written: quantity('64Gi')", at)
    try:
        amount = quantities.whole("", written.value)
    except BadQuantityError as error:
        raise BadExpressionError(str(error), written.at) from error
    return Built(INT, lambda _: amount, 1, at)


def _text(name: str, part: Built) -> Callable[[Frame], str]:
    part.must_be(STRING, f"what {name}() takes")
    return cast("Callable[[Frame], str]", part.run)
