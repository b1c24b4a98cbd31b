"""A webhook that does on the wire what a test tells it to, faults of the connection included."""

import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import msgspec
from typing_extensions import override

HOST: Final = "127.0.0.1"
JSON: Final = {"Content-Type": "application/json"}
# A client that neither speaks nor leaves must not keep a test from ending.
SILENCE: Final = 10.0
# Makes a close send a reset: linger, for no time at all.
NO_LINGER: Final = struct.pack("ii", 1, 0)


class _Question(msgspec.Struct):
    uid: str
    operation: str


class _Review(msgspec.Struct):
    request: _Question


@dataclass(frozen=True)
class Reply:
    """A whole HTTP reply."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


@dataclass(frozen=True)
class Stall:
    """A reply whose body never ends, until the client gives up."""

    begun: bytes = b"{"


@dataclass(frozen=True)
class Reset:
    """A connection that is reset once this much has been sent."""

    sent: bytes = b""


Act = Reply | Stall | Reset
Script = Callable[[str], Act]
"""What to do about a review, given its uid."""


class Stand(ThreadingHTTPServer):
    """Serves scripts by path over TLS; each reply closes its connection."""

    daemon_threads = True
    block_on_close = True

    def __init__(self, scripts: Mapping[str, Script], context: ssl.SSLContext) -> None:
        super().__init__((HOST, 0), _Handler)
        self.scripts = scripts
        self.context = context
        self.asked: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.server_address[1]}"

    @override
    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Take a connection in; its thread greets the client, so that nobody waits for another."""
        plain, address = super().get_request()
        plain.settimeout(SILENCE)
        greeted = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        return greeted, address

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that turn away in the handshake are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Stand

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        self.server.asked[path] += 1
        uid = msgspec.json.decode(body, type=_Review).request.uid
        match self.server.scripts[path](uid):
            case Reply(reply, status, headers):
                self._head(status, {**headers, "Content-Length": str(len(reply))})
                self.wfile.write(reply)
            case Stall(begun):
                self._head(200, {**JSON, "Content-Length": str(len(begun) + 1)})
                self.wfile.write(begun)
                self._await_the_client()
            case Reset(sent):
                self.wfile.write(sent)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                self.connection.close()

    def do_GET(self) -> None:
        """Only a redirect can lead here: webhooks are posted to."""
        self.server.asked[f"GET {self.path.partition('?')[0]}"] += 1
        self._head(404, {"Content-Length": "0"})

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _await_the_client(self) -> None:
        with suppress(OSError):
            self.connection.recv(1)

    @override
    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Write nothing."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def standing(scripts: Mapping[str, Script], context: ssl.SSLContext) -> Iterator[Stand]:
    """Serve the scripts on a free port for as long as the context lasts."""
    stand = Stand(scripts, context)
    thread = threading.Thread(target=stand.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stand
    finally:
        stand.shutdown()
        thread.join()
        stand.server_close()
