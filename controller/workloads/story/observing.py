"""Conditions, errors and operations as statuses carry them on: what stays keeps its times. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from api import names
from api.models import (
    Condition,
    LastError,
    LastOperation,
    OperationState,
    OperationType,
    Status,
)
from api.objects import condition_of, settled, timestamp
from api.streams import Meta
from controller.workloads.views import Trouble

S = TypeVar("S", bound=Status)

_MOST_ERRORS: Final = 16
_OURS: Final = frozenset(
    {
        names.MIN_AVAILABLE_BREACHED,
        names.CLIQUE_SCHEDULED,
        names.GANG_TERMINATION,
        names.PROGRESSING,
        names.TOPOLOGY_UNAVAILABLE,
        names.STARTUP_IMPOSSIBLE,
    }
)
_LONGEST: Final = 1024  # characters of a sentence; API servers quote whole objects


def condition(
    old: Sequence[Condition], kind: str, said: tuple[str, str, str], of: Meta, now: datetime
) -> Condition:
    """Give a condition that says this: status, reason and message."""
    status, reason, message = said
    before = condition_of(old, kind)
    if before is not None and (*said, of.generation) == (
        before.status, before.reason, before.message, before.observed_generation,
    ):  # fmt: skip
        return before
    new = Condition.model_construct(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=timestamp(now),
        observed_generation=of.generation,
    )
    return settled(old, new)


def own(conditions: Iterable[Condition]) -> list[Condition]:
    """Pick the conditions that are said here; others' are theirs."""
    return [each for each in conditions if each.type in _OURS]


def errors(old: Sequence[LastError], troubles: Iterable[Trouble], now: datetime) -> list[LastError]:
    """List troubles as errors; each bears the time at which it was first seen."""
    since = {(error.code, error.description): error.observed_at for error in old}
    found: dict[tuple[str, str], LastError] = {}
    for trouble in troubles:
        key = trouble.code, _short(trouble.description)
        found[key] = LastError.model_construct(
            code=trouble.code,
            description=key[1],
            observed_at=since.get(key) or timestamp(now),
        )
        if len(found) == _MOST_ERRORS:
            break
    return list(found.values())


def operation(
    old: LastOperation | None, state: OperationState, description: str, now: datetime
) -> LastOperation:
    """Say how far an object has come."""
    said = OperationType.RECONCILE, state, _short(description)
    if old is not None and said == (old.type, old.state, old.description):
        return old
    kind, _, text = said
    return LastOperation.model_construct(
        type=kind, state=state, description=text, last_update_time=timestamp(now)
    )


def status(before: S, said: Mapping[str, object]) -> S:
    """Give the status that says this: the one there was, if it says the same.

    In which order conditions stand says nothing, and what others say is theirs.
    """
    known = vars(before)
    conditions = {c.type: c for c in before.conditions if c.type in _OURS}
    new = said["conditions"]
    same = isinstance(new, list) and conditions == {c.type: c for c in new}
    if same and all(known[key] == what for key, what in said.items() if key != "conditions"):
        return before
    return before.model_copy(update=dict(said))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
