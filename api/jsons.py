"""JSON as Python sees it, for the places where a model would get in the way."""

from typing import TypeAlias

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]
