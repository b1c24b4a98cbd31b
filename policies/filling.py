"""Raw JSON with what was left out filled in, and the JSON Patch operations that do the same.

Trusts no type: what is of another one is left as it is, for the rules to refuse. Parts that need
nothing are shared with what was there, and nothing is ever changed in its place.
"""

import operator
from collections.abc import Callable

import msgspec

from api.cliques import MAX_CLIQUES
from api.jsons import Json, JsonObject

Patch = list[JsonObject]
Fill = Callable[[JsonObject, str, Patch], JsonObject]


class Filled(msgspec.Struct, frozen=True):
    """An object with nothing left out, and the operations that make it of what was written."""

    object: JsonObject
    patch: tuple[JsonObject, ...]


def inside(holder: JsonObject, key: str, path: str, patch: Patch, fill: Fill) -> JsonObject:
    """Fill in one field of an object, if there is an object in it."""
    inner = holder.get(key)
    if not isinstance(inner, dict):
        return holder
    filled = fill(inner, f"{path}/{key}", patch)
    return holder if filled is inner else {**holder, key: filled}


def each(
    holder: JsonObject, key: str, path: str, patch: Patch, fill: Fill, most: int = MAX_CLIQUES
) -> JsonObject:
    """Fill in each object in a list, unless there are more than are taken."""
    inner = holder.get(key)
    if not isinstance(inner, list) or len(inner) > most:
        return holder
    filled: list[Json] = [
        fill(item, f"{path}/{key}/{i}", patch) if isinstance(item, dict) else item
        for i, item in enumerate(inner)
    ]
    same = all(map(operator.is_, filled, inner))
    return holder if same else {**holder, key: filled}


def put(holder: JsonObject, path: str, patch: Patch, values: JsonObject) -> JsonObject:
    """Set fields. `add` also replaces what is there, if only as nothing."""
    if not values:
        return holder
    for key, value in values.items():
        pointer = key.replace("~", "~0").replace("/", "~1")
        patch.append({"op": "add", "path": f"{path}/{pointer}", "value": value})
    return {**holder, **values}


def put_within(
    holder: JsonObject, key: str, path: str, patch: Patch, values: JsonObject
) -> JsonObject:
    """Set fields of an object in a field, which is made if it is not there."""
    if not values:
        return holder
    inner = holder.get(key)
    if inner is None:
        return put(holder, path, patch, {key: values})
    if not isinstance(inner, dict):
        return holder
    return {**holder, key: put(inner, f"{path}/{key}", patch, values)}


def absent(holder: JsonObject, **defaults: Json) -> JsonObject:
    """Give what of these the object leaves out."""
    return {key: defaults[key] for key in defaults if holder.get(key) is None}
