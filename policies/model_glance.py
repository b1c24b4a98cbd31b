"""Models as msgspec reads them: a quick look at an object that fits, as nearly all do.

What passes here fits the model. What does not may fit it all the same, and is for the model itself
to judge, which says what is wrong.
"""

from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, Union, get_args, get_origin

import msgspec
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from api.jsons import Json
from api.models import Model

_PLAIN: Final = frozenset((bool, int, str))
_BOUNDS: Final = ("ge", "le", "min_length", "max_length")
# What null alone fits: everything else is left to the model.
_UNKNOWN: Final = NoneType


class Glance:
    """Tells at a glance that an object fits a model; False may mean either."""

    def __init__(self, model: type[Model]) -> None:
        self._struct = None if _has_checks(model) else _struct(model)
        # msgspec finds out about a type when it is first used. Two threads that both do so can
        # crash.
        self.fits({})

    def fits(self, raw: Json) -> bool:
        """Look at an object as JSON gives it."""
        if self._struct is None:
            return False
        try:
            msgspec.convert(raw, self._struct)
        except (msgspec.ValidationError, UnicodeError, RecursionError):
            return False
        return True


def _has_checks(model: type[Model]) -> bool:
    """Tell whether the model checks more than its fields say."""
    found = model.__pydantic_decorators__
    return bool(found.validators or found.field_validators or found.model_validators)


@cache
def _struct(model: type[Model]) -> type[msgspec.Struct]:
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for name, info in model.model_fields.items():
        alias = info.alias or name
        kind = _kind(info.annotation, tuple(info.metadata))
        fields.append((alias, kind) if info.is_required() else (alias, kind, None))
    return msgspec.defstruct(model.__name__, fields, kw_only=True)


def _kind(annotation: object, about: tuple[object, ...] = ()) -> object:
    """Give what msgspec reads a field by. It may be stricter than the model, never more lenient."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _kind(inner, (*_flat(more), *about))
    if get_origin(annotation) in (Union, UnionType):
        return _optional(get_args(annotation), about)
    bounds = _bounds(about)
    if bounds is None:
        return _UNKNOWN
    kind = _unbound(annotation)
    if not bounds or kind is _UNKNOWN:
        return kind
    return Annotated[kind, msgspec.Meta(**bounds)]  # type: ignore[call-overload]  # made at run time


def _optional(members: tuple[object, ...], about: tuple[object, ...]) -> object:
    others = [each for each in members if each is not NoneType]
    if len(others) == len(members) or len(others) > 1:
        return _UNKNOWN
    return Union[_kind(others[0], about), None]  # noqa: UP007 - made at run time


def _unbound(annotation: object) -> object:
    origin, inside = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN or annotation is NoneType:
        return annotation
    if isinstance(annotation, type) and origin is None:
        if issubclass(annotation, Model):
            return _UNKNOWN if _has_checks(annotation) else _struct(annotation)
        return annotation if issubclass(annotation, Enum) else _UNKNOWN
    if origin is list:
        return list[_kind(inside[0])]  # type: ignore[misc]  # made at run time
    if origin is dict:
        # An object of anything is looked at no further.
        anything = isinstance(inside[1], TypeAliasType)
        return dict if anything else dict[str, _kind(inside[1])]  # type: ignore[misc]  # made at run time
    return _UNKNOWN


def _flat(about: list[object]) -> tuple[object, ...]:
    return tuple(
        each
        for item in about
        for each in (item.metadata if isinstance(item, FieldInfo) else (item,))
    )


def _bounds(about: tuple[object, ...]) -> dict[str, int | str] | None:
    """Give the bounds in msgspec's words; None if there is one that it has no word for."""
    found: dict[str, int | str] = {}
    for each in about:
        said = {word: getattr(each, word) for word in _BOUNDS if hasattr(each, word)}
        pattern = getattr(each, "pattern", None)
        if isinstance(pattern, str) and pattern.endswith("$"):
            # Python's $ also matches before a line's end.
            said["pattern"] = rf"{pattern[:-1]}\Z"
        if not said:
            return None
        found |= said
    return found
