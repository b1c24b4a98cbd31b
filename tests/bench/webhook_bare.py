"""The least a webhook can be: our server around a WSGI application that lets everything in.

`python -m tests.bench.webhook_bare` takes the flags of `python -m webhook`.
"""

import sys
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from typing_extensions import override

from api import exits
from kube.clock import SystemClock
from webhook import beginning, server, settings, tls
from webhook.patience import PatientSocket


class _Question(msgspec.Struct):
    uid: str


class _Review(msgspec.Struct):
    request: _Question


_DECODER = msgspec.json.Decoder(_Review)
_HEAD = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"'


def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Allow whatever is asked."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    uid = _DECODER.decode(body).request.uid if body else ""
    reply = _HEAD + uid.encode() + b'","allowed":true}}'
    head = [("Content-Type", "application/json"), ("Content-Length", str(len(reply)))]
    start_response("200 OK", head)
    return [reply]


class Bare(server.Server):
    """Our server without our application."""

    @override
    def load(self) -> WSGIApplication:  # type: ignore[override]  # any application would do
        return echo


def main() -> int:
    chosen, clock = settings.parse(sys.argv[1:]), SystemClock()
    server.configure_logging(chosen)
    listener = server.bind(chosen.host, chosen.port)
    if isinstance(listener, server.CannotListen):
        return exits.PORT_TAKEN
    foundation = beginning.lay(chosen, clock)
    contexts = tls.Contexts(chosen.tls_dir, PatientSocket, settings.terms(chosen))
    server.listen(listener)
    Bare(chosen, listener, contexts, foundation, clock).run()
    return exits.OK


if __name__ == "__main__":
    sys.exit(main())
