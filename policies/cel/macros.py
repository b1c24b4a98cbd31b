"""Macros: CEL's ways to go through a list, and has()."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from policies.cel import kinds, operators
from policies.cel.grammar import Name, Node, Select
from policies.cel.kinds import BOOL, STRING, Kind, ListOf, MapOf
from policies.cel.running import ExpressionError, Frame, Run, charge
from policies.cel.scope import Built, Every, Scope
from policies.cel.tokens import BadExpressionError

NAMES: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})


class Build(Protocol):
    """Builds a part of the tree in a scope."""

    def __call__(self, node: Node, names: Scope, /) -> Built:
        """Build it; raises BadExpressionError."""
        ...


def has(arguments: Sequence[Node], scope: Scope, build: Build, at: int) -> Built:
    """Build has(a.b): whether a map has the key, or a field says anything."""
    if len(arguments) != 1 or not isinstance(arguments[0], Select):
        raise BadExpressionError("has() takes one field: has(pod.labels.app)", at)
    asked = arguments[0]
    of = build(asked.of, scope)
    if isinstance(of.kind, MapOf):
        holder, key = cast("Callable[[Frame], dict[str, object]]", of.run), asked.field
        return Built(BOOL, lambda frame: key in holder(frame), of.size + 1, at)
    found = operators.field(of, asked.field, asked.at)
    read = found.run
    if isinstance(found.kind, kinds.Record):
        raise BadExpressionError(f"{found.kind.name} is always there", at)
    return Built(BOOL, lambda frame: bool(read(frame)), found.size, at)


def macro(name: str, over: Built, arguments: Sequence[Node], scope: Scope, build: Build) -> Built:
    """Build a way through a list, or through a map's keys."""
    of = _entries(over)
    if len(arguments) not in ((2, 3) if name == "map" else (2,)):
        raise BadExpressionError(f"{name}() takes a name and what is asked of each", over.at)
    variable, *asked = arguments
    if not isinstance(variable, Name):
        raise BadExpressionError(f"the first that {name}() takes is a name", variable.at)
    inside, slot = scope.within(variable.name, of)
    slots = scope.slots
    around, slots.used = slots.used, set()
    parts = [build(node, inside) for node in asked]
    alone, slots.used = slots.used <= {variable.name}, around | slots.used
    for part in parts[:1] if len(parts) == 2 or name != "map" else ():
        part.must_be(BOOL, f"what {name}() asks of each")
    each = 1 + sum(part.size for part in parts)
    kind, run = _WAYS[name](_Pass(cast("_List", over.run), of, slot, each), parts)
    every: Every | None = None
    if name == "all" and alone and over.read is not None and over.slot is not None:
        every = Every(over.slot, cast("_Lists", over.read), slot, parts[0].run, each)
    # The steps through the list are charged when it is known how long it is.
    return Built(kind, run, over.size + 1, over.at, every=every)


_List = Callable[[Frame], list[object]]
_Lists = Callable[[object], list[object]]


@dataclass(frozen=True, slots=True)
class _Pass:
    """One way through a list: where it comes from, of what, and what each step costs."""

    over: _List
    of: Kind
    slot: int
    each: int


_Way = Callable[[_Pass, Sequence[Built]], tuple[Kind, Run]]


def _quantified(*, decided: bool) -> _Way:
    def way(passes: _Pass, parts: Sequence[Built]) -> tuple[Kind, Run]:
        over, slot, each, asked = passes.over, passes.slot, passes.each, parts[0].run

        def run(frame: Frame) -> object:
            found = over(frame)
            if not found:
                return not decided
            charge(frame, len(found) * each)
            error: ExpressionError | None = None
            for item in found:
                frame[slot] = item
                try:
                    if asked(frame) is decided:
                        return decided
                except ExpressionError as problem:
                    error = problem
            if error is not None:
                raise error
            return not decided

        return BOOL, run

    return way


def _once(passes: _Pass, parts: Sequence[Built]) -> tuple[Kind, Run]:
    over, slot, each, asked = passes.over, passes.slot, passes.each, parts[0].run

    def run(frame: Frame) -> object:
        found, count = over(frame), 0
        charge(frame, len(found) * each)
        for item in found:
            frame[slot] = item
            count += asked(frame) is True
        return count == 1

    return BOOL, run


def _filtered(passes: _Pass, parts: Sequence[Built]) -> tuple[Kind, Run]:
    return ListOf(passes.of), _collected(passes, parts[0].run, None)


def _mapped(passes: _Pass, parts: Sequence[Built]) -> tuple[Kind, Run]:
    test = parts[0].run if len(parts) == 2 else None
    return ListOf(parts[-1].kind), _collected(passes, test, parts[-1].run)


def _collected(passes: _Pass, test: Run | None, gives: Run | None) -> Run:
    over, slot, each = passes.over, passes.slot, passes.each

    def run(frame: Frame) -> object:
        found, kept = over(frame), []
        charge(frame, len(found) * each)
        for item in found:
            frame[slot] = item
            if test is None or test(frame):
                kept.append(item if gives is None else gives(frame))
        return kept

    return run


_WAYS: Final[dict[str, _Way]] = {
    "all": _quantified(decided=False),
    "exists": _quantified(decided=True),
    "exists_one": _once,
    "filter": _filtered,
    "map": _mapped,
}


def _entries(over: Built) -> Kind:
    if isinstance(over.kind, MapOf):
        return STRING
    if not isinstance(over.kind, ListOf):
        raise BadExpressionError(f"{over.kind.name} is no list to go through", over.at)
    if over.kind.of is None:
        raise BadExpressionError("there is nothing in this list to go through", over.at)
    return over.kind.of
