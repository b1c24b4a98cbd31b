"""Reviews on their way in: bounds on what is read, before anything larger than WSGI wakes up.

Nearly all that is asked of us are reviews. Routing and wrapping each of them as Flask does would
cost more than answering it, so what is posted to a review's path is taken here, and all else goes
on to Flask.
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from gunicorn.http.errors import ParseException

from webhook import deadlines
from webhook.answering import Answering, Reply, Span
from webhook.patience import PatientSocket
from webhook.routes import PATHS, Route

# A review holds the new object and the old one, each of at most 3 MiB at the API server's door.
LARGEST_BODY: Final = 7 * 1024 * 1024
_JSON: Final = "application/json"
_TOO_LARGE: Final = Reply(413, b"a review of more than 7 MiB is not read")
_STATUS: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Intake:
    """A WSGI application around another one."""

    def __init__(self, answering: Answering, beyond: WSGIApplication) -> None:
        self._answering = answering
        self._beyond = beyond

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a review, or pass on what is none."""
        route = PATHS.get(environ["PATH_INFO"])
        if route is None or environ["REQUEST_METHOD"] != "POST":
            return self._beyond(environ, start_response)
        reply = self._answered(environ, route)
        head = [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body)))]
        start_response(_STATUS[reply.status], head)
        return [reply.body]

    def _answered(self, environ: WSGIEnvironment, route: Route) -> Reply:
        body = _fault(environ) or _body(environ)
        if isinstance(body, Reply):
            return self._answering.rejected(route, body)
        return self._answering.answer(route, body, _span(environ, self._answering.clock))


def _fault(environ: WSGIEnvironment) -> Reply | None:
    """Look at who asks, and at the headers before a byte of the body is read."""
    connection = environ.get("gunicorn.socket")
    if isinstance(connection, PatientSocket) and connection.stranger:
        return Reply(403, b"show the client certificate that this webhook was told to expect")
    said = environ.get("CONTENT_TYPE", "")
    # Mostly in these very words.
    if said != _JSON and said.partition(";")[0].strip().lower() != _JSON:
        return Reply(415, b"send application/json")
    if environ.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        # Unpacking would make the bound on the body worthless.
        return Reply(415, b"send the body without Content-Encoding")
    return None


def _body(environ: WSGIEnvironment) -> bytes | Reply:
    said = environ.get("CONTENT_LENGTH") or "0"
    if environ.get("wsgi.input_terminated") and said == "0":
        # In chunks, whose sum nobody has said.
        length = LARGEST_BODY + 1
    elif (length := int(said)) > LARGEST_BODY:
        return _TOO_LARGE
    try:
        body: bytes = environ["wsgi.input"].read(length)
    except (OSError, ParseException) as error:
        # The client stalled, left, or broke the framing of its own body.
        return Reply(400, f"the body could not be read: {error}".encode(errors="replace"))
    if len(body) > LARGEST_BODY:
        return _TOO_LARGE
    if len(body) < int(said):
        return Reply(400, b"the body ends before it should")
    return body


def _span(environ: WSGIEnvironment, clock: Callable[[], float]) -> Span:
    connection = environ.get("gunicorn.socket")
    begun = connection.arrived if isinstance(connection, PatientSocket) else clock()
    return Span(begun, begun + deadlines.seconds(environ.get("QUERY_STRING", "")))
