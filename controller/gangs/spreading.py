"""Which gangs keep apart from which, and over which level: what a PodGang says of it. Pure."""

from dataclasses import dataclass
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from api.streams import SpreadConstraint
from controller.podgang import Gang
from scheduler.filters import constraints
from scheduler.filters.constraints import Requirements

HARD: Final = "DoNotSchedule"  # as pods say it


@dataclass(frozen=True)
class Apart:
    """The wish to keep apart: over a level, by word or by label key, from which other gangs."""

    level: str
    hard: bool = False
    others: Requirements | None = None  # None means the other replicas of the gang's set

    def family(self, gang: Gang) -> str:
        """Name those that keep apart from each other; "" if others do not from this one."""
        if self.others is None:
            return gang.metadata.controller_uid
        chosen = constraints.selects(self.others, gang.metadata.labels)
        return f"{gang.metadata.namespace}/{self.others}" if chosen else ""


def wish(gang: Gang) -> Apart | None:
    """Read a gang's wish: its spec's first constraint that must be kept, else the first at all.

    Else it is that of its set's annotation, which is kept as well as can be.
    """
    written = [each for each in map(_constraint, gang.spec.spread_constraints) if each is not None]
    hard = (each for each in written if each.hard)
    found = next(hard, None) or next(iter(written), None)
    if found is not None:
        return found
    word = gang.metadata.annotations.get(names.SPREAD_ANNOTATION, "")
    return Apart(word) if word else None


def replica_of(gang: Gang) -> str:
    """Name the replica that the gang is of: by its base gang."""
    return gang.base[1] if gang.base else gang.metadata.name


def concerns(asked: Apart, gang: Gang, other: Gang) -> bool:
    """Whether the other is one that the gang keeps apart from."""
    if gang.metadata.namespace != other.metadata.namespace or replica_of(gang) == replica_of(other):
        return False
    if asked.others is None:
        owner = gang.metadata.controller_uid
        return bool(owner) and owner == other.metadata.controller_uid
    return constraints.selects(asked.others, other.metadata.labels)


def _constraint(raw: JsonObject) -> Apart | None:
    try:
        read = msgspec.convert(raw, SpreadConstraint)
    except msgspec.ValidationError:
        return None
    # As for pods, one without a selector is about nobody.
    others = constraints.requirements(read.label_selector)
    if not read.topology_key or others is None:
        return None
    return Apart(read.topology_key, read.when_unsatisfiable == HARD, others)
