"""The HTTP side: reviews, health, readiness, metrics, and what HTTP refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from flask import Flask, Response, abort
from werkzeug.exceptions import HTTPException

from kube.exposing import CONTENT_TYPE
from webhook.answering import Answering, Reply
from webhook.intake import LARGEST_BODY, Intake
from webhook.routes import ROUTES


@dataclass(frozen=True)
class Desk:
    """What stands behind the paths. `unready` gives the reasons not to send reviews here now."""

    answering: Answering
    unready: Callable[[], tuple[str, ...]]
    written_metrics: Callable[[], bytes]


def make_app(desk: Desk) -> Flask:
    """Make the WSGI application: Flask, with reviews taken in before they get to it."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.register_error_handler(HTTPException, _plain)

    def healthz() -> Response:
        return _response(Reply(200, b"ok"))

    def readyz() -> Response:
        reasons = desk.unready()
        reply = Reply(503, "\n".join(reasons).encode()) if reasons else Reply(200, b"ok")
        return _response(reply)

    def written_metrics() -> Response:
        return _response(Reply(200, desk.written_metrics(), CONTENT_TYPE))

    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)
    app.add_url_rule("/metrics", "metrics", view_func=written_metrics)
    for route in ROUTES:
        # What is posted here never comes so far.
        app.add_url_rule(route.path, route.path, _not_posted, methods=["POST"])
    app.wsgi_app = Intake(desk.answering, app.wsgi_app)  # type: ignore[method-assign]  # Flask's way
    return app


def _not_posted() -> NoReturn:
    abort(405)


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
