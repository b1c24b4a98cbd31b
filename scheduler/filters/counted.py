"""What pods claim by number, beside resources: devices of a class, volumes on the node.

Each kind of thing has a column of its own, by a name that no resource of Kubernetes can have. What
nodes offer and pods take of it is then added up, searched and explained like any resource.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from api.quantities import Amounts

T = TypeVar("T")

_DEVICES: Final = "devices.penstock.dev/"
# Without a slash: they are not what nodes are packed by.
_VOLUMES: Final = "volumes.penstock.dev:"


@dataclass(frozen=True)
class Shelf:
    """What a node has of such things, and what of that is taken whoever is there, by column."""

    has: Amounts = field(default_factory=dict)
    taken: Amounts = field(default_factory=dict)


def devices_of(device_class: str) -> str:
    """Name the column of a DeviceClass."""
    return f"{_DEVICES}{device_class}"


def volumes_of(storage_class: str, demand: str) -> str:
    """Name the column of volumes of a StorageClass that meet a demand."""
    return f"{_VOLUMES}{storage_class} {demand}".rstrip()


def is_counted(column: str) -> bool:
    """Whether a column is one of these, and no resource."""
    return column.startswith((_DEVICES, _VOLUMES))


def spoken(column: str) -> str:
    """Name a column the way people do: `devices of class gpu.example.com`."""
    if column.startswith(_DEVICES):
        return f"devices of class {column.removeprefix(_DEVICES)}"
    if column.startswith(_VOLUMES):
        name, _, demand = column.removeprefix(_VOLUMES).partition(" ")
        return f"volumes of class {name} ({demand})" if demand else f"volumes of class {name}"
    return column


def within(kinds: Iterable[frozenset[T]], one: T) -> frozenset[T]:
    """List the kinds that everything of this kind is of too, itself among them.

    `kinds` are those that things there are of together.
    """
    found: frozenset[T] | None = None
    for each in kinds:
        if one in each:
            found = each if found is None else found & each
    return frozenset((one,)) if found is None else found


def merged(one: Amounts, other: Amounts) -> Amounts:
    """Add up, without a copy where one side is nothing; names keep their order."""
    if not one or not other:
        return one or other
    return {**one, **{name: one.get(name, 0) + amount for name, amount in other.items()}}


def least(every: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Give what all of these have in common."""
    first, *others = every
    return {
        name: least
        for name, amount in first.items()
        if (least := min([amount, *(each.get(name, 0) for each in others)]))
    }
