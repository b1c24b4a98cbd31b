"""In which order the gangs of a batch are placed."""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from scheduler.requests import GangRequest

Rank: TypeAlias = tuple[int | str, ...]


class Order(Protocol):
    """Ranks a gang; those that rank lower go first. Equal ranks go by namespace and name."""

    def __call__(self, gang: GangRequest) -> Rank:
        """Give the rank."""
        ...


def by_priority_then_age(gang: GangRequest) -> Rank:
    """Put higher priorities first, then those that were born earlier."""
    return -gang.priority, gang.born


def ordered(gangs: Iterable[GangRequest], order: Order) -> list[GangRequest]:
    """Put gangs in order. Those that rank equal go by name, however they came."""
    return sorted(gangs, key=lambda gang: (order(gang), gang.namespace, gang.name))
