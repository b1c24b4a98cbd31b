"""What admission answers: let it in, perhaps changed, or refuse it and say why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from api.jsons import JsonObject
from policies import problems
from policies.findings import Finding
from policies.problems import Problem


class Code(IntEnum):
    """Why something is refused, as HTTP counts; clients tell refusals apart by it."""

    BAD_REQUEST = 400
    FORBIDDEN = 403
    INVALID = 422
    INTERNAL = 500
    UNAVAILABLE = 503


@dataclass(frozen=True)
class Allow:
    """Let it in, after the patch (JSON Patch operations) if there is one."""

    patch: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Refuse:
    """Keep it out; the message is for the person who applied it."""

    code: Code
    message: str
    problems: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()


Answer = Allow | Refuse


def invalid(what: str, found: Sequence[Problem]) -> Refuse:
    """Refuse an object for the problems found in it, all of them in one message."""
    message = f"{what} cannot be accepted: {problems.summary(found)}"
    return Refuse(Code.INVALID, message, tuple(found))
