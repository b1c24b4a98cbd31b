"""References and conditions as they are written into objects."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from api.jsons import JsonObject
from api.models import Condition
from api.streams import Meta


def api_version(group: str, version: str) -> str:
    """Write a group and version as objects carry them; the core group has no name."""
    return f"{group}/{version}" if group else version


def owner_reference(
    version: str, kind: str, owner: Meta, *, blocks_deletion: bool = False
) -> JsonObject:
    """Refer to the controlling owner, so that what is made goes when the owner goes."""
    return {
        "apiVersion": version,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": blocks_deletion,
    }


def timestamp(now: datetime) -> str:
    """Write an instant the way the API server does: UTC, whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition_of(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Find a condition by its type."""
    return next((condition for condition in conditions if condition.type == kind), None)


def settled(old: Sequence[Condition], new: Condition) -> Condition:
    """Keep the old time of transition while the condition's status stays what it was."""
    before = condition_of(old, new.type)
    if before is None or before.status != new.status:
        return new
    return new.model_copy(update={"last_transition_time": before.last_transition_time})
