import msgspec
import pytest

from kube import errors


def body(reason: str = "", message: str = "", code: int = 0) -> bytes:
    return msgspec.json.encode({"reason": reason, "message": message, "code": code})


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFault),
        (503, "ServiceUnavailable", errors.ServerFault),
        (400, "BadRequest", errors.ApiError),
    ],
)
def test_each_status_becomes_its_own_type(
    status: int, reason: str, kind: type[errors.ApiError]
) -> None:
    error = errors.from_answer(status, body(reason, "no luck"))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "no luck")
    assert str(error) == "no luck"


def test_retry_after_comes_from_the_header_else_from_the_details() -> None:
    details = b'{"details":{"retryAfterSeconds":7}}'
    from_header = errors.from_answer(429, details, "3")
    from_details = errors.from_answer(429, details)
    from_nowhere = errors.from_answer(429, b"{}", "Wed, 21 Oct 2026 07:28:00 GMT")
    assert isinstance(from_header, errors.TooManyRequests)
    assert isinstance(from_details, errors.TooManyRequests)
    assert isinstance(from_nowhere, errors.TooManyRequests)
    assert [e.retry_after for e in (from_header, from_details, from_nowhere)] == [3.0, 7.0, None]


def test_plain_text_is_shown_on_one_line() -> None:
    error = errors.from_answer(502, b"<html>\n  bad   gateway\n</html>")
    assert error.message == "<html> bad gateway </html>"


def test_long_bodies_are_cut_and_say_so() -> None:
    message = errors.from_answer(500, body(message="x" * 5000)).message
    assert len(message) < 1100
    assert message.endswith("(4000 more characters)")


def test_an_answer_that_says_nothing_names_its_status() -> None:
    assert errors.from_answer(418, b"").message == "the server answered with HTTP status 418"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (body("Expired", "too old", 410), errors.Gone),
        (body("Expired", "too old"), errors.Gone),
        (body("InternalError", "oh", 500), errors.ServerFault),
        (body("", ""), errors.ServerFault),
        (body("TooManyRequests", "", 429), errors.TooManyRequests),
    ],
)
def test_watch_errors_become_the_same_types(event: bytes, kind: type[errors.ApiError]) -> None:
    assert type(errors.from_event(event)) is kind


def test_causes_can_be_asked_for() -> None:
    raw = b'{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]},"code":504}'
    error = errors.from_event(raw)
    assert error.has_cause(errors.TOO_LARGE_VERSION)
    assert not error.has_cause("FieldValueInvalid")
