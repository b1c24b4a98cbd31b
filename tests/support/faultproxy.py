"""A small HTTP proxy in front of a real kube-apiserver that does to clients what networks do.

Plain HTTP towards the client on a free loopback port; towards the server TLS with whatever client
certificate and token the credentials carry. Every request has a connection of its own on both
sides, and answers pass as raw bytes, so that a line can be cut anywhere.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, urlsplit

import msgspec

from api.jsons import JsonObject
from kube.access import Credentials


class Fault(Enum):
    """What the proxy does instead of passing bytes."""

    NONE = "nothing"
    CUT = "cuts every answer in the middle of its bytes"
    GONE_STATUS = "answers watches with HTTP status 410"
    GONE_EVENT = "answers watches with an ERROR event of code 410"
    BUSY = "answers 429 with Retry-After"
    BROKEN = "answers 500"
    STALL = "takes requests and keeps the line open without a byte"


@dataclass(frozen=True)
class Head:
    """A request's first lines."""

    method: str
    target: str
    headers: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return "watch" in parse_qs(urlsplit(self.target).query)

    @property
    def kind(self) -> str:
        if self.is_watch:
            return "watch"
        return "list" if self.method == "GET" else self.method.lower()


@dataclass
class FaultProxy:
    """One listening proxy; set the fault with `inflict`, end it with `heal`.

    `passed` and `harmed` count requests by kind: list (any read), watch, post, patch, delete.
    """

    credentials: Credentials
    retry_after: int = 1
    url: str = ""
    passed: Counter[str] = field(default_factory=Counter)
    harmed: Counter[str] = field(default_factory=Counter)
    _fault: Fault = Fault.NONE
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def inflict(self, fault: Fault) -> None:
        """Begin to do this, to open streams too."""
        self._fault = fault
        self._changed.set()
        self._changed = asyncio.Event()

    def heal(self) -> None:
        """Pass everything again. Streams that stall stay so: nobody told their client."""
        self.inflict(Fault.NONE)

    def restart(self) -> None:
        """Drop every connection at once, as a server does that dies."""
        for task in list(self._connections):
            task.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's only request."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # Cancelled only by `restart`; the streams machinery takes that for a mistake.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._exchange(reader, writer)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, body = await _read_request(reader)
        fault = self._fault
        if self._concerns(fault, head):
            self.harmed[head.kind] += 1
        else:
            self.passed[head.kind] += 1
            fault = Fault.NONE
        match fault:
            case Fault.STALL:
                await reader.read()  # until the client gives up
            case Fault.GONE_STATUS:
                await _answer(writer, 410, "Gone", _status(410, "Expired"))
            case Fault.GONE_EVENT:
                event = {"type": "ERROR", "object": msgspec.Raw(_status(410, "Expired"))}
                await _answer(writer, 200, "OK", msgspec.json.encode(event) + b"\n")
            case Fault.BUSY:
                extra = f"Retry-After: {self.retry_after}\r\n"
                await _answer(
                    writer, 429, "Too Many Requests", _status(429, "TooManyRequests"), extra
                )
            case Fault.BROKEN:
                await _answer(writer, 500, "Internal Server Error", _status(500, "InternalError"))
            case Fault.NONE | Fault.CUT:
                await self._pass_on(head, body, writer)

    def _concerns(self, fault: Fault, head: Head) -> bool:
        if fault in {Fault.GONE_STATUS, Fault.GONE_EVENT}:
            return head.is_watch
        return fault is not Fault.NONE

    async def _pass_on(self, head: Head, body: bytes, writer: asyncio.StreamWriter) -> None:
        server = urlsplit(self.credentials.server)
        upstream_reader, upstream_writer = await asyncio.open_connection(
            server.hostname, server.port, ssl=self.credentials.ssl_context
        )
        try:
            authorization = await self.credentials.tokens.authorization()
            upstream_writer.write(_request(head, body, server.netloc, authorization))
            await upstream_writer.drain()
            await self._pump(head, upstream_reader, writer)
        finally:
            upstream_writer.transport.abort()

    async def _pump(
        self, head: Head, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            if self._fault is Fault.STALL:
                await asyncio.Event().wait()
            if self._concerns(self._fault, head) and self._fault is not Fault.CUT:
                return  # the client comes back and gets the new fault as its answer
            chunk = await self._next_chunk(upstream)
            if chunk is None:
                continue
            if self._fault is Fault.CUT:
                writer.write(chunk[: len(chunk) // 2])
                await writer.drain()
                return
            if not chunk:
                await _close(writer)
                return
            writer.write(chunk)
            await writer.drain()

    async def _next_chunk(self, upstream: asyncio.StreamReader) -> bytes | None:
        """Return the next bytes, empty at the end, or None if the fault has changed first."""
        reading = asyncio.ensure_future(upstream.read(65536))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({reading, changing}, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            changing.cancel()
            if not reading.done():
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading


async def _read_request(reader: asyncio.StreamReader) -> tuple[Head, bytes]:
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in rest if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    return Head(method, target, headers), await reader.readexactly(
        int(headers.get("content-length", "0"))
    )


def _request(head: Head, body: bytes, host: str, authorization: str | None) -> bytes:
    dropped = {"host", "connection", "authorization"}
    headers = {name: value for name, value in head.headers.items() if name not in dropped}
    # A connection for each answer makes its end visible without reading its framing.
    headers |= {"host": host, "connection": "close"}
    if authorization is not None:
        headers["authorization"] = authorization
    lines = [f"{head.method} {head.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _status(code: int, reason: str) -> bytes:
    status: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": f"the fault proxy answers {code}",
        "code": code,
    }
    return msgspec.json.encode(status)


async def _answer(
    writer: asyncio.StreamWriter, code: int, reason: str, body: bytes, extra: str = ""
) -> None:
    head = (
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n{extra}\r\n"
    )
    writer.write(head.encode() + body)
    await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def proxying(credentials: Credentials) -> AsyncIterator[FaultProxy]:
    """Run a proxy until the context ends."""
    proxy = FaultProxy(credentials)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=2**20)
    host, port = server.sockets[0].getsockname()[:2]
    proxy.url = f"http://{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.restart()
        await server.wait_closed()
        await asyncio.gather(*proxy._connections, return_exceptions=True)
