"""A policy out of what a file says: all of it understood, or all that is wrong with it."""

import hashlib
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from api.jsons import Json
from policies import reading
from policies.policy import BUILT_IN, Policy, TwiceError, too_many_expressions
from policies.policy_checks import MOST_EXPRESSIONS
from policies.problems import Problem

REVISION_LENGTH: Final = 12
LONGEST_STEP: Final = 64

Step = str | int


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and the steps that lead to it from the top of the file."""

    steps: tuple[Step, ...]
    problem: Problem


def read(document: Json) -> Policy | tuple[Fault, ...]:
    """Read what was written; a file without content is the built-in policy."""
    if document is None:
        return BUILT_IN
    if not isinstance(document, dict):
        return (Fault((), Problem("", "a policy is a mapping of keys to values")),)
    listed = reading.items(document.get("rules"))
    many = sum(reading.mapping(rule).get("cel") is not None for rule in listed)
    if many > MOST_EXPRESSIONS:
        # Before any is read, which costs more than all else.
        return (fault((), too_many_expressions(many)),)
    try:
        # Through text, since only there strict reading takes mappings for models. Strict, so that
        # "no" in quotes is not taken for false.
        return Policy.model_validate_json(orjson.dumps(document), strict=True)
    except TypeError as error:
        return (Fault((), Problem("", f"it cannot be read: {error}")),)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return tuple(map(_fault, details))


def revision(policy: Policy) -> str:
    """Name what a policy says, so that two processes can be seen to go by the same one."""
    return hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:REVISION_LENGTH]


def fault(steps: tuple[Step, ...], message: str) -> Fault:
    """Tell a fault at the end of these steps."""
    return Fault(steps, Problem(_path(steps), message))


def _fault(detail: ErrorDetails) -> Fault:
    # A fault in a key is told with a last step of its own, which no file has.
    steps = tuple(step for step in detail["loc"] if step != "[key]")
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, TwiceError):
        steps = cause.steps
    if detail["type"] == "extra_forbidden":
        message = "there is no such key"
    else:
        # The model library speaks of an input, which is no word of ours.
        message = detail["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return fault(steps, message[:1].lower() + message[1:])


def _path(steps: tuple[Step, ...]) -> str:
    written = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step[:LONGEST_STEP]}" for step in steps
    )
    return written.removeprefix(".")
