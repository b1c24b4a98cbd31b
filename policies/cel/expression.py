"""An expression that was read: everything that can be wrong with it but what it is asked about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, cast

from policies.cel import functions, grammar, kinds, macros, operators, scope
from policies.cel.grammar import Call, Entries, Index, Literal, Name, Node, Operation, Select
from policies.cel.kinds import BOOL, INT, STRING, Kind, ListOf, Plain
from policies.cel.running import (
    FIRST_SLOT,
    ExpressionError,
    Frame,
    Meter,
    Run,
    TooMuchWorkError,
)
from policies.cel.scope import Built, Every, Scope
from policies.cel.tokens import BadExpressionError
from policies.problems import choice


@dataclass(frozen=True, slots=True)
class Holds:
    """It is true."""


@dataclass(frozen=True, slots=True)
class Fails:
    """It is false."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """It has no value, or would take too long to have one."""

    why: str


Verdict = Holds | Fails | Unclear
HOLDS: Final = Holds()
FAILS: Final = Fails()
_TOO_LONG: Final = Unclear("that would take too long")


@dataclass(frozen=True, slots=True)
class Expression:
    """A question that is answered with yes or no."""

    text: str
    uses: frozenset[str]
    """The variables it looks at."""
    _run: Run
    _given: tuple[str, ...]
    _slots: int
    _size: int
    _every: Every | None = None

    def ask(self, values: Mapping[str, object], meter: Meter) -> Verdict:
        """Evaluate it; the same values, with as many steps left, give the same verdict."""
        try:
            meter.charge(self._size)
            return HOLDS if self._run(self._frame(values, meter)) is True else FAILS
        except ExpressionError as error:
            return Unclear(str(error))
        except TooMuchWorkError:
            return _TOO_LONG

    def failures(
        self, values: Mapping[str, object], name: str, many: Sequence[object], meter: Meter
    ) -> list[tuple[int, Fails | Unclear]]:
        """Evaluate it with each of these as the variable of that name; tell where it is not so."""
        found: list[tuple[int, Fails | Unclear]] = []
        frame, run = self._frame(values, meter), self._run
        slot = FIRST_SLOT + self._given.index(name)
        try:
            meter.charge(self._size * len(many))
        except TooMuchWorkError:
            return [(i, _TOO_LONG) for i in range(len(many))]
        every = self._every
        if every is not None and every.slot == slot and _all_hold(every, frame, many, meter):
            return found
        for i, each in enumerate(many):
            frame[slot] = each
            try:
                if run(frame) is not True:
                    found.append((i, FAILS))
            except ExpressionError as error:
                found.append((i, Unclear(str(error))))
            except TooMuchWorkError:
                found.append((i, _TOO_LONG))
        return found

    def _frame(self, values: Mapping[str, object], meter: Meter) -> Frame:
        frame: Frame = [meter, *(values.get(name) for name in self._given)]
        return frame + [None] * (self._slots - len(frame))


def _all_hold(every: Every, frame: Frame, many: Sequence[object], meter: Meter) -> bool:
    """Ask of the entries of all lists in one go, as most keep to the rule.

    Takes as many steps as asking one by one, or none where something is to be told of one.
    """
    left, asked, inner = meter.left, every.asked, every.inner
    lists = [every.lists(each) for each in many]
    try:
        for entries in lists:
            count = len(entries)
            meter.charge(count * every.steps + (count if count > operators.CHARACTERS else 0))
        for entries in lists:
            for entry in entries:
                frame[inner] = entry
                if asked(frame) is not True:
                    meter.left = left
                    return False
    except (ExpressionError, TooMuchWorkError):
        meter.left = left
        return False
    return True


def read(text: str, given: Mapping[str, Kind]) -> Expression:
    """Read an expression over these variables; raises BadExpressionError."""
    top = scope.given(given)
    built = _build(grammar.tree(text), top)
    built.must_be(BOOL, "the whole expression")
    used = frozenset(top.slots.used)
    names = tuple(given)
    return Expression(text, used, built.run, names, top.slots.count, built.size, built.every)


def _build(node: Node, names: Scope) -> Built:
    match node:
        case Literal() | Name() | Entries():
            return _alone(node, names)
        case Select():
            return operators.field(_build(node.of, names), node.field, node.at)
        case Index():
            return operators.entry(_build(node.of, names), _build(node.key, names), node.at)
        case Call():
            return _call(node, names)
        case Operation():
            parts = [_build(each, names) for each in node.operands]
            return operators.operation(node.sign, parts, node.at)


def _alone(node: Literal | Name | Entries, names: Scope) -> Built:
    match node:
        case Literal():
            return _literal(node)
        case Name():
            return _name(node, names)
        case Entries():
            return _entries(node, names)


def _literal(node: Literal) -> Built:
    value = node.value
    kind = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else STRING
    return Built(kind, lambda _: value, 1, node.at, constant=value)


def _name(node: Name, names: Scope) -> Built:
    found = names.names.get(node.name)
    if found is None:
        raise BadExpressionError(
            f"there is no variable {node.name!r}{choice(names.names)}", node.at
        )
    kind, slot = found
    names.slots.used.add(node.name)
    return Built(kind, itemgetter(slot), 1, node.at, slot=slot)


def _entries(node: Entries, names: Scope) -> Built:
    parts = [_build(each, names) for each in node.entries]
    kind: Kind | None = parts[0].kind if parts else None
    for part in parts[1:]:
        kind = kinds.joined(cast("Kind", kind), part.kind)
        if kind is None:
            raise BadExpressionError("all entries of a list must be of one kind", part.at)
    runs = [part.run for part in parts]
    size = 1 + sum(part.size for part in parts)
    if all(isinstance(each, Literal) for each in node.entries) and isinstance(kind, Plain | None):
        # Never changed by anybody, so it is made only once.
        fixed = [each.value for each in node.entries if isinstance(each, Literal)]
        return Built(ListOf(kind), lambda _: fixed, size, node.at)
    return Built(ListOf(kind), lambda frame: [run(frame) for run in runs], size, node.at)


def _call(node: Call, names: Scope) -> Built:
    if node.of is None:
        if node.name == "has":
            return macros.has(node.arguments, names, _build, node.at)
        functions.refuse_style(node.name, node.at, is_method=False)
        parts = [_build(each, names) for each in node.arguments]
        return functions.call(node.name, parts, node.arguments, node.at)
    over = _build(node.of, names)
    if node.name in macros.NAMES:
        return macros.macro(node.name, over, node.arguments, names, _build)
    functions.refuse_style(node.name, node.at, is_method=True)
    parts = [over, *(_build(each, names) for each in node.arguments)]
    return functions.call(node.name, parts, (node.of, *node.arguments), node.at)
