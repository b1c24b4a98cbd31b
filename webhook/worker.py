"""gunicorn's threaded worker, made to drain before it stops and to outlast stalled clients.

What differs from the worker it builds on:

- A thread is taken only for a request whose first bytes are there. Waiting for a client, be it in
  the TLS handshake or between two requests, costs a place in the poller and nothing else.
- Reading a request has a limit (`patience`), which is shorter while half of the threads wait for
  clients already; and closing a connection never holds up the loop
  that accepts new ones.
- SIGTERM starts draining: readiness goes, every reply closes its connection, but new ones are
  still accepted for a while, since whoever balances load learns late. Only then does it stop.
"""

import os
import ssl
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ
from socket import socket
from types import MethodType
from typing import Final, Protocol, cast
from wsgiref.types import WSGIApplication, WSGIEnvironment

from gunicorn import http, util
from gunicorn.http.wsgi import Response
from gunicorn.sock import BaseSocket
from gunicorn.workers.gthread import TConn, ThreadWorker
from typing_extensions import override

from api import exits
from webhook.patience import SILENCE, Crowd, PatientSocket

# How often the loop looks at the clock while draining.
TICK: Final = 0.1
# How long a closing connection is listened to, so that the last reply is not cut off.
LINGER: Final = 1.0

# What one read takes from a connection: all that a TLS record can hold.
RECORD: Final = 16384


class Site(Protocol):
    """What a worker needs of the application that started it."""

    drain_seconds: float

    def clock(self) -> float:
        """Give monotonic seconds."""
        ...

    def context(self) -> ssl.SSLContext:
        """Give the TLS context for a connection that begins now."""
        ...

    def is_stranger(self, connection: ssl.SSLSocket) -> bool:
        """Tell whether this client has yet to show who it is."""
        ...

    def note_failed_handshake(self) -> None:
        """Count a client that could not agree with us on TLS."""
        ...

    def start_working(self) -> None:
        """Begin what goes on beside the answering of reviews."""
        ...

    def stop_working(self) -> None:
        """End that again."""
        ...

    def start_draining(self) -> None:
        """Take the readiness away."""
        ...


class Greeting:
    """What `handle` returns for a connection whose handshake waits for the client."""


GREETING: Final = Greeting()


class AdmissionWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn publishes no types
    """One process that answers reviews in threads."""

    app: Site
    wsgi: WSGIApplication
    _stop_at: float | None = None

    def __init__(self, *settings: object, **named: object) -> None:
        super().__init__(*settings, **named)
        self._crowd = Crowd(self.cfg.threads)

    @override
    def handle_exit(self, sig: int, frame: object) -> None:
        """Begin to drain; a second SIGTERM changes nothing."""
        if self._stop_at is None:
            # Set first, since a second signal may come in the middle of this.
            self._stop_at = self.app.clock() + self.app.drain_seconds
            self.app.start_draining()
            # No connection may be kept from now on: each reply says so to its client.
            self.max_keepalived = 0
            self.method_queue.defer(lambda: None)

    @override
    def handle_quit(self, sig: int, frame: object) -> None:
        """End at once, as Ctrl-C asks.

        The pool is not shut down first: its lock may be held right where the signal came in, by
        `submit` or by this very handler when terminal and parent both send one.
        """
        os._exit(exits.OK)

    @override
    def load_wsgi(self) -> None:
        """Wrap the application, so that its replies say how draining stands when they leave."""
        super().load_wsgi()
        self.wsgi = partial(self._answer, self.wsgi)

    @override
    def run(self) -> None:
        """Serve until told to stop, with what goes on beside it."""
        self.app.start_working()
        try:
            super().run()
        finally:
            self.app.stop_working()

    def _answer(
        self, app: WSGIApplication, environ: WSGIEnvironment, start_response: MethodType
    ) -> Iterable[bytes]:
        """Run the application; a reply that was begun before the signal closes as well."""
        body = app(environ, start_response)
        if self._stop_at is not None:
            # The response that gunicorn hands out its method of; no header has been sent yet.
            cast("Response", start_response.__self__).force_close()
        if environ["REQUEST_METHOD"] == "POST" and isinstance(body, list) and all(body):
            # gunicorn sends head and body apart. Here a body is sure to follow.
            cast("PatientSocket", environ["gunicorn.socket"]).hold()
        return body

    @override
    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Serve what is ready, and stop accepting once draining is over."""
        if self._stop_at is not None:
            timeout = min(timeout, TICK)
        super().wait_for_and_dispatch_events(timeout)
        if self._stop_at is not None and self.app.clock() >= self._stop_at:
            self.alive = False

    @override
    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen or not. At the end, take in who waits already, then close the door.

        A door left open without anybody behind it would let clients in only to drop them; a closed
        one tells them at once to go elsewhere.
        """
        ending = not enabled and not self.alive
        if ending:
            for listener in self.sockets:
                self.accept(listener)
        super().set_accept_enabled(enabled)
        if ending:
            for listener in self.sockets:
                listener.close()

    @override
    def accept(self, listener: BaseSocket) -> None:
        """Take in all who wait at the door, as far as there is room."""
        while self.nr_conns < self.worker_connections:
            try:
                client, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # That client left, or files have run out; either way the others are served.
                self.log.warning("cannot accept a connection: %s", error)
                return
            self.nr_conns += 1
            connection = TConn(self.cfg, client, address, listener.getsockname())
            connection.timeout = self.app.clock() + SILENCE
            self._await_greeting(connection)

    @override
    def enqueue_req(self, conn: TConn) -> None:
        """Hand a connection with something to read to the threads, and note since when."""
        conn.arrived = self.app.clock()
        if isinstance(conn.sock, PatientSocket):
            conn.sock.arrived = conn.arrived
        super().enqueue_req(conn)

    def _await_greeting(self, connection: TConn) -> None:
        self.pending_conns.append(connection)
        self.poller.register(
            connection.sock, EVENT_READ, partial(self.on_pending_socket_readable, connection)
        )

    @override
    def handle(self, conn: TConn) -> bool | Greeting:
        """Go on with a connection that has become readable. Runs in a thread.

        Returns whether to keep the connection; one that is not kept is closed already.
        """
        if not conn.initialized:
            # What it waited for a thread is not the client's own delay.
            conn.timeout += self.app.clock() - conn.arrived
            kept = self._greet(conn)
        else:
            conn.sock.expect_request(self.app.clock, self._crowd)
            kept = super().handle(conn)
        if kept is False:
            if isinstance(conn.sock, PatientSocket):
                conn.sock.expect_nothing()
                if conn.sock.given_up:
                    # Whoever stalled once would be listened to in vain.
                    util.close(conn.sock)
                    return False
            util.close_graceful(conn.sock, timeout=LINGER)
        return kept

    def _greet(self, conn: TConn) -> bool | Greeting:
        """Take the TLS handshake as far as the client's bytes allow."""
        try:
            if not isinstance(conn.sock, PatientSocket):
                conn.sock = self._wrapped(conn.sock)
            conn.sock.do_handshake()
        except ssl.SSLWantReadError:
            return GREETING
        except OSError as error:
            self.log.debug("TLS handshake with %s failed: %s", conn.client, error)
            self.app.note_failed_handshake()
            return False
        conn.sock.stranger = self.app.is_stranger(conn.sock)
        conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.mxchunk = RECORD
        conn.initialized = True
        return True

    def _wrapped(self, plain: socket) -> ssl.SSLSocket:
        plain.settimeout(0.0)
        return self.app.context().wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        )

    @override
    def finish_request(self, conn: TConn, fs: "Future[bool | Greeting]") -> None:
        """Put the connection where it is waited for. Runs in the loop, so it must not wait."""
        kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if kept is GREETING:
            self._await_greeting(conn)
        elif kept and conn.sock.pending():
            # Deciphered with what came before, so the poller would wait for it in vain.
            self.enqueue_req(conn)
        elif kept:
            super().finish_request(conn, fs)
        else:
            self.nr_conns -= 1
            conn.close()
