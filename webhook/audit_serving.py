"""The audit log served to API servers, which pass on what people ask: an aggregated API.

It has a port, a TLS context and threads of its own, few, so that nobody who reads the log, or
tries to, takes anything from reviews.
"""

import http.client
import logging
import socket
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec
from typing_extensions import override

from kube.access import Credentials
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.resources import CONFIGMAPS
from kube.tallies import CallTally
from webhook import audit_api, tls
from webhook.audit_api import Api, Others, Reply
from webhook.audit_callers import CONFIG, CONFIG_NAMESPACE, PEER_HEADER, FrontProxy, Peers

LOG: Final = logging.getLogger(__name__)

MOST_CLIENTS: Final = 16
SILENCE: Final = 10.0
PEER_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 30.0
AUTHORITY: Final = ".front-proxy.pem"

Address = tuple[str, int]


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


@dataclass(frozen=True)
class Door:
    """Where the log is served, by which certificate files, and who the other replicas are."""

    address: Address
    tls_dir: Path
    folder: Path
    replica: str
    peers: Sequence[Address] = ()


class Gate:
    """Knows who may come in, and shows the certificate of the moment."""

    def __init__(self, door: Door, peers: Peers) -> None:
        self._door = door
        self.peers: Final = peers
        self.proxy: FrontProxy | None = None
        self._contexts = self._made()

    def admit(self, proxy: FrontProxy | None) -> None:
        """Take API servers in that show such certificates from now on, and no others."""
        if proxy == self.proxy:
            return
        if proxy is not None:
            path = self._door.folder / AUTHORITY
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(proxy.authority)
        self.proxy = proxy
        self._contexts = self._made()

    def _made(self) -> tls.Contexts:
        authority = None if self.proxy is None else self._door.folder / AUTHORITY
        terms = tls.Terms(ssl.TLSVersion.TLSv1_3, authority)
        return tls.Contexts(self._door.tls_dir, ssl.SSLSocket, terms)

    def context(self) -> ssl.SSLContext:
        """Give the TLS context for a new connection; raises OSError if there is none."""
        found = self._contexts.current()
        if isinstance(found, tls.Missing):
            raise ConnectionError(found.reason)
        return found

    def certificate(self) -> bytes:
        """Give what is shown now, as bytes to compare."""
        text = self._contexts.certificate()
        first = text.partition("-----END CERTIFICATE-----")
        return ssl.PEM_cert_to_DER_cert(first[0] + first[1] + "\n") if first[1] else b""

    async def follow(self, credentials: Credentials, clock: Clock, calls: CallTally) -> None:
        """Keep up with what the API server says of its front proxy, for ever."""
        path = CONFIGMAPS.path(CONFIG_NAMESPACE, CONFIG)
        async with Client(credentials, "webhook", clock, tally=calls) as client:
            while True:
                try:
                    found = msgspec.json.decode(await client.raw_get(path), type=_ConfigMap)
                    self.admit(FrontProxy.read(found.data))
                except (ApiError, msgspec.MsgspecError) as error:
                    # Who was known stays so; at the start that is nobody.
                    LOG.warning("cannot read ConfigMap %s/%s: %s", CONFIG_NAMESPACE, CONFIG, error)
                await clock.sleep(LOOK_SECONDS)


class Replicas(Others):
    """The other replicas, found by one name that stands for all of them, or by an address each."""

    def __init__(self, door: Door, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    @override
    def ask(self, target: str) -> tuple[list[Reply], list[str]]:
        """Ask each for a path; one that does not show our own certificate is none of ours."""
        found: list[Reply] = []
        silent: list[str] = []
        for host, port in self._door.peers:
            for address in _addresses(host, port):
                try:
                    found.append(self._asked(address, target))
                except (OSError, http.client.HTTPException) as error:
                    LOG.warning("no answer about the audit log from %s: %s", address, error)
                    silent.append(f"{address[0]}:{address[1]}")
        return found, silent

    def _asked(self, address: Address, target: str) -> Reply:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # All replicas have one certificate, so that it is compared and no name is looked at.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(*address, timeout=PEER_SECONDS, context=context)
        try:
            connection.connect()
            shown = cast("ssl.SSLSocket", connection.sock).getpeercert(binary_form=True)
            if not shown or shown != self._gate.certificate():
                raise ConnectionError("it shows another certificate than ours")
            header = self._gate.peers.header(target)
            connection.request("GET", target, headers={PEER_HEADER: header})
            reply = connection.getresponse()
            if reply.status not in (200, 404):
                raise ConnectionError(f"it answers {reply.status}: have all replicas one key?")
            return Reply(reply.status, reply.read(), reply.headers.get_content_type())
        finally:
            connection.close()


def _addresses(host: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return [(host, port)]  # it will be told as one that does not answer
    return sorted({(str(each[4][0]), port) for each in found})


class AuditServer(ThreadingHTTPServer):
    """Answers those whom the gate lets in, each on a thread; too many at once are turned away."""

    daemon_threads = True

    def __init__(self, door: Door, gate: Gate) -> None:
        super().__init__(door.address, _Handler)
        self.gate = gate
        self.api = Api(door.replica, door.folder, Replicas(door, gate))
        self._places = threading.Semaphore(MOST_CLIENTS)

    @override
    def process_request(self, request: object, client_address: object) -> None:
        """Begin a thread for a connection, if there is a place for it."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(cast("socket.socket", request))
            return
        super().process_request(cast("socket.socket", request), cast("Address", client_address))

    @override
    def process_request_thread(self, request: object, client_address: object) -> None:
        """Greet and answer a client; how long it takes is bounded at each step."""
        plain = cast("socket.socket", request)
        try:
            plain.settimeout(SILENCE)
            greeted = self.gate.context().wrap_socket(plain, server_side=True)
        except OSError as error:
            LOG.debug("somebody could not agree with us on TLS: %s", error)
            self.shutdown_request(plain)
        else:
            super().process_request_thread(greeted, cast("Address", client_address))
        finally:
            self._places.release()

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that turn away."""


class _Handler(BaseHTTPRequestHandler):
    server: AuditServer
    protocol_version = "HTTP/1.1"
    timeout = SILENCE

    def do_GET(self) -> None:
        """Answer whoever may ask, and nobody else."""
        gate, header = self.server.gate, self.headers.get
        is_peer = gate.peers.is_one(header(PEER_HEADER) or "", self.path)
        shown = cast("ssl.SSLSocket", self.connection).getpeercert() or {}
        user = gate.proxy.caller(shown, header) if gate.proxy is not None else ""
        if not is_peer and not user:
            reply = audit_api.status(403, "Forbidden", "ask the API server for the audit log")
        else:
            if user:
                LOG.info("%s reads %s", user, urlsplit(self.path).path)
            reply = self.server.api.answer(self.path, only_here=is_peer)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


class Service:
    """Serves the log from `start` to `stop`."""

    def __init__(self, server: AuditServer) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": 0.2},
            name="audit-api",
            daemon=True,
        )

    def start(self) -> None:
        """Begin to serve."""
        host, port = self._server.server_address[:2]
        LOG.info("the audit log is served at %s port %s", host, port)
        self._thread.start()

    def stop(self) -> None:
        """End it again."""
        self._server.shutdown()
        self._thread.join(SILENCE)
        self._server.server_close()
