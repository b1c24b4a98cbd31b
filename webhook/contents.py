"""The objects of a review: from their text to what rules judge, or to what is wrong with them."""

from contextlib import suppress
from typing import Final, cast

import msgspec
import orjson

from api.jsons import JsonObject
from webhook.nesting import Nesting

# Objects of our kinds nest some twenty levels, the record of who owns which field included.
DEEPEST: Final = 64
# A set of 64 full cliques has some ten thousand.
MOST_VALUES: Final = 100_000
# What etcd stores of one object, 1.5 MiB unless told otherwise, and a third more.
LARGEST_OBJECT: Final = 2 * 1024 * 1024
# A value takes a comma or a bracket beside itself, so nothing so short holds too many.
FEW: Final = MOST_VALUES

_NESTING: Final = Nesting(DEEPEST)
_BLANKS: Final = b" \t\r\n"
_AS_LISTS: Final = bytes.maketrans(b"{}", b"[]")
_NO_MARKS: Final = bytes(sorted({*range(256)} - {*b'[]{},"'}))
_MANAGED_FIELDS: Final = "managedFields"
_RECORD: Final = f'"{_MANAGED_FIELDS}"'.encode()
_TOO_LARGE: Final = f"takes more than {LARGEST_OBJECT >> 20} MiB, which is more than can be stored"

# An object's fields, each still bytes.
Parts = dict[str, msgspec.Raw]
_Part = msgspec.Raw | msgspec.UnsetType


class Usual(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """An object with no other fields than those of the kinds that are asked about.

    Its metadata is taken apart in the same step: the record of who owns which field is half of most
    objects, and would have to be gone over once more to be left out.
    """

    metadata: Parts
    api_version: _Part = msgspec.UNSET
    kind: _Part = msgspec.UNSET
    spec: _Part = msgspec.UNSET
    status: _Part = msgspec.UNSET
    data: _Part = msgspec.UNSET


class Ahead(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The same, read as the review is: to skip what is read later takes a quarter of reading it."""

    metadata: Parts
    api_version: object = msgspec.UNSET
    kind: object = msgspec.UNSET
    spec: object = msgspec.UNSET
    status: object = msgspec.UNSET
    data: object = msgspec.UNSET


_PARTS: Final = msgspec.json.Decoder(Parts)
# Takes a fifth less time than orjson, and differs from it in depths and in numbers too large for
# 64 bits, neither of which can be written again.
_PLAIN: Final = msgspec.json.Decoder()


class UnfitObjectError(Exception):
    """The message says what is wrong with an object."""


def whole(found: Ahead | None) -> JsonObject | None:
    """Give an object that was read ahead, or None where there is none.

    Raises ValueError if its text has to be looked at.
    """
    if found is None:
        return None
    found.metadata.pop(_MANAGED_FIELDS, None)
    written = (
        ("metadata", _PLAIN.decode(msgspec.json.encode(found.metadata))),
        ("apiVersion", found.api_version),
        ("kind", found.kind),
        ("spec", found.spec),
        ("status", found.status),
        ("data", found.data),
    )
    made = {key: value for key, value in written if value is not msgspec.UNSET}
    read = cast("JsonObject", made)
    if not _NESTING.holds(read):
        raise ValueError("cannot be written again")
    return read


def read(what: str, parts: Parts | Usual | None) -> JsonObject | None:
    """Give the object, or None where there is none.

    Its size is looked at first: reading what is too full takes longer than there is time for.
    """
    if parts is None:
        return None
    if isinstance(parts, Usual):
        parts.metadata.pop(_MANAGED_FIELDS, None)
        text = msgspec.json.encode(parts)
    elif sum(map(len, parts.values())) > LARGEST_OBJECT:
        raise UnfitObjectError(f"the {what} {_TOO_LARGE}")
    else:
        text = _without_record(parts)
    if len(text) <= FEW:
        # What is wrong with anything else is told below.
        with suppress(ValueError, RecursionError):
            found = _PLAIN.decode(text)
            if _NESTING.holds(found):
                return cast("JsonObject", found)
    if fault := size_fault(text, DEEPEST, MOST_VALUES):
        raise UnfitObjectError(f"the {what} {fault}")
    try:
        return cast("JsonObject", orjson.loads(text))
    except ValueError as error:
        raise UnfitObjectError(f"the {what} is not JSON: {error}") from error


def _without_record(parts: Parts) -> bytes:
    """Put an object's fields together again, without the record of who owns which of them.

    That is half of most objects, and there is no rule about it.
    """
    metadata = parts.get("metadata")
    if metadata is None or _RECORD not in memoryview(metadata).tobytes():
        return msgspec.json.encode(parts)
    try:
        kept = _PARTS.decode(metadata)
    except (msgspec.MsgspecError, ValueError):
        # Whoever reads all of it says what is wrong.
        return msgspec.json.encode(parts)
    kept.pop(_MANAGED_FIELDS, None)
    return msgspec.json.encode({**parts, "metadata": kept})


def oddity(what: str, raw: msgspec.Raw) -> str:
    """Say what is wrong with what should be an object; empty if it is one, or none is there."""
    text = bytes(raw)
    if text[:1] in (b"{", b"n"):
        return ""
    if fault := size_fault(text, DEEPEST, MOST_VALUES):
        return f"the {what} {fault}"
    try:
        orjson.loads(text)
    except ValueError as error:
        return f"the {what} is not JSON: {error}"
    return f"the {what} is not a JSON object"


def size_fault(text: bytes, levels: int, most: int) -> str:
    """Say what of an object's text is too large, holds too many values or nests too deep.

    Empty if nothing is. Only bytes are counted, and in few steps: nothing is made of the text, and
    no depth nests calls as deep. Text that is no JSON may be taken for any size.
    """
    if len(text) > LARGEST_OBJECT:
        return _TOO_LARGE
    opened = text.count(b"[") + text.count(b"{")
    # Strings may hold brackets and commas too, so these say no more than that there is no fault.
    full, deep = opened + text.count(b",") > most, opened > levels
    if not full and not deep:
        return ""
    if b"\\" in text:
        # Only strings hold any. Without the escaped ones, each quote begins a string or ends one.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes side by side end a string and begin one, or the other way around: without them,
    # what is inside of strings stays inside.
    marks = text.translate(None, _NO_MARKS).replace(b'""', b"")
    if full and _values(text, marks, most) > most:
        return f"holds more than {most} values"
    return f"nests more than {levels} levels deep" if deep and _is_deeper(marks, levels) else ""


def _values(text: bytes, marks: bytes, most: int) -> int:
    """Count the values in all lists and objects of a text without escapes."""
    outside = text
    if b'"' in marks:
        # Some string holds what looks like more than a string.
        if text.count(b'"') > 4 * most + 2:
            # Each value is one string at most, and its key another; the whole may be one too.
            return most + 1
        outside = b'"'.join(text.split(b'"')[::2])
    outside = outside.translate(None, _BLANKS)
    full = sum(map(outside.count, (b"[", b"{"))) - sum(map(outside.count, (b"[]", b"{}")))
    return outside.count(b",") + full


def _is_deeper(marks: bytes, levels: int) -> bool:
    brackets = b"".join(marks.split(b'"')[::2]).translate(_AS_LISTS, b",")
    for _ in range(levels):
        # The innermost ones go, and those around them are innermost next.
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)
