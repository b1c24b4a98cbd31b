"""Shows at /metrics what a process counts: plain HTTP, answered on the event loop.

What is counted belongs to the event loop, so that nothing is read while it is half written.
"""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from api import exits
from kube.startup import StartupFailure

_log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PATH: Final = "/metrics"
_PATIENCE: Final = 5.0  # seconds, for a request to be there as a whole, and its answer gone
_LARGEST: Final = 8192  # bytes of a request
_END: Final = b"\r\n\r\n"

# When a series began is no use to anybody here, and doubles what is written.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # published untyped


@dataclass(frozen=True)
class Address:
    """Where to serve; port 0 takes a free one."""

    host: str
    port: int


class Metrics:
    """What one process counts, in a registry of its own. `refresh` runs before each look."""

    def __init__(self, component: str, leads: Callable[[], bool]) -> None:
        self.registry: Final = CollectorRegistry()
        self.refresh: list[Callable[[], None]] = []
        ProcessCollector(registry=self.registry)
        leading = Gauge(
            f"penstock_{component}_leads", "Whether this replica leads", registry=self.registry
        )
        self.refresh.append(lambda: leading.set(leads()))

    def written(self) -> bytes:
        """Write all of it in Prometheus' text format."""
        for each in self.refresh:
            each()
        return prometheus_client.generate_latest(self.registry)


@asynccontextmanager
async def serving(address: Address | None, metrics: Metrics) -> AsyncIterator[Address | None]:
    """Serve while the context lasts, if an address is given; gives the one that was taken."""
    if address is None:
        yield None
        return
    server = await _listening(address, metrics)
    host, port = server.sockets[0].getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    _log.info("metrics are served at http://%s:%d%s", shown, port, PATH)
    try:
        yield Address(host, port)
    finally:
        server.close()


async def _listening(address: Address, metrics: Metrics) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE):
                writer.write(_answered(await reader.readuntil(_END), metrics))
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, address.host, address.port, limit=_LARGEST)
    except OSError as error:
        where = f"{address.host}:{address.port}"
        if error.errno == errno.EADDRINUSE:
            line = f"--metrics-address: another process has {where}; take another port"
            raise StartupFailure(exits.PORT_TAKEN, line) from error
        line = f"--metrics-address: {where} is no address of this machine"
        raise StartupFailure(exits.BAD_SETTINGS, line) from error


def _answered(request: bytes, metrics: Metrics) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    if method not in (b"GET", b"HEAD"):
        return _response("405 Method Not Allowed", b"only GET and HEAD\n", "text/plain")
    if path != PATH:
        return _response("404 Not Found", f"there is only {PATH}\n".encode(), "text/plain")
    body = metrics.written()
    answer = _response("200 OK", body, CONTENT_TYPE)
    return answer if method == b"GET" else answer[: -len(body)]


def _response(status: str, body: bytes, kind: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
