"""Reservations as the API server takes them: the ledger's and those of people in one kind.

A field that only one of them has is optional here; rules see to it that neither has the other's.
"""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from api import keep, quantities
from api.keep import LONGEST_HOURS, MOST_RULES, MOST_SLOTS, MOST_TOLD, TTL_PATTERN
from api.models import Conditions, Instant, Model
from api.podgang import GangConstraint
from api.reservation import (
    Attempt,
    BindBy,
    Deadline,
    Domain,
    Fragmentation,
    GangReference,
    Generation,
    Groups,
    RefusedLater,
    Repairs,
    RetryAt,
    Score,
    StateAttempt,
    Uses,
)
from api.validations import Validation, extension

_LEDGERS: Final = (
    "deadline", "groups", "generation", "score", "fragmentation", "domain", "attempt", "repairs",
    "refused", "uses",
)  # fmt: skip
_KEEPS: Final = (
    "replicas", "requests", "template", "topologyConstraint", "ttl", "expires", "allocateOnce",
)  # fmt: skip
_FIXED: Final = ("replicas", "requests", "template", "topologyConstraint", "allocateOnce")

FOR_SOMEBODY: Final = Validation(
    "has(self.gang) != has(self.owners)",
    "write owners, the rules for who may use the room; gang is for Penstock's own entries",
    path=".owners",
    reason="FieldValueRequired",
)
OF_ONE_SORT: Final = Validation(
    "!has(oldSelf.gang) || has(self.gang)",
    "an entry of Penstock's ledger stays one",
    path=".gang",
)
OF_THE_OTHER_SORT: Final = Validation(
    "!has(oldSelf.owners) || has(self.owners)",
    "a reservation by a person stays one",
    path=".owners",
)
LEDGERS_WHOLE: Final = Validation(
    "!has(self.gang) || (has(self.deadline) && has(self.groups))",
    "an entry of the ledger has a deadline and groups",
    path=".deadline",
    reason="FieldValueRequired",
)
SIZED_ONCE: Final = Validation(
    "!has(self.owners) || has(self.requests) != has(self.template)",
    "write what each replica takes once: under requests, or as a podSpec under template",
    path=".requests",
    reason="FieldValueRequired",
)
ENDS_ONCE: Final = Validation(
    "!has(self.ttl) || !has(self.expires)",
    "write ttl, counted from when it was made, or expires, an instant; not both",
    path=".ttl",
)
LASTS: Final = Validation(
    "!has(self.ttl) || (duration(self.ttl) > duration('0s')"
    f" && duration(self.ttl) <= duration('{LONGEST_HOURS}h'))",
    f"ttl must be more than 0s and at most {LONGEST_HOURS}h, such as 90m or 24h",
    path=".ttl",
)


def _only(sort: str, name: str, whose: str) -> Validation:
    return Validation(
        f"!has(self.{sort}) || !has(self.{name})",
        f"{name} is only for {whose}",
        path=f".{name}",
        reason="FieldValueForbidden",
    )


def _fixed(name: str) -> Validation:
    return Validation(
        f"!has(oldSelf.owners) || (has(self.{name}) == has(oldSelf.{name})"
        f" && (!has(self.{name}) || self.{name} == oldSelf.{name}))",
        f"{name} cannot be changed: the room is where it is; make another reservation",
        path=f".{name}",
    )


RULES: Final = (
    FOR_SOMEBODY,
    OF_ONE_SORT,
    OF_THE_OTHER_SORT,
    LEDGERS_WHOLE,
    SIZED_ONCE,
    ENDS_ONCE,
    LASTS,
    *(_only("owners", name, "entries of Penstock's ledger") for name in _LEDGERS),
    *(_only("gang", name, "reservations by people") for name in _KEEPS),
    *(_fixed(name) for name in _FIXED),
)


class State(StrEnum):
    """All states of both sorts."""

    HELD = "Held"
    LIFTING = "Lifting"
    BOUND = "Bound"
    ROLLED_BACK = "RolledBack"
    PENDING = "Pending"
    AVAILABLE = "Available"
    ALLOCATED = "Allocated"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    EXPIRED = "Expired"


_Amounts = dict[str, Annotated[str, Field(max_length=64, pattern=quantities.PATTERN)]]


class ServedReservationSpec(Model):
    """By a person: what is kept for whom. In the ledger: which room is kept for a gang."""

    model_config = ConfigDict(json_schema_extra=extension(*RULES))

    owners: Annotated[
        list[keep.OwnerRule] | None,
        Field(
            min_length=1,
            max_length=MOST_RULES,
            description="Who of this namespace may use the room: whoever one of these rules means.",
        ),
    ] = None
    replicas: Annotated[
        int | None,
        Field(ge=1, le=MOST_SLOTS, description="How often the room is kept; 1 if left out."),
    ] = None
    requests: Annotated[
        _Amounts | None,
        Field(min_length=1, max_length=64, description="What each of them takes of its node."),
    ] = None
    template: Annotated[
        keep.PodTemplate | None,
        Field(description="A pod like those to come, in the place of requests."),
    ] = None
    topology_constraint: Annotated[
        GangConstraint | None, Field(description="How close together all of them must be.")
    ] = None
    ttl: Annotated[
        str | None,
        Field(
            min_length=2,
            max_length=32,
            pattern=TTL_PATTERN,
            description="How long the room is kept, from when the reservation is made, such as "
            f"90m; {keep.LASTS} if neither ttl nor expires is there.",
        ),
    ] = None
    expires: Annotated[Instant | None, Field(description="Until when the room is kept.")] = None
    allocate_once: Annotated[
        bool | None,
        Field(
            description="Whether one gang uses it and what that leaves is free again, as it is if "
            "left out; else gangs use it one after another, or beside each other."
        ),
    ] = None
    gang: Annotated[
        GangReference | None, Field(description="Whose room it is, in Penstock's ledger.")
    ] = None
    deadline: Deadline | None = None
    generation: Generation | None = None
    score: Score = None
    fragmentation: Fragmentation = None
    domain: Domain | None = None
    attempt: Attempt | None = None
    repairs: Repairs | None = None
    refused: RefusedLater = None
    uses: Uses = None
    groups: Groups | None = None


class ServedReservationStatus(Model):
    """How far the reservation has come."""

    state: Annotated[
        State | None,
        Field(
            description="In the ledger: Held, Lifting, Bound at the end, or RolledBack instead. By "
            "a person: Pending, Available, Allocated while it is used; Succeeded, Failed or "
            "Expired at the end."
        ),
    ] = None
    attempt: StateAttempt | None = None
    bind_by: BindBy = ""
    retry_at: RetryAt = ""
    message: Annotated[
        str, Field(max_length=1024, description="Why it is in this state, in words.")
    ] = ""
    expires_at: Annotated[
        Instant | None, Field(description="Until when a person's reservation keeps the room.")
    ] = None
    requests: Annotated[
        _Amounts, Field(max_length=64, description="What each slot takes of its node.")
    ] = {}
    slots: Annotated[
        list[keep.KeptSlot],
        Field(max_length=MOST_SLOTS, description="Where the room is kept."),
    ] = []
    users: Annotated[
        list[keep.User], Field(max_length=MOST_TOLD, description="The gangs that use it.")
    ] = []
    kept: Annotated[
        _Amounts, Field(max_length=64, description="What is kept in all, whether used or not.")
    ] = {}
    used: Annotated[_Amounts, Field(max_length=64, description="How much of that gangs use.")] = {}
    conditions: Conditions = []
