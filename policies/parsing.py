"""Raw JSON to what the rules look at; bad input becomes Problems, never exceptions."""

from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from policies.problems import Problem

# The API server makes a generated name of this many characters more than its stem.
GENERATED: Final = "xxxxx"


@dataclass(frozen=True)
class ParsedSet:
    """A PodCliqueSet in the model's terms."""

    name: str
    spec: PodCliqueSetSpec


@dataclass(frozen=True)
class Unreadable:
    """The object is not of the model's shape; at least one problem says where."""

    problems: tuple[Problem, ...]


def podcliqueset(raw: JsonObject) -> ParsedSet | Unreadable:
    """Read a PodCliqueSet from any JSON object."""
    name = _name(raw.get("metadata"))
    if isinstance(name, Problem):
        return Unreadable((name,))
    try:
        # Through text, because only there strict reading takes an enum by its value. Strict, as
        # the API server is: "3" is no number.
        text = orjson.dumps(raw.get("spec"))
        return ParsedSet(name, PodCliqueSetSpec.model_validate_json(text, strict=True))
    except ValidationError as error:
        return Unreadable(
            tuple(
                _problem(detail) for detail in error.errors(include_url=False, include_input=False)
            )
        )
    except TypeError as error:
        # Nested without end, text that is not Unicode, a number without bounds.
        return Unreadable((Problem("spec", f"cannot be read: {error}"),))


def _name(metadata: Json) -> str | Problem:
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):
        return Problem("metadata", "must be an object")
    name = metadata.get("name")
    if name is None or name == "":
        stem = metadata.get("generateName")
        return f"{stem}{GENERATED}" if isinstance(stem, str) and stem else ""
    return name if isinstance(name, str) else Problem("metadata.name", "must be a string")


def _problem(detail: ErrorDetails) -> Problem:
    path = "spec" + "".join(_step(step) for step in detail["loc"])
    if detail["type"] == "missing":
        return Problem(path, "is required")
    # The model library speaks of an input, which is no word of ours.
    message = detail["msg"].removeprefix("Input ")
    return Problem(path, message[:1].lower() + message[1:])


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.replace("_", "").isalnum() else f"[{step}]"
