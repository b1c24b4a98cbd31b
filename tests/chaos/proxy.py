"""A proxy in front of the API server that keeps its connections, and can be told to misbehave.

Every controller has one of its own. Unlike `tests.support.faultproxy` it does not open a connection
for each request, so that it costs little while nothing is wrong; bytes of single answers can still
be cut.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from api.jsons import JsonObject
from tests.support.living import tls_of

_HOP_BY_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length"})
WRITES: Final = frozenset({"POST", "PATCH", "PUT", "DELETE"})


class Trouble(Enum):
    """What the proxy does instead of passing an answer."""

    CONFLICT = "answers writes with 409"
    BUSY = "answers 429 with Retry-After"
    BROKEN = "answers 500"
    CUT = "carries requests out and cuts their answers in the middle"
    GONE_STATUS = "answers watches with HTTP status 410"
    GONE_EVENT = "answers watches with an ERROR event of code 410"
    STALL = "lets watches stand open without a byte"


OF_WATCHES: Final = (Trouble.GONE_STATUS, Trouble.GONE_EVENT, Trouble.STALL)


@dataclass(frozen=True)
class Head:
    """What is asked for."""

    method: str
    target: str

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def is_watch(self) -> bool:
        return "watch" in parse_qs(urlsplit(self.target).query)


async def _let_pass(_head: Head, _body: bytes) -> Trouble | None:
    return None


async def _tell_nobody(_head: Head) -> None:
    return


@dataclass
class Proxy:
    """One listening proxy.

    `before` is asked about each request, which waits for it, and may give it a trouble of its own.
    `after` is told of each request that was carried out, before its client is.
    """

    kubeconfig: Path
    url: str = ""
    before: Callable[[Head, bytes], Awaitable[Trouble | None]] = _let_pass
    after: Callable[[Head], Awaitable[None]] = _tell_nobody
    _standing: Trouble | None = None
    _open: set[asyncio.BaseTransport] = field(default_factory=set)

    def inflict(self, trouble: Trouble) -> None:
        """Have every request go wrong in this way; streams that are open are cut."""
        self._standing = trouble
        self.restart()

    def heal(self) -> None:
        """Pass everything again."""
        self._standing = None
        self.restart()

    def restart(self) -> None:
        """Drop every connection at once, as a server does that dies."""
        for transport in list(self._open):
            if isinstance(transport, asyncio.Transport):
                transport.abort()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Proxy"]:
        """Listen for as long as the context lasts."""
        server, tls = tls_of(self.kubeconfig)
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self._handle(request, session, server)

            application = web.Application(client_max_size=16 << 20)
            application.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _handle(
        self, request: web.Request, session: aiohttp.ClientSession, server: str
    ) -> web.StreamResponse:
        transport = request.transport
        if transport is not None:
            self._open.add(transport)
        try:
            head, body = Head(request.method, request.raw_path), await request.read()
            trouble = await self.before(head, body) or self._standing
            answer = await _instead(trouble, head, request)
            if answer is not None:
                return answer
            return await self._pass_on(request, body, session, server, cut=trouble is Trouble.CUT)
        except (aiohttp.ClientError, ConnectionError):
            # The API server is away: so it is for whoever asks here.
            if transport is not None:
                transport.close()
            return web.Response(status=502)
        finally:
            if transport is not None:
                self._open.discard(transport)

    async def _pass_on(
        self,
        request: web.Request,
        body: bytes,
        session: aiohttp.ClientSession,
        server: str,
        *,
        cut: bool,
    ) -> web.StreamResponse:
        head = Head(request.method, request.raw_path)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        async with session.request(
            request.method,
            URL(f"{server}{request.raw_path}", encoded=True),
            headers=headers,
            data=body or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            passed = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            if not head.is_watch:
                whole = await answer.read()
                await self.after(head)
                if cut:
                    return await _half(request, answer.status, passed, whole)
                return web.Response(status=answer.status, headers=passed, body=whole)
            stream = web.StreamResponse(status=answer.status, headers=passed)
            await stream.prepare(request)
            async for chunk in answer.content.iter_any():
                await stream.write(chunk[: len(chunk) // 2] if cut else chunk)
                if cut:
                    break
            await stream.write_eof()
            return stream


async def _instead(
    trouble: Trouble | None, head: Head, request: web.Request
) -> web.StreamResponse | None:
    """Give what is answered in the place of the API server; None if it is to be asked."""
    if trouble in OF_WATCHES:
        return await _no_watch(trouble, request) if head.is_watch else None
    match trouble:
        case Trouble.CONFLICT if head.method in WRITES:
            return _status(409, "Conflict")
        case Trouble.BUSY:
            return _status(429, "TooManyRequests", {"Retry-After": "1"})
        case Trouble.BROKEN:
            return _status(500, "InternalError")
    return None


async def _no_watch(trouble: Trouble | None, request: web.Request) -> web.StreamResponse:
    if trouble is Trouble.GONE_STATUS:
        return _status(410, "Expired")
    if trouble is Trouble.GONE_EVENT:
        event = {"type": "ERROR", "object": _told(410, "Expired")}
        return web.Response(body=msgspec.json.encode(event) + b"\n")
    stream = web.StreamResponse()
    await stream.prepare(request)
    while request.transport is not None:
        await asyncio.sleep(0.1)
    return stream


async def _half(
    request: web.Request, status: int, headers: dict[str, str], whole: bytes
) -> web.StreamResponse:
    stream = web.StreamResponse(status=status, headers=headers)
    stream.content_length = len(whole)
    await stream.prepare(request)
    await stream.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return stream


def _told(code: int, reason: str) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": f"the proxy answers {code}",
        "code": code,
    }


def _status(code: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(_told(code, reason))
    return web.Response(status=code, body=body, headers=headers, content_type="application/json")
