"""What can go wrong between us and the API server, one type for each way to answer it."""
# Each name is what the API server calls the failure; an -Error on every one would say nothing.
# ruff: noqa: N818

import msgspec

LONGEST_MESSAGE = 1000  # characters of an answer that are worth showing to somebody

TOO_LARGE_VERSION = "ResourceVersionTooLarge"


class Cause(msgspec.Struct, frozen=True):
    """One of the reasons inside a Status: which field, and what is wrong with it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Status that programs read."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[Cause] = []
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """A Kubernetes Status object, as far as we use it."""

    reason: str = ""
    message: str = ""
    details: Details | None = None
    code: int = 0


class ApiError(Exception):
    """The API server refused or could not be asked; `message` is fit for people."""

    def __init__(
        self, status: int, reason: str, message: str, details: Details | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or Details()

    def has_cause(self, reason: str) -> bool:
        """Return whether the server named this reason among the causes."""
        return any(cause.reason == reason for cause in self.details.causes)


class Unreachable(ApiError):
    """No answer: refused, cut, timed out or TLS failed. A write may or may not have happened."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


class Stalled(Unreachable):
    """The connection stands but nothing came over it for as long as we are willing to wait."""


class Undecodable(ApiError):
    """The server answered, but not with what was asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(200, "Undecodable", message)


class BadCredentials(ApiError):
    """We cannot even ask: the kubeconfig, token, certificate or plugin is of no use."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "BadCredentials", message)


class Unauthorized(ApiError):
    """401: the server does not know who we are."""


class Forbidden(ApiError):
    """403: the server knows us and says no."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class AlreadyExists(ApiError):
    """409 on a create: the name is taken."""


class Conflict(ApiError):
    """409 on a change: somebody was faster, or a precondition does not hold."""


class Gone(ApiError):
    """410: the resource version or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object breaks its schema or a rule, or a JSON patch's test failed."""


class ServerFault(ApiError):
    """5xx: the server tried and failed. A write may or may not have happened."""


class TooManyRequests(ApiError):
    """429: refused before anything was done; `retry_after` is in seconds where the server says."""

    def __init__(
        self, message: str, details: Details | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(429, "TooManyRequests", message, details)
        self.retry_after = retry_after


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def from_answer(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Build the error for an HTTP answer from its status, its body and its Retry-After header."""
    answer = _read_status(body)
    message = cut(answer.message) or f"the server answered with HTTP status {status}"
    return _build(status, answer, message, _seconds(retry_after))


def from_event(body: bytes) -> ApiError:
    """Build the error for the object of an ERROR event in a watch, which is a Status."""
    answer = _read_status(body)
    message = cut(answer.message) or "the watch ended with an error that says nothing"
    # The server puts 410s both as a code and as a reason; either is enough to know.
    code = 410 if answer.reason in {"Expired", "Gone"} else answer.code or 500
    return _build(code, answer, message, _seconds(None))


def _build(status: int, answer: Status, message: str, retry_after: float | None) -> ApiError:
    if answer.reason == "AlreadyExists":
        return AlreadyExists(status, answer.reason, message, answer.details)
    if status == 429:
        if retry_after is None and answer.details and answer.details.retry_after_seconds:
            retry_after = float(answer.details.retry_after_seconds)
        return TooManyRequests(message, answer.details, retry_after)
    kind = ServerFault if status >= 500 else _BY_STATUS.get(status, ApiError)
    return kind(status, answer.reason or str(status), message, answer.details)


def cut(text: str) -> str:
    """Return `text` on one line and no longer than people will read."""
    line = " ".join(text.split())
    if len(line) <= LONGEST_MESSAGE:
        return line
    return f"{line[:LONGEST_MESSAGE]}… ({len(line) - LONGEST_MESSAGE} more characters)"


def _read_status(body: bytes) -> Status:
    # Proxies and unknown paths answer in plain text, which is still worth showing.
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status(message=body[: 4 * LONGEST_MESSAGE].decode(errors="replace"))


def _seconds(header: str | None) -> float | None:
    # The API server only ever sends whole seconds; the HTTP date form is not worth a parser.
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
