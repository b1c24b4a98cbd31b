"""The HTTP side: bounds on what is read, which path goes to which route, health and readiness."""

from collections.abc import Callable
from typing import Final

from flask import Flask, Response, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException

from policies.admission import Judge
from webhook import routes
from webhook.routes import Reply

# A review holds the new object and the old one, each of at most 3 MiB at the API server's door.
LARGEST_BODY: Final = 7 * 1024 * 1024


def make_app(draining: Callable[[], bool]) -> Flask:
    """Make the WSGI application; it is unready while `draining`."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.register_error_handler(HTTPException, _plain)

    def healthz() -> Response:
        return _response(Reply(200, b"ok"))

    def readyz() -> Response:
        return _response(Reply(503, b"draining") if draining() else Reply(200, b"ok"))

    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)
    for path, judge in routes.PATHS.items():
        app.add_url_rule(path, path, _review_view(judge), methods=["POST"])
    return app


def _review_view(judge: Judge) -> Callable[[], Response]:
    def view() -> Response:
        return _response(_body_fault() or _answered(judge))

    return view


def _body_fault() -> Reply | None:
    """Look at the headers before a byte of the body is read."""
    if request.mimetype != "application/json":
        return Reply(415, b"send application/json")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        # Unpacking would make the bound on the body worthless.
        return Reply(415, b"send the body without Content-Encoding")
    return None


def _answered(judge: Judge) -> Reply:
    try:
        body = request.get_data(cache=False)
    except (OSError, ParseException) as error:
        # The client stalled, left, or broke the framing of its own body.
        return Reply(400, f"the body could not be read: {error}".encode(errors="replace"))
    return routes.answer(judge, body)


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, content_type=reply.content_type)


def _plain(error: HTTPException) -> Response:
    """Say in plain text what HTTP refuses; a page of HTML would end in somebody's log."""
    code = error.code or 500
    body = f"{error.name}: {error.description or ''}".encode()
    reply = _response(Reply(code, body))
    if code == 405:
        reply.headers["Allow"] = "POST"
    return reply
