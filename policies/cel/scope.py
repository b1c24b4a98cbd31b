"""What is known of a part of an expression before it is evaluated, and the names it may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from policies.cel.kinds import Kind
from policies.cel.running import FIRST_SLOT, Run
from policies.cel.tokens import BadExpressionError


@dataclass(frozen=True, slots=True)
class Every:
    """What `x.list.all(each, …)` asks, if of `each` alone: then of many x it is asked at once."""

    slot: int
    """Where x is."""
    lists: Callable[[object], list[object]]
    inner: int
    """Where each entry is put."""
    asked: Run
    steps: int
    """What it costs to ask of one entry."""


@dataclass(frozen=True, slots=True)
class Built:
    """A part that can be run: what it gives, how, and how many steps it takes by itself."""

    kind: Kind
    run: Run
    size: int
    at: int
    constant: bool | int | str | None = None
    """What it always gives, if that is known."""
    slot: int | None = None
    """Where the variable is that it gives, or that it reads."""
    read: Callable[[object], object] | None = None
    """How it reads that variable; None where it gives the variable itself."""
    every: Every | None = None

    def must_be(self, kind: Kind, what: str) -> None:
        """Refuse another kind; raises BadExpressionError."""
        if self.kind != kind:
            raise BadExpressionError(f"{what} must be {kind.name}, not {self.kind.name}", self.at)


@dataclass
class Slots:
    """How many variables there are, and which of the given ones are used."""

    count: int = FIRST_SLOT
    used: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Scope:
    """The names that can be used at one place, each with its kind and slot."""

    names: Mapping[str, tuple[Kind, int]]
    slots: Slots

    def within(self, name: str, kind: Kind) -> tuple["Scope", int]:
        """Give the scope inside a macro that binds this name."""
        slot = self.slots.count
        self.slots.count += 1
        return Scope({**self.names, name: (kind, slot)}, self.slots), slot


def given(names: Mapping[str, Kind]) -> Scope:
    """Give the scope of a whole expression."""
    slots = {key: (kind, i) for i, (key, kind) in enumerate(names.items(), FIRST_SLOT)}
    return Scope(slots, Slots(FIRST_SLOT + len(names)))
