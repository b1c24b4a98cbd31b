"""Shows at /metrics what a process counts: plain HTTP, answered on an event loop."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from api import exits
from kube.startup import StartupFailure

_log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PATH: Final = "/metrics"
_PATIENCE: Final = 5.0  # seconds, for a request to be there as a whole, and its answer gone
_LARGEST: Final = 8192  # bytes of a request
_BACKLOG: Final = 16
_END: Final = b"\r\n\r\n"

Written = Callable[[], bytes]
"""Writes all that is counted, in Prometheus' text format."""


@dataclass(frozen=True)
class Address:
    """Where to serve; port 0 takes a free one."""

    host: str
    port: int

    @override
    def __str__(self) -> str:
        """Return it as it stands in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def bind(address: Address) -> socket.socket:
    """Take the address; who connects waits until it is served on. Raises StartupFailure."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, _, _, where = found[0]
        listener = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:
        raise _no_address(address) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            line = f"--metrics-address: another process has {address}; take another port"
            raise StartupFailure(exits.PORT_TAKEN, line) from error
        raise _no_address(address) from error
    return listener


def _no_address(address: Address) -> StartupFailure:
    line = f"--metrics-address: {address} is no address of this machine"
    return StartupFailure(exits.BAD_SETTINGS, line)


@asynccontextmanager
async def serving(address: Address | None, written: Written) -> AsyncIterator[Address | None]:
    """Serve while the context lasts, if an address is given; gives the one that was taken."""
    if address is None:
        yield None
        return
    async with serving_on(bind(address), written) as taken:
        yield taken


@asynccontextmanager
async def serving_on(listener: socket.socket, written: Written) -> AsyncIterator[Address]:
    """Serve on what `bind` gave while the context lasts; it is closed in the end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE):
                writer.write(_answered(await reader.readuntil(_END), written))
                await writer.drain()
        writer.close()

    taken = Address(*listener.getsockname()[:2])
    server = await asyncio.start_server(answer, sock=listener, limit=_LARGEST)
    _log.info("metrics are served at http://%s%s", taken, PATH)
    try:
        yield taken
    finally:
        server.close()


def _answered(request: bytes, written: Written) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    if method not in (b"GET", b"HEAD"):
        return _response("405 Method Not Allowed", b"only GET and HEAD\n", "text/plain")
    if path != PATH:
        return _response("404 Not Found", f"there is only {PATH}\n".encode(), "text/plain")
    body = written()
    answer = _response("200 OK", body, CONTENT_TYPE)
    return answer if method == b"GET" else answer[: -len(body)]


def _response(status: str, body: bytes, kind: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
