"""From the bytes of a watch to events: lines first, then what each line says."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from kube.errors import ApiError, Unreachable, from_event


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Bookmarked(msgspec.Struct):
    metadata: _Meta


@dataclass(frozen=True)
class Present:
    """The object is there, as in `body`: it was added or changed."""

    body: msgspec.Raw


@dataclass(frozen=True)
class Absent:
    """The object is gone, or has left the selector; `body` carries its last resourceVersion."""

    body: msgspec.Raw


@dataclass(frozen=True)
class Bookmark:
    """Everything up to this resourceVersion has been sent."""

    resource_version: str


@dataclass(frozen=True)
class Failed:
    """The server ends the watch and says why."""

    error: ApiError


StreamEvent: TypeAlias = Present | Absent | Bookmark | Failed

_event = msgspec.json.Decoder(_Event)
_bookmarked = msgspec.json.Decoder(_Bookmarked)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the whole lines in `chunks`, of any length; an unfinished last one is dropped."""
    begun: list[bytes] = []
    async for chunk in chunks:
        *ends, tail = chunk.split(b"\n")
        for end in ends:
            begun.append(end)
            line = b"".join(begun)
            begun.clear()
            if line:
                yield line
        if tail:
            begun.append(tail)


def read_event(line: bytes) -> StreamEvent:
    """Return what one line of a watch says.

    A line that is no event means that the stream can no longer be trusted: that is Unreachable, so
    that the watch is opened again where it stood.
    """
    try:
        event = _event.decode(line)
        match event.type:
            case "ADDED" | "MODIFIED":
                return Present(event.object)
            case "DELETED":
                return Absent(event.object)
            case "BOOKMARK":
                return Bookmark(_bookmarked.decode(event.object).metadata.resource_version)
            case "ERROR":
                return Failed(from_event(bytes(event.object)))
            case other:
                raise Unreachable(f"the watch sent an event of the unknown type {other!r}")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"the watch sent a line that is no event: {error}") from error
