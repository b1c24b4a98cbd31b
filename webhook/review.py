"""AdmissionReview bytes to a Review, and an answer back to bytes."""

import base64
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import msgspec
import orjson

from api.jsons import JsonObject
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Code, Refuse
from policies.problems import shortened
from webhook.nesting import Nesting

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# Objects of our kinds nest some twenty levels, the record of who owns which field included.
DEEPEST: Final = 64
# A set of 64 full cliques has some ten thousand.
MOST_VALUES: Final = 100_000
# What etcd stores of one object, 1.5 MiB unless told otherwise, and a third more.
LARGEST_OBJECT: Final = 2 * 1024 * 1024
LONGEST_UID: Final = 128
# The API server hands on warnings of at most 256 characters, and 4096 in all.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 8

# Reviews of nearly all objects, and far below what could hold an object that is too large.
_SMALL: Final = 128 * 1024
# A value takes a comma or a bracket beside itself, so nothing so short holds too many.
_FEW: Final = MOST_VALUES
_NESTING: Final = Nesting(DEEPEST)
_BLANKS: Final = b" \t\r\n"
_AS_LISTS: Final = bytes.maketrans(b"{}", b"[]")
_NO_MARKS: Final = bytes(sorted({*range(256)} - {*b'[]{},"'}))
_MANAGED_FIELDS: Final = "managedFields"
_RECORD: Final = f'"{_MANAGED_FIELDS}"'.encode()
_TOO_LARGE: Final = f"takes more than {LARGEST_OBJECT >> 20} MiB, which is more than can be stored"
_REASONS: Final = {
    Code.BAD_REQUEST: "BadRequest",
    Code.FORBIDDEN: "Forbidden",
    Code.INVALID: "Invalid",
    Code.INTERNAL: "InternalError",
    Code.UNAVAILABLE: "ServiceUnavailable",
}


@dataclass(frozen=True)
class Unanswerable:
    """No review: there is no uid to answer to, so this can only be an HTTP error."""

    message: str


@dataclass(frozen=True)
class Unfit:
    """An object that is not looked at, and why; the review can be answered, with a refusal."""

    message: str


class _Kind(msgspec.Struct):
    kind: str = ""
    group: str = ""
    version: str = ""


class _Resource(msgspec.Struct):
    resource: str = ""


class _UserInfo(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] | None = None
    uid: str = ""
    # Only its keys are looked at.
    extra: dict[str, msgspec.Raw] | None = None


# An object's fields, each still bytes.
_Parts = dict[str, msgspec.Raw]
_Part = msgspec.Raw | msgspec.UnsetType


class _Usual(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """An object with no other fields than those of the kinds that are asked about.

    Its metadata is taken apart in the same step: the record of who owns which field is half of most
    objects, and would have to be gone over once more to be left out.
    """

    metadata: _Parts
    api_version: _Part = msgspec.UNSET
    kind: _Part = msgspec.UNSET
    spec: _Part = msgspec.UNSET
    status: _Part = msgspec.UNSET
    data: _Part = msgspec.UNSET


class _Head(msgspec.Struct, rename="camel"):
    uid: str
    operation: Operation
    kind: _Kind = msgspec.field(default_factory=_Kind)
    resource: _Resource = msgspec.field(default_factory=_Resource)
    sub_resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)
    dry_run: bool | None = None


class _Asked(_Head, rename="camel"):
    object: _Parts | None = None
    old_object: _Parts | None = None


class _AskedAsUsual(_Head, rename="camel"):
    object: _Usual | None = None
    old_object: _Usual | None = None


@dataclass(frozen=True)
class Review:
    """A question the API server asks. The answer must carry the same uid.

    Its objects, often large, are still bytes, so that one that nobody gets to costs little. With a
    fault it has none, and only a refusal can answer it.
    """

    asked: _Head
    fault: str = ""
    parts: _Parts | _Usual | None = None
    old_parts: _Parts | _Usual | None = None

    @property
    def uid(self) -> str:
        """The name of the question."""
        return self.asked.uid

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored, whatever is answered."""
        return bool(self.asked.dry_run)

    def metadata(self) -> bytes:
        """Give the metadata of the object, as far as anybody reads it."""
        if isinstance(self.parts, _Usual):
            return msgspec.json.encode(self.parts.metadata)
        return bytes((self.parts or {}).get("metadata", b"{}"))

    def request(self, now: datetime | None = None) -> Request | Unfit:
        """Give what is asked, objects and all, and when."""
        if self.fault:
            return Unfit(self.fault)
        asked = self.asked
        try:
            new, old = _object("object", self.parts), _object("old object", self.old_parts)
        except _UnfitObjectError as error:
            return Unfit(str(error))
        return Request(
            asked.operation,
            asked.kind.kind,
            new,
            old,
            resource=asked.resource.resource,
            subresource=asked.sub_resource or "",
            namespace=asked.namespace or "",
            name=asked.name or "",
            user=User(asked.user_info.username, asked.user_info.groups or ()),
            dry_run=self.dry_run,
            now=now,
            is_from_json=True,
        )


class _Odd(_Head, rename="camel"):
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Asked


class _EnvelopeAsUsual(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _AskedAsUsual


class _OddEnvelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Odd


_USUAL_DECODER: Final = msgspec.json.Decoder(_EnvelopeAsUsual)
_DECODER: Final = msgspec.json.Decoder(_Envelope)
_ODD_DECODER: Final = msgspec.json.Decoder(_OddEnvelope)
_PARTS: Final = msgspec.json.Decoder(_Parts)


def read(body: bytes) -> Review | Unanswerable:
    """Read a review; no bytes make it raise."""
    try:
        envelope = _opened(body)
    except RecursionError as error:
        return _too_deep(body, error)
    except (msgspec.MsgspecError, ValueError) as error:
        return Unanswerable(f"the body is not an AdmissionReview: {error}")
    if (envelope.api_version, envelope.kind) != (API_VERSION, KIND):
        return Unanswerable(f"only {KIND} of {API_VERSION} is understood")
    uid = envelope.request.uid
    if not uid.isprintable() or not 0 < len(uid) <= LONGEST_UID:
        return Unanswerable(f"request.uid must be 1 to {LONGEST_UID} printable characters")
    asked = envelope.request
    if isinstance(asked, _Asked | _AskedAsUsual):
        return Review(asked, "", asked.object, asked.old_object)
    faults = (_oddity("object", asked.object), _oddity("old object", asked.old_object))
    return Review(asked, next(filter(None, faults), ""))


def _opened(body: bytes) -> _EnvelopeAsUsual | _Envelope | _OddEnvelope:
    if len(body) <= _SMALL:
        # What is larger must not be read in vain.
        with suppress(msgspec.MsgspecError, ValueError):
            return _USUAL_DECODER.decode(body)
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError:
        # An object that is none can be told of by name, if all else is there.
        return _ODD_DECODER.decode(body)


def _oddity(what: str, raw: msgspec.Raw) -> str:
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


def _too_deep(body: bytes, error: RecursionError) -> Review | Unanswerable:
    """Read what stands before the objects: an HTTP error would be a fault of ours to a person."""
    head, found, _ = body.partition(b',"object":')
    if not found:
        return Unanswerable(f"the body is not an AdmissionReview: {error}")
    asked = read(head + b"}}")
    if isinstance(asked, Unanswerable):
        return asked
    return Review(asked.asked, f"the object nests more than {DEEPEST} levels deep")


class _UnfitObjectError(Exception):
    """The message says what is wrong with an object."""


def _object(what: str, parts: _Parts | _Usual | None) -> JsonObject | None:
    """Give the object, or None where there is none.

    Its size is looked at first: reading what is too full takes longer than there is time for.
    """
    if parts is None:
        return None
    if isinstance(parts, _Usual):
        parts.metadata.pop(_MANAGED_FIELDS, None)
        text = msgspec.json.encode(parts)
    elif sum(map(len, parts.values())) > LARGEST_OBJECT:
        raise _UnfitObjectError(f"the {what} {_TOO_LARGE}")
    else:
        text = _without_record(parts)
    if len(text) <= _FEW:
        # What is wrong with anything else is told below.
        with suppress(ValueError):
            found = orjson.loads(text)
            if _NESTING.holds(found):
                return cast("JsonObject", found)
    if fault := size_fault(text, DEEPEST, MOST_VALUES):
        raise _UnfitObjectError(f"the {what} {fault}")
    try:
        return cast("JsonObject", orjson.loads(text))
    except ValueError as error:
        raise _UnfitObjectError(f"the {what} is not JSON: {error}") from error


def _without_record(parts: _Parts) -> bytes:
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


def write(uid: str, answer: Answer) -> bytes:
    """Write the reply to the review with that uid."""
    response: JsonObject = {"uid": uid}
    match answer:
        case Allow(patch, warnings):
            response["allowed"] = True
            if patch:
                response["patchType"] = "JSONPatch"
                response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
            if warnings:
                response["warnings"] = [*_shortened(warnings)]
        case Refuse(code, message):
            response["allowed"] = False
            response["status"] = {
                "status": "Failure",
                "code": int(code),
                "reason": _REASONS[code],
                "message": message,
            }
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


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


def _shortened(warnings: tuple[str, ...]) -> list[str]:
    shown = [shortened(each, LONGEST_WARNING) for each in warnings[:MOST_WARNINGS]]
    rest = len(warnings) - len(shown)
    if rest:
        shown[-1] = f"+{rest + 1} more"
    return shown
