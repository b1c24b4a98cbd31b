"""What kinds of values there are in expressions, known before anything is evaluated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Plain:
    """A value without parts."""

    name: str


@dataclass(frozen=True)
class ListOf:
    """A list; `of` is None for the empty one, which fits every other."""

    of: "Kind | None"

    @property
    def name(self) -> str:
        """The kind in words."""
        return f"list of {self.of.name}" if self.of else "empty list"


@dataclass(frozen=True)
class MapOf:
    """A map from text."""

    of: "Kind"

    @property
    def name(self) -> str:
        """The kind in words."""
        return f"map of {self.of.name}"


@dataclass(frozen=True)
class Record:
    """Something with named fields, each read out of it only when an expression asks for it."""

    name: str
    of: type
    """What its values are made of."""
    fields: Mapping[str, "Field"] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Field:
    """One of a record's fields, and how it is read."""

    kind: "Kind"
    read: Callable[[object], object]


Kind = Plain | ListOf | MapOf | Record

BOOL: Final = Plain("bool")
INT: Final = Plain("int")
STRING: Final = Plain("string")
STRINGS: Final = ListOf(STRING)
WORDS: Final = MapOf(STRING)


def record(
    name: str, of: type[Seen], fields: Mapping[str, tuple[Kind, Callable[[Seen], object]]]
) -> Record:
    """Describe a record whose values are all of one type."""
    return Record(
        name,
        of,
        {
            key: Field(kind, cast("Callable[[object], object]", read))
            for key, (kind, read) in fields.items()
        },
    )


def same(value: object) -> object:
    """Read a part of something that is read out of the same value again."""
    return value


def joined(one: Kind, other: Kind) -> Kind | None:
    """Give the kind that both are of, or None."""
    if one == other or other == ListOf(None):
        return one if isinstance(one, ListOf) or one == other else None
    if one == ListOf(None) and isinstance(other, ListOf):
        return other
    return None


def is_comparable(kind: Kind) -> bool:
    """Tell whether values can be told equal, in no more steps than they have parts."""
    return isinstance(kind, Plain) or (
        isinstance(kind, ListOf) and (kind.of is None or isinstance(kind.of, Plain))
    )
