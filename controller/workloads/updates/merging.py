"""The merge patch that makes one object of another. Pure."""

from api.jsons import Json, JsonObject


def patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Write what is new or other, and null for what is gone; empty if nothing is."""
    found: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            found[key] = value
        elif (before := old[key]) != value or type(before) is not type(value):
            found[key] = _changed(before, value)
    return found


def _changed(old: Json, new: Json) -> Json:
    return patch(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
