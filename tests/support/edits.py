"""Changes of a manifest by field path, and what of one manifest is found in another."""

import copy
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from api.jsons import Json, JsonObject

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


class Absence(Enum):
    """Stands where an edit takes something out, or where nothing may be found."""

    GONE = "gone"


GONE: Final = Absence.GONE
Edits: TypeAlias = Mapping[str, Json | Absence]


def edited(base: JsonObject, edits: Edits) -> JsonObject:
    """A copy of the manifest with the value at each path put in, or taken out.

    A path is spelled as in messages; `[key]` is an index of a list or a key with dots in it. An
    index one past the end appends, and objects on the way are made where there are none.
    """
    made = copy.deepcopy(base)
    for path, value in edits.items():
        _put(made, steps(path), value)
    return made


def at(found: Json, path: str) -> Json | Absence:
    """The value at a path, or that there is none."""
    for step in steps(path):
        inside = (
            _mapped(found).get(step, GONE)
            if isinstance(step, str)
            else dict(enumerate(_listed(found))).get(step, GONE)
        )
        if isinstance(inside, Absence):
            return GONE
        found = inside
    return found


def steps(path: str) -> list[str | int]:
    """A path's keys and indices."""
    return [
        match[1] or (int(match[2]) if match[2].isdigit() else match[2])
        for match in _STEP.finditer(path)
    ]


def lost(sent: Json, found: Json, path: str = "") -> list[str]:
    """The paths whose value in `sent` is not the one in `found`; more in `found` is no loss."""
    if isinstance(sent, dict) and isinstance(found, dict):
        here = f"{path}." if path else ""
        return [
            gone
            for key, value in sent.items()
            for gone in (lost(value, found[key], here + key) if key in found else [here + key])
        ]
    if isinstance(sent, list) and isinstance(found, list) and len(sent) == len(found):
        pairs = zip(sent, found, strict=True)
        return [gone for i, (a, b) in enumerate(pairs) for gone in lost(a, b, f"{path}[{i}]")]
    return [] if sent == found and isinstance(sent, bool) == isinstance(found, bool) else [path]


def _listed(found: Json) -> list[Json]:
    return found if isinstance(found, list) else []


def _mapped(found: Json) -> JsonObject:
    return found if isinstance(found, dict) else {}


def _put(found: Json, way: list[str | int], value: Json | Absence) -> None:
    *parents, last = way
    for step, after in zip(parents, way[1:], strict=True):
        found = _child(found, step, [] if isinstance(after, int) else {})
    if isinstance(found, list) and isinstance(last, int):
        if value is GONE:
            del found[last]
        else:
            found[last : last + 1] = [copy.deepcopy(value)]
    elif isinstance(found, dict) and isinstance(last, str):
        if value is GONE:
            del found[last]
        else:
            found[last] = copy.deepcopy(value)
    else:
        raise TypeError(f"no {last!r} in {found!r}")


def _child(found: Json, step: str | int, otherwise: Json) -> Json:
    if isinstance(found, list) and isinstance(step, int):
        if step == len(found):
            found.append(otherwise)
        return found[step]
    assert isinstance(found, dict)
    assert isinstance(step, str)
    return found.setdefault(step, otherwise)
