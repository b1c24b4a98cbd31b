"""JSON as Python sees it, for the places where a model would get in the way."""

from typing import TypeAlias

from typing_extensions import TypeAliasType

# A named alias, since both mypy and pydantic must follow its recursion.
Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
JsonObject: TypeAlias = dict[str, Json]
