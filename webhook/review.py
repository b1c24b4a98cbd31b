"""AdmissionReview bytes to a Review, and an answer back to bytes."""

import base64
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import orjson

from api.jsons import JsonObject
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Code, Refuse
from policies.problems import shortened
from webhook import contents
from webhook.contents import FEW, Ahead, Parts, UnfitObjectError, Usual

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
LONGEST_UID: Final = 128
# The API server hands on warnings of at most 256 characters, and 4096 in all.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 8

# Reviews of nearly all objects, and far below what could hold an object that is too large.
_SMALL: Final = 128 * 1024
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
    object: Parts | None = None
    old_object: Parts | None = None


class _AskedAsUsual(_Head, rename="camel"):
    object: Usual | None = None
    old_object: Usual | None = None


class _AskedAhead(_Head, rename="camel"):
    object: Ahead | None = None
    old_object: Ahead | None = None


class Review(msgspec.Struct, frozen=True):
    """A question the API server asks. The answer must carry the same uid.

    Its objects are bytes, which take a sixth of the memory: who hears of an answer may keep it.
    """

    asked: _Head
    body: bytes

    @property
    def uid(self) -> str:
        """The name of the question."""
        return self.asked.uid

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored, whatever is answered."""
        return bool(self.asked.dry_run)

    def metadata(self) -> bytes | None:
        """Give the metadata of the object, None where there is no object."""
        found = _METADATA_DECODER.decode(self.body).request.object
        return None if found is None else bytes(found.metadata)

    def request(self, now: datetime | None = None) -> Request | Unfit:
        """Give what is asked, objects and all, and when; all of it is read anew."""
        found = opened(self.body)
        return Unfit(found.message) if isinstance(found, Unanswerable) else found.request(now)


class Opened(msgspec.Struct, frozen=True):
    """A review with its objects, for whoever judges it.

    Large ones are still bytes, so that one that nobody gets to costs little. With a fault it has
    none, and only a refusal can answer it.
    """

    review: Review
    fault: str = ""
    objects: "tuple[JsonObject | None, JsonObject | None] | None" = None
    """The new one and the old one, if they were read ahead."""
    parts: Parts | Usual | None = None
    old_parts: Parts | Usual | None = None

    def request(self, now: datetime | None = None) -> Request | Unfit:
        """Give what is asked, objects and all, and when."""
        if self.fault:
            return Unfit(self.fault)
        asked = self.review.asked
        try:
            new, old = self.objects or (
                contents.read("object", self.parts),
                contents.read("old object", self.old_parts),
            )
        except UnfitObjectError as error:
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
            dry_run=self.review.dry_run,
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


class _EnvelopeAhead(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _AskedAhead


class _OddEnvelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Odd


class _WithMetadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _AskedOfMetadata(msgspec.Struct):
    object: _WithMetadata | None = None


class _EnvelopeOfMetadata(msgspec.Struct):
    request: _AskedOfMetadata


_Envelopes = _EnvelopeAhead | _EnvelopeAsUsual | _Envelope | _OddEnvelope

_AHEAD_DECODER: Final = msgspec.json.Decoder(_EnvelopeAhead)
_USUAL_DECODER: Final = msgspec.json.Decoder(_EnvelopeAsUsual)
_DECODER: Final = msgspec.json.Decoder(_Envelope)
_ODD_DECODER: Final = msgspec.json.Decoder(_OddEnvelope)
_METADATA_DECODER: Final = msgspec.json.Decoder(_EnvelopeOfMetadata)


def read(body: bytes) -> Review | Unanswerable:
    """Read a review; no bytes make it raise."""
    found = opened(body)
    return found if isinstance(found, Unanswerable) else found.review


def opened(body: bytes) -> Opened | Unanswerable:
    """Read a review, and its objects too if they are small; no bytes make it raise."""
    # Nearly all are small, and what is larger must not be read in vain.
    if len(body) <= FEW:
        # What is wrong with anything else is told below.
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            envelope = _AHEAD_DECODER.decode(body)
            asked = envelope.request
            objects = contents.whole(asked.object), contents.whole(asked.old_object)
            asked.object = asked.old_object = None
            return _unanswerable(envelope) or Opened(Review(asked, body), objects=objects)
    return _opened_by_parts(body)


def _opened_by_parts(body: bytes) -> Opened | Unanswerable:
    try:
        envelope = _taken_apart(body)
    except RecursionError as error:
        return _too_deep(body, error)
    except (msgspec.MsgspecError, ValueError) as error:
        return Unanswerable(f"the body is not an AdmissionReview: {error}")
    if unanswerable := _unanswerable(envelope):
        return unanswerable
    asked = envelope.request
    review = Review(asked, body)
    if isinstance(asked, _Asked | _AskedAsUsual):
        found = Opened(review, parts=asked.object, old_parts=asked.old_object)
        asked.object = asked.old_object = None
        return found
    faults = (
        contents.oddity("object", asked.object),
        contents.oddity("old object", asked.old_object),
    )
    return Opened(review, next(filter(None, faults), ""))


def _unanswerable(envelope: _Envelopes) -> Unanswerable | None:
    if (envelope.api_version, envelope.kind) != (API_VERSION, KIND):
        return Unanswerable(f"only {KIND} of {API_VERSION} is understood")
    uid = envelope.request.uid
    if not uid.isprintable() or not 0 < len(uid) <= LONGEST_UID:
        return Unanswerable(f"request.uid must be 1 to {LONGEST_UID} printable characters")
    return None


def _taken_apart(body: bytes) -> _EnvelopeAsUsual | _Envelope | _OddEnvelope:
    if len(body) <= _SMALL:
        # What is larger must not be read in vain.
        with suppress(msgspec.MsgspecError, ValueError):
            return _USUAL_DECODER.decode(body)
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError:
        # An object that is none can be told of by name, if all else is there.
        return _ODD_DECODER.decode(body)


def _too_deep(body: bytes, error: RecursionError) -> Opened | Unanswerable:
    """Read what stands before the objects: an HTTP error would be a fault of ours to a person."""
    head, found, _ = body.partition(b',"object":')
    if not found:
        return Unanswerable(f"the body is not an AdmissionReview: {error}")
    asked = read(head + b"}}")
    if isinstance(asked, Unanswerable):
        return asked
    review = Review(asked.asked, body)
    return Opened(review, f"the object nests more than {contents.DEEPEST} levels deep")


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


def _shortened(warnings: tuple[str, ...]) -> list[str]:
    shown = [shortened(each, LONGEST_WARNING) for each in warnings[:MOST_WARNINGS]]
    rest = len(warnings) - len(shown)
    if rest:
        shown[-1] = f"+{rest + 1} more"
    return shown
