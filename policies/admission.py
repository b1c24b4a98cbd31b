"""A request that changes an object, and what it takes to judge one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from api.jsons import JsonObject
from policies.answers import Answer, Code, Refuse
from policies.known import Known
from policies.policy import Policy


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True)
class User:
    """Who asks for the change, as the API server authenticated them."""

    name: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """A change about to be made.

    `object` is None where there is no new object, as in a delete; `old_object` where there is no
    old one, as in a creation. `kind` is the object's own: a Scale's, say, for a subresource.
    """

    operation: Operation
    kind: str
    object: JsonObject | None
    old_object: JsonObject | None = None
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: User = User()
    dry_run: bool = False
    now: datetime | None = None
    is_from_json: bool = field(default=False, compare=False)
    """Whether its objects were read from JSON and nest no deeper than ours: then they can be
    written as JSON again."""


Judge = Callable[[Policy, Known, Request], Answer]
"""How a change is judged: by the policy and what is known, from the request alone. Pure."""


def is_leaving(raw: JsonObject) -> bool:
    """Tell whether the object is being deleted, so that only its finalizers hold it."""
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def astray(request: Request, wanted: str) -> Refuse:
    """Refuse a request that came to the wrong path."""
    return Refuse(
        Code.BAD_REQUEST,
        f"this webhook path judges objects of kind {wanted}, not {request.kind or 'nothing'!r}; "
        "mend the rules of the webhook configuration",
    )
