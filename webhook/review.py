"""AdmissionReview bytes to a Review, and an answer back to bytes."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

import msgspec
import orjson

from api.jsons import Json, JsonObject
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Code, Refuse

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# Objects of our kinds nest some twenty levels, the record of who owns which field included.
DEEPEST: Final = 64
LONGEST_UID: Final = 128
# The API server hands on warnings of at most 256 characters, and 4096 in all.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 8

_Container = JsonObject | list[Json]
_REASONS: Final = {
    Code.BAD_REQUEST: "BadRequest",
    Code.FORBIDDEN: "Forbidden",
    Code.INVALID: "Invalid",
    Code.INTERNAL: "InternalError",
}


@dataclass(frozen=True)
class Review:
    """A question the API server asks. The answer must carry the same uid."""

    uid: str
    request: Request


@dataclass(frozen=True)
class Unanswerable:
    """No review: there is no uid to answer to, so this can only be an HTTP error."""

    message: str


@dataclass(frozen=True)
class Unfit:
    """A review about an object that is not looked at; it can be answered, with a refusal."""

    uid: str
    message: str


class _Kind(msgspec.Struct):
    kind: str = ""


class _Asked(msgspec.Struct):
    uid: str
    operation: Operation
    kind: _Kind = msgspec.field(default_factory=_Kind)
    # Not decoded with the rest, so that an old object, often large, costs nothing.
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Asked


_DECODER: Final = msgspec.json.Decoder(_Envelope)


def read(body: bytes) -> Review | Unfit | Unanswerable:
    """Read a review; no bytes make it raise."""
    try:
        envelope = _DECODER.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Unanswerable(f"the body is not an AdmissionReview: {error}")
    if (envelope.api_version, envelope.kind) != (API_VERSION, KIND):
        return Unanswerable(f"only {KIND} of {API_VERSION} is understood")
    asked = envelope.request
    if not asked.uid.isprintable() or not 0 < len(asked.uid) <= LONGEST_UID:
        return Unanswerable(f"request.uid must be 1 to {LONGEST_UID} printable characters")
    found = _object(bytes(asked.object))
    if isinstance(found, str):
        return Unfit(asked.uid, found)
    return Review(asked.uid, Request(asked.operation, asked.kind.kind, found))


def _object(raw: bytes) -> JsonObject | str | None:
    """Give the new object (None where there is none), or what is wrong with it."""
    try:
        found = cast("Json", orjson.loads(raw))
    except ValueError as error:
        return f"the object is not JSON: {error}"
    if found is not None and not isinstance(found, dict):
        return "the object is not a JSON object"
    if deeper_than(DEEPEST, found):
        return f"the object nests more than {DEEPEST} levels deep"
    return found


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


def deeper_than(levels: int, value: Json) -> bool:
    """Tell whether lists and objects nest deeper than that, without nesting calls as deep."""
    layer = _containers([value])
    for _ in range(levels):
        if not layer:
            return False
        layer = [child for parent in layer for child in _containers(_children(parent))]
    return bool(layer)


def _containers(values: Iterable[Json]) -> list[_Container]:
    # Only what can have children of its own is looked at again.
    return [value for value in values if isinstance(value, dict | list)]


def _children(container: _Container) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container


def _shortened(warnings: tuple[str, ...]) -> list[str]:
    shown = [warning[:LONGEST_WARNING] for warning in warnings[:MOST_WARNINGS]]
    rest = len(warnings) - len(shown)
    if rest:
        shown[-1] = f"+{rest + 1} more"
    return shown
