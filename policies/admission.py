"""What is answered to a request that changes an object: the rules, applied to what they are for."""

from dataclasses import dataclass
from enum import StrEnum

from api.jsons import JsonObject
from policies import gating, parsing, podcliqueset_rules
from policies.answers import Allow, Answer, Code, Refuse, invalid
from policies.parsing import Unreadable
from policies.problems import Problem


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True)
class Request:
    """A change about to be made. `object` is None where there is no new object, as in a delete."""

    operation: Operation
    kind: str
    object: JsonObject | None


def judge_set(request: Request) -> Answer:
    """Refuse a PodCliqueSet that breaks a rule."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != "PodCliqueSet" or request.object is None:
        return _astray(request, "PodCliqueSet")
    if request.operation is Operation.UPDATE and _is_leaving(request.object):
        # Its finalizers must be able to go, whatever is wrong with it.
        return Allow()
    parsed = parsing.podcliqueset(request.object)
    if isinstance(parsed, Unreadable):
        return invalid("PodCliqueSet", parsed.problems)
    problems = podcliqueset_rules.check(parsed.name, parsed.spec)
    return invalid(f"PodCliqueSet {parsed.name!r}", problems) if problems else Allow()


def judge_pod(request: Request) -> Answer:
    """Add our gate to a new pod of a gang."""
    if request.operation is not Operation.CREATE:
        # Gates can only be given at creation.
        return Allow()
    if request.kind != "Pod" or request.object is None:
        return _astray(request, "Pod")
    patch = gating.gate_pod(request.object)
    if isinstance(patch, Problem):
        return invalid("Pod", [patch])
    return Allow(tuple(patch))


def _is_leaving(raw: JsonObject) -> bool:
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _astray(request: Request, wanted: str) -> Refuse:
    return Refuse(
        Code.BAD_REQUEST,
        f"this webhook path judges objects of kind {wanted}, not {request.kind or 'nothing'!r}; "
        "mend the rules of the webhook configuration",
    )
