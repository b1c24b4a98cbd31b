"""An API server's audit log as writes, in the order in which they happened.

Whatever carries a resourceVersion is ordered by it: it is a revision of etcd, one count for all
kinds. An answer without one (of a binding, or of the deletion of a custom resource) is put where
the clock says.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec

from api.jsons import JsonObject

_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_INSTANCE: Final = re.compile(r"penstock/\w+ \((.+)\)")
_BEGIN: Final = b'{"kind":"Event"'
UNKNOWN: Final = frozenset({0, 499, 500, 502, 503, 504})
"""Answers after which nobody knows whether the write happened."""


class _Named(msgspec.Struct, frozen=True):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    verb: str = ""
    user: _User = _User()
    user_agent: str = ""
    object_ref: _Named = _Named()
    response_status: _Answer = _Answer()
    request_object: msgspec.Raw = msgspec.Raw(b"null")
    response_object: msgspec.Raw = msgspec.Raw(b"null")
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    request_uri: str = msgspec.field(name="requestURI", default="")


@dataclass(frozen=True)
class Write:
    """One object as a write left it.

    `body` is the object as answered, or the Binding of a `pods/binding`. `known` is false where
    nobody can tell from the answer whether it happened; there is no body then.
    """

    revision: int
    at: float  # seconds since the epoch, when it was answered
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    body: JsonObject
    instance: str = ""  # of a controller of ours, as its lease names it
    subresource: str = ""
    gone: bool = False
    known: bool = True
    asked: bytes = b""  # the request's body

    @property
    def key(self) -> tuple[str, str, str]:
        """Which object it is about."""
        return self.resource, self.namespace, self.name


@dataclass(frozen=True)
class Log:
    """What a log says: all writes, and when the API server was started anew."""

    writes: tuple[Write, ...]
    starts: tuple[float, ...]


def read(lines: Iterable[bytes]) -> Log:
    """Read a log. A killed API server may leave half a line, which is passed over."""
    decoder = msgspec.json.Decoder(_Event)
    found: list[_Found] = []
    starts: list[float] = []
    for line in _whole(lines):
        try:
            event = decoder.decode(line)
        except msgspec.DecodeError:
            continue
        if _is_start(event):
            starts.append(_seconds(event.request_received_timestamp))
        found += _writes(event)
    return Log(tuple(_ordered(found)), tuple(sorted(starts)))


def within(log: Log, spaces: Collection[str]) -> Log:
    """Leave out what is in other namespaces, but for leases."""
    kept = [w for w in log.writes if w.namespace in (*spaces, "") or w.resource == "leases"]
    return replace(log, writes=tuple(kept))


def _whole(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Split off half a line, with no end, that stands before the first line of a new process."""
    for line in lines:
        at = line.find(_BEGIN, 1)
        yield line[at:] if at > 0 else line


def _is_start(event: _Event) -> bool:
    """Whether a new API server is looking whether what it needs is there."""
    ref = event.object_ref
    ours = event.user.username == "system:apiserver" and event.verb == "get"
    return ours and (ref.resource, ref.name) == ("priorityclasses", "system-node-critical")


@dataclass(frozen=True)
class _Found:
    """A write and when it was asked for; its revision is 0 where the answer does not say it."""

    write: Write
    begun: float


def _writes(event: _Event) -> Iterator[_Found]:
    if event.verb not in _WRITES or "dryRun=" in event.request_uri:
        return
    code = event.response_status.code
    if code >= 400 and code not in UNKNOWN:
        return
    known = 200 <= code < 400
    body = _object(event.response_object) if known else {}
    items = body.get("items") if event.verb == "deletecollection" else None
    for each in items if isinstance(items, list) else [body]:
        if isinstance(each, dict):
            write = _write(event, each, known=known)
            yield _Found(write, _seconds(event.request_received_timestamp))


def _write(event: _Event, body: JsonObject, *, known: bool) -> Write:
    ref, meta = event.object_ref, part(body, "metadata")
    is_status = body.get("kind") == "Status"
    version = "" if is_status else str(meta.get("resourceVersion") or "")
    if ref.subresource == "binding":
        body, version = _object(event.request_object), ""
    deleting = event.verb in ("delete", "deletecollection")
    gone = known and deleting and (is_status or not body or not _lingers(meta))
    if known and not deleting and meta.get("deletionTimestamp") and not _lingers(meta):
        # A write to what has no grace left ends it, and answers with the revision from before.
        gone, version = True, ""
    instance = _INSTANCE.fullmatch(event.user_agent)
    return Write(
        int(version or 0),
        _seconds(event.stage_timestamp),
        event.user.username,
        event.verb,
        ref.resource,
        ref.namespace or str(meta.get("namespace") or ""),
        ref.name or str(meta.get("name") or ""),
        body,
        instance[1] if instance else "",
        ref.subresource,
        gone=gone,
        known=known,
        asked=bytes(event.request_object),
    )


def _lingers(meta: JsonObject) -> bool:
    """Whether what was deleted is still there: in its grace period, or held by finalizers."""
    if meta.get("finalizers"):
        return True
    return bool(meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds"))


def _ordered(found: list[_Found]) -> list[Write]:
    """Put what has no revision behind all that was answered before it.

    What is gone counts from when that was asked for: nobody can know it sooner.
    """
    with_revision = sorted((e.write.at, e.write.revision) for e in found if e.write.revision)
    times = [at for at, _ in with_revision]
    highest = [0]
    for _, revision in with_revision:
        highest.append(max(revision, highest[-1]))
    keyed = []
    for number, each in enumerate(found):
        write, late = each.write, not each.write.revision
        if late:
            instant = each.begun if write.gone else write.at
            write = replace(write, revision=highest[bisect_right(times, instant)])
        keyed.append((write.revision, late, write.at, number, write))
    return [key[-1] for key in sorted(keyed, key=lambda key: key[:4])]


def _object(raw: msgspec.Raw) -> JsonObject:
    decoded: object = msgspec.json.decode(raw)
    return decoded if isinstance(decoded, dict) else {}


def part(body: JsonObject, name: str) -> JsonObject:
    """Give an object inside an object, empty if there is none."""
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
