"""What operators mean: what they take is checked once, so that evaluating them checks nothing."""

import operator
from collections.abc import Callable, Sequence
from typing import Final, cast

from policies.cel import kinds
from policies.cel.kinds import BOOL, INT, STRING, ListOf, MapOf
from policies.cel.running import ExpressionError, Frame, Run, charge, whole
from policies.cel.scope import Built
from policies.cel.tokens import BadExpressionError
from policies.problems import choice

_Order = Callable[[Frame], int]
_Read = Callable[[object], int]
_Compared = Callable[[_Order, _Order], Run]
_ComparedTo = Callable[[_Order, int], Run]

# Written out, since a call for each comparison would take as long again as the comparison. Texts
# are compared in the same way: that both sides are of one kind is known.
_COMPARED: Final[dict[str, _Compared]] = {
    "==": lambda one, other: lambda frame: one(frame) == other(frame),
    "!=": lambda one, other: lambda frame: one(frame) != other(frame),
    "<": lambda one, other: lambda frame: one(frame) < other(frame),
    "<=": lambda one, other: lambda frame: one(frame) <= other(frame),
    ">": lambda one, other: lambda frame: one(frame) > other(frame),
    ">=": lambda one, other: lambda frame: one(frame) >= other(frame),
}
_COMPARED_TO: Final[dict[str, _ComparedTo]] = {
    "==": lambda one, value: lambda frame: one(frame) == value,
    "!=": lambda one, value: lambda frame: one(frame) != value,
    "<": lambda one, value: lambda frame: one(frame) < value,
    "<=": lambda one, value: lambda frame: one(frame) <= value,
    ">": lambda one, value: lambda frame: one(frame) > value,
    ">=": lambda one, value: lambda frame: one(frame) >= value,
}
_READ_AND_COMPARED_TO: Final[dict[str, Callable[[_Read, int, int], Run]]] = {
    "==": lambda read, slot, value: lambda frame: read(frame[slot]) == value,
    "!=": lambda read, slot, value: lambda frame: read(frame[slot]) != value,
    "<": lambda read, slot, value: lambda frame: read(frame[slot]) < value,
    "<=": lambda read, slot, value: lambda frame: read(frame[slot]) <= value,
    ">": lambda read, slot, value: lambda frame: read(frame[slot]) > value,
    ">=": lambda read, slot, value: lambda frame: read(frame[slot]) >= value,
}
_EQUALITY: Final = ("==", "!=")
# So many characters are looked at, or copied, in about the time of one step.
CHARACTERS: Final = 64


def operation(sign: str, parts: Sequence[Built], at: int) -> Built:
    """Build an operator over its operands; raises BadExpressionError."""
    size = 1 + sum(part.size for part in parts)
    if sign in ("&&", "||"):
        return _logical(sign, parts, size, at)
    if len(parts) == 2:
        return _of_two(sign, parts[0], parts[1], at)
    if len(parts) == 1:
        return _unary(sign, parts[0], size, at)
    return _conditional(parts, size, at)


def _of_two(sign: str, left: Built, right: Built, at: int) -> Built:
    if sign in _EQUALITY:
        return _equality(sign, left, right, at)
    if sign in _COMPARED:
        return _order(sign, left, right, at)
    if sign == "in":
        return _within(left, right, at)
    return _sum(left, right, at) if sign == "+" else _arithmetic(sign, left, right, at)


def _logical(sign: str, parts: Sequence[Built], size: int, at: int) -> Built:
    for part in parts:
        part.must_be(BOOL, f"what {sign} joins")
    runs = [part.run for part in parts]
    decided = sign == "||"

    def run(frame: Frame) -> object:
        # What decides does so wherever it stands, also beside what has no value.
        error: ExpressionError | None = None
        for each in runs:
            try:
                if each(frame) is decided:
                    return decided
            except ExpressionError as found:
                error = found
        if error is not None:
            raise error
        return not decided

    return Built(BOOL, run, size, at)


def _conditional(parts: Sequence[Built], size: int, at: int) -> Built:
    parts[0].must_be(BOOL, "what stands before ?")
    kind = kinds.joined(parts[1].kind, parts[2].kind)
    if kind is None:
        raise BadExpressionError(
            f"both sides of : must be of one kind, not {parts[1].kind.name} and "
            f"{parts[2].kind.name}",
            at,
        )
    test, chosen, other = (part.run for part in parts)
    return Built(kind, lambda frame: (chosen if test(frame) else other)(frame), size, at)


def _unary(sign: str, part: Built, size: int, at: int) -> Built:
    inner = part.run
    if sign == "!":
        part.must_be(BOOL, "what ! turns round")
        if part.read is not None and part.slot is not None:
            read, slot = part.read, part.slot
            return Built(BOOL, lambda frame: not read(frame[slot]), size, at)
        return Built(BOOL, lambda frame: not inner(frame), size, at)
    part.must_be(INT, "what - stands before")
    number = cast("Callable[[Frame], int]", inner)
    return Built(INT, lambda frame: whole(-number(frame)), size, at)


def _equality(sign: str, left: Built, right: Built, at: int) -> Built:
    kind = kinds.joined(left.kind, right.kind)
    if kind is None:
        raise BadExpressionError(
            f"{left.kind.name} and {right.kind.name} are never equal: {sign} takes one kind", at
        )
    if not kinds.is_comparable(kind):
        raise BadExpressionError(f"{kind.name} cannot be compared; compare its parts", at)
    return _compared(sign, left, right, at)


def _order(sign: str, left: Built, right: Built, at: int) -> Built:
    right.must_be(left.kind, f"the right side of {sign}")
    if left.kind not in (INT, STRING, BOOL):
        raise BadExpressionError(f"{left.kind.name} has no order", at)
    return _compared(sign, left, right, at)


def _compared(sign: str, left: Built, right: Built, at: int) -> Built:
    one, other = (cast("_Order", part.run) for part in (left, right))
    size = 1 + left.size + right.size
    if right.constant is not None and left.read is not None and left.slot is not None:
        read, value = cast("_Read", left.read), cast("int", right.constant)
        return Built(BOOL, _READ_AND_COMPARED_TO[sign](read, left.slot, value), size, at)
    if right.constant is not None:
        run = _COMPARED_TO[sign](one, cast("int", right.constant))
        return Built(BOOL, run, size, at)
    run = _COMPARED[sign](one, other)
    if not isinstance(left.kind, ListOf):
        return Built(BOOL, run, size, at)
    many = cast("Callable[[Frame], list[object]]", left.run)

    def counted(frame: Frame) -> object:
        charge(frame, len(many(frame)))
        return run(frame)

    return Built(BOOL, counted, size, at)


def _within(left: Built, right: Built, at: int) -> Built:
    among = right.kind
    if not isinstance(among, ListOf | MapOf):
        raise BadExpressionError(f"in looks into a list or map, not into {among.name}", at)
    sought = STRING if isinstance(among, MapOf) else among.of
    if sought is not None:
        left.must_be(sought, "what in looks for")
    if not kinds.is_comparable(left.kind) or isinstance(left.kind, ListOf):
        raise BadExpressionError(f"{left.kind.name} cannot be compared; compare its parts", at)
    one, many = left.run, right.run

    def run(frame: Frame) -> object:
        value = one(frame)
        found = cast("list[object]", many(frame))
        charge(frame, len(found))
        return value in found

    return Built(BOOL, run, 1 + left.size + right.size, at)


def _sum(left: Built, right: Built, at: int) -> Built:
    kind = kinds.joined(left.kind, right.kind)
    if kind not in (INT, STRING) and not isinstance(kind, ListOf):
        raise BadExpressionError(
            f"{left.kind.name} and {right.kind.name} cannot be added: + takes two numbers, two "
            "texts or two lists",
            at,
        )
    size = 1 + left.size + right.size
    if kind == INT:
        return Built(kind, _numbers(operator.add, left.run, right.run), size, at)
    one, other = (cast("Callable[[Frame], str]", part.run) for part in (left, right))
    share = CHARACTERS if kind == STRING else 1

    def run(frame: Frame) -> object:
        found = one(frame) + other(frame)
        charge(frame, len(found) // share)
        return found

    return Built(kind, run, size, at)


def _arithmetic(sign: str, left: Built, right: Built, at: int) -> Built:
    for part in (left, right):
        part.must_be(INT, f"what {sign} takes")
    work = {"-": operator.sub, "*": operator.mul, "/": _quotient, "%": _rest}[sign]
    return Built(INT, _numbers(work, left.run, right.run), 1 + left.size + right.size, at)


def _numbers(work: Callable[[int, int], int], left: Run, right: Run) -> Run:
    one, other = (cast("Callable[[Frame], int]", run) for run in (left, right))
    return lambda frame: whole(work(one(frame), other(frame)))


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("a number is divided by 0")
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _rest(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


def entry(of: Built, key: Built, at: int) -> Built:
    """Build `of[key]`; raises BadExpressionError."""
    size = 1 + of.size + key.size
    where, which = of.run, key.run
    if isinstance(of.kind, ListOf) and of.kind.of is not None:
        key.must_be(INT, "the place in a list")
        numbered = cast("Callable[[Frame], int]", which)

        def run(frame: Frame) -> object:
            found, place = cast("list[object]", where(frame)), numbered(frame)
            if 0 <= place < len(found):
                return found[place]
            raise ExpressionError(f"there is no entry {place} in a list of {len(found)}")

        return Built(of.kind.of, run, size, at)
    if isinstance(of.kind, MapOf):
        key.must_be(STRING, "a map's key")
        return Built(of.kind.of, _of_map(where, cast("Callable[[Frame], str]", which)), size, at)
    raise BadExpressionError(f"{of.kind.name} has no entries", at)


def _of_map(where: Run, which: Callable[[Frame], str]) -> Run:
    def run(frame: Frame) -> object:
        found, key = cast("dict[str, object]", where(frame)), which(frame)
        if key in found:
            return found[key]
        raise ExpressionError(f"there is no key {key[:64]!r}")

    return run


def field(of: Built, name: str, at: int) -> Built:
    """Build `of.name`; raises BadExpressionError."""
    holder = of.run
    if isinstance(of.kind, MapOf):
        return Built(of.kind.of, _of_map(holder, lambda _: name), of.size + 1, at)
    if not isinstance(of.kind, kinds.Record):
        raise BadExpressionError(f"{of.kind.name} has no field {name!r}", at)
    found = of.kind.fields.get(name)
    if found is None:
        raise BadExpressionError(
            f"{of.kind.name} has no field {name!r}{choice(of.kind.fields)}", at
        )
    read, slot = found.read, of.slot
    if read is kinds.same:
        return Built(found.kind, holder, of.size + 1, at, slot=slot, read=of.read)
    if not isinstance(found.kind, ListOf | MapOf):
        if slot is not None and of.read is None:
            run = _reading(read, slot)
            return Built(found.kind, run, of.size + 1, at, slot=slot, read=read)
        return Built(found.kind, lambda frame: read(holder(frame)), of.size + 1, at)

    lists = cast("Callable[[object], list[object]]", read)

    if slot is not None and of.read is None:
        run = _listing(lists, slot)
        return Built(found.kind, run, of.size + 1, at, slot=slot, read=read)

    def counted(frame: Frame) -> object:
        many = lists(holder(frame))
        if len(many) > CHARACTERS:
            charge(frame, len(many))
        return many

    return Built(found.kind, counted, of.size + 1, at)


def _listing(lists: Callable[[object], list[object]], slot: int) -> Run:
    """Read a list of a variable itself, as most expressions do."""

    def run(frame: Frame) -> object:
        many = lists(frame[slot])
        if len(many) > CHARACTERS:
            charge(frame, len(many))
        return many

    return run


def _reading(read: Callable[[object], object], slot: int) -> Run:
    return lambda frame: read(frame[slot])
