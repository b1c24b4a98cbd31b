"""Raw JSON read as far as it can be: what is of another type counts as left out.

Rules read through these, so that they never trip over a manifest; that a type is wrong is told by
`policies.parsing` alone.
"""

from typing import Final

from api.jsons import Json, JsonObject
from policies import syntax

# Far more things than are taken of anything that has a name, so that too many cost little.
MOST_NAMED: Final = 2_000
# Two things that differ in more places than this are not the same for being spelled differently.
_MOST_COMPARED: Final = 20_000

_NOTHING: Final[JsonObject] = {}
_NONE: Final[list[Json]] = []


def mapping(value: Json) -> JsonObject:
    """Give the object, or an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: Json) -> list[Json]:
    """Give the list, or an empty one."""
    return value if isinstance(value, list) else _NONE


def text(value: Json) -> str | None:
    """Give the text, or None."""
    return value if isinstance(value, str) else None


def number(value: Json) -> int | None:
    """Give the whole number, or None."""
    return value if type(value) is int else None


def name(value: Json) -> str | None:
    """Give the text if it can name something, or None: no name is longer, and messages repeat it.

    Like a wrong type, that it is too long is told by `policies.parsing`.
    """
    return value if isinstance(value, str) and len(value) <= syntax.LONGEST_NAME else None


def listed(value: Json, most: int) -> list[tuple[int, str]]:
    """Give the names among the first things of a list, with their places in it."""
    if not isinstance(value, list):
        return []
    # As `name` reads them, spelled out here as in `names`.
    return [
        (i, item)
        for i, item in enumerate(value[:most])
        if isinstance(item, str) and len(item) <= syntax.LONGEST_NAME
    ]


def names(value: Json) -> list[str | None]:
    """Give the name of each thing in a list, up to the first that are far too many."""
    if not isinstance(value, list):
        return []
    # As `name` reads them, spelled out here: half of all names are read by this line.
    return [
        found
        if isinstance(item, dict)
        and isinstance(found := item.get("name"), str)
        and len(found) <= syntax.LONGEST_NAME
        else None
        for item in value[:MOST_NAMED]
    ]


def alike(left: Json, right: Json) -> bool:
    """Tell whether both mean the same: empty and left out do, for people and for Kubernetes."""
    try:
        if left == right:
            return True
    except RecursionError:
        # Deeper than anything that is accepted; then it does not matter what this says.
        return False
    pairs = [(left, right)]
    looked_at = 0
    while pairs:
        inside = _inside(*map(_plain, pairs.pop()))
        if inside is None or looked_at > _MOST_COMPARED:
            return False
        looked_at += 1 + len(inside)
        pairs += inside
    return True


def _plain(value: Json) -> Json:
    return None if value in ("", {}, []) else value


def _inside(one: Json, other: Json) -> list[tuple[Json, Json]] | None:
    """Give what in them must be alike in turn, or None if they differ whatever that is."""
    if isinstance(one, dict | None) and isinstance(other, dict | None):
        one, other = one or {}, other or {}
        if len(one) + len(other) > _MOST_COMPARED:
            return None
        return [(one.get(key), other.get(key)) for key in one.keys() | other.keys()]
    if isinstance(one, list) and isinstance(other, list):
        fits = len(one) == len(other) <= _MOST_COMPARED
        return [*zip(one, other, strict=True)] if fits else None
    return [] if one == other else None
