"""Raw JSON held against a model: what does not fit becomes Problems, never exceptions."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from api.jsons import Json, JsonObject
from api.models import Model
from api.podcliqueset import PodCliqueSetSpec
from api.topology import ClusterTopologyBindingSpec
from policies import reading, syntax
from policies.model_glance import Glance
from policies.problems import Problem
from policies.rules import MOST_FOUND

# What the models leave to Kubernetes' own schemas. Reading it would take nearly all of the time,
# and the definitions, which have those schemas, say what does not fit there.
OPAQUE: Final = frozenset(("podSpec", "templateSpec", "metrics"))

# More than any list or object may hold: what comes after is too much whatever it is.
MOST_READ: Final = 256

_GLANCED: Final[tuple[type[Model], ...]] = (PodCliqueSetSpec, ClusterTopologyBindingSpec)
_GLANCES: Final = {spec: Glance(spec) for spec in _GLANCED}


def misfits(raw: JsonObject, spec: type[Model], *, is_from_json: bool = False) -> list[Problem]:
    """Find where an object's types, bounds and patterns are not those of its kind.

    What was read from JSON of a bounded depth can be written as JSON, and is not tried for it.
    """
    return [
        *_metadata(raw.get("metadata")),
        *_spec(raw.get("spec"), spec, is_from_json=is_from_json),
    ]


def told_once(
    telling: Sequence[Problem], misfits: Sequence[Problem], rest: Sequence[Problem]
) -> list[Problem]:
    """Put what does not fit between what rules found; where both speak of a field, the rule does.

    A shape that is wrong all over must not push what is most telling out of the message.
    """
    paths = {problem.path for problem in (*telling, *rest)}
    kept = (problem for problem in misfits if problem.path not in paths)
    return [*telling, *kept, *rest]


def _metadata(metadata: Json) -> list[Problem]:
    if metadata is None:
        return []
    if not isinstance(metadata, dict):
        return [Problem("metadata", "must be an object")]
    name = metadata.get("name")
    if name is not None and not isinstance(name, str):
        return [Problem("metadata.name", "must be a string")]
    return [
        Problem(f"metadata.{key}", f"is too long: {syntax.SUBDOMAIN_RULE}")
        for key in ("name", "generateName")
        if isinstance(metadata.get(key), str) and reading.name(metadata.get(key)) is None
    ]


def _spec(raw: Json, spec: type[Model], *, is_from_json: bool) -> list[Problem]:
    try:
        if not is_from_json:
            # All of it, since text that cannot be written cannot be read either, wherever it is;
            # and what can be does not nest too deep for what follows.
            orjson.dumps(raw)
        glance = _GLANCES.get(spec)
        if glance and glance.fits(raw):
            return []
        # Through text, because only there strict reading takes an enum by its value. Strict, as
        # the API server is: "3" is no number.
        spec.model_validate_json(orjson.dumps(_without_opaque(raw)), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return [_problem(detail) for detail in islice(details, MOST_FOUND)]
    except TypeError as error:
        # Nested without end, text that is not Unicode, a number without bounds.
        return [Problem("spec", f"cannot be read: {error}")]
    return []


def _without_opaque(raw: Json) -> Json:
    if isinstance(raw, dict):
        return {
            key: _emptied(value) if key in OPAQUE else _without_opaque(value)
            for key, value in islice(raw.items(), MOST_READ)
        }
    return [_without_opaque(item) for item in raw[:MOST_READ]] if isinstance(raw, list) else raw


def _emptied(raw: Json) -> Json:
    if isinstance(raw, list):
        return [{} if isinstance(item, dict) else item for item in raw[:MOST_READ]]
    return {} if isinstance(raw, dict) else raw


def _problem(detail: ErrorDetails) -> Problem:
    path = "spec" + "".join(_step(step) for step in detail["loc"])
    if detail["type"] == "missing":
        return Problem(path, "is required")
    if detail["type"] == "too_long":
        return Problem(path, f"holds too much: at most {detail['ctx']['max_length']} are taken")
    # The model library speaks of an input, which is no word of ours.
    message = detail["msg"].removeprefix("Input ")
    return Problem(path, message[:1].lower() + message[1:])


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.replace("_", "").isalnum() else f"[{step}]"
