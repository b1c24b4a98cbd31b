"""The HTTP server: a page, its files, what is told live, and details of one gang. Only GET."""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from api import exits
from penstock.dashboard import answers
from penstock.dashboard.answers import BadRequestError, Names, Request
from penstock.dashboard.files import File
from penstock.dashboard.hub import Hub, Viewer
from penstock.dashboard.timeline import Detail
from penstock.ending import AskedWronglyError

_log = logging.getLogger(__name__)

_PATIENCE: Final = 5.0  # seconds, for a request to be there as a whole, and its answer gone
SLOWEST: Final = 20.0  # seconds in which a viewer must take what is sent to him
_LARGEST: Final = 8192  # bytes of a request
MOST: Final = 256  # connections at a time
_END: Final = b"\r\n\r\n"

Details = Callable[[str, str], Detail | None]


@dataclass(frozen=True)
class Address:
    """Where to serve, and under which further names; port 0 takes a free one."""

    host: str
    port: int
    others: frozenset[str] = frozenset()

    @property
    def url(self) -> str:
        """Write it for a browser on this machine."""
        if self.host in answers.EVERYWHERE:
            return f"http://localhost:{self.port}/"
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/"


class Site:
    """Answers requests."""

    def __init__(self, files: Mapping[str, File], hub: Hub, details: Details, names: Names) -> None:
        self._files = files
        self._hub = hub
        self._details = details
        self._names = names
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        if len(self._open) >= MOST:
            writer.transport.abort()  # whoever asks again in a moment may be let in
            return
        self._open[writer] = asyncio.current_task()
        try:
            with suppress(OSError, EOFError, TimeoutError):
                await self._one(reader, writer)
        except Exception:  # noqa: BLE001 - a worker's edge, logged
            _log.exception("a request failed")
        finally:
            await _closed(writer)
            del self._open[writer]

    async def end(self) -> None:
        """Cut off all that are connected, and wait until nothing is left of them."""
        tasks = [task for task in self._open.values() if task is not None]
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(_END)
            request = answers.read(head[: -len(_END)], self._names)
            if request.path == "/events":
                await self._stream(reader, writer)
                return
            told = self._told(request)
        except asyncio.LimitOverrunError:
            told = _refused("431 Request Header Fields Too Large", "the request is too large")
        except BadRequestError as error:
            told = _refused(error.status, str(error))
        async with asyncio.timeout(_PATIENCE):
            writer.write(told)
            await writer.drain()

    def _told(self, request: Request) -> bytes:
        if request.path == "/gang":
            found = self._details(request.query.get("namespace", ""), request.query.get("name", ""))
            if found is None:
                raise BadRequestError("404 Not Found", "there is no such gang")
            return answers.whole("200 OK", answers.JSON, msgspec.json.encode(found))
        if request.path == "/healthz":
            return answers.whole("200 OK", answers.TEXT, b"ok\n")
        file = self._files.get(request.path)
        if file is None:
            raise BadRequestError("404 Not Found", "there is nothing here")
        return answers.whole("200 OK", file.kind, file.body)

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tell a viewer what changes until he goes, or does not keep up."""
        writer.write(answers.head("200 OK", answers.STREAM, None) + b"retry: 1000\n\n")
        viewer = self._hub.join()
        sending = asyncio.ensure_future(_send(viewer, writer))
        # A viewer says nothing more; when his side of the connection ends, he is gone.
        gone = asyncio.ensure_future(reader.read(1))
        dropped = asyncio.ensure_future(viewer.dropped())
        ends: Sequence[asyncio.Future[None] | asyncio.Future[bytes]] = (sending, gone, dropped)
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(viewer)
            for each in ends:
                each.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            if viewer.is_slow:
                _log.info("a viewer did not keep up and was dropped; the page will begin anew")
            writer.transport.abort()  # what is not taken by now is of no use to anybody


async def _send(viewer: Viewer, writer: asyncio.StreamWriter) -> None:
    while (message := await viewer.next()) is not None:
        writer.write(message)
        async with asyncio.timeout(SLOWEST):
            await writer.drain()


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close, once what was written has gone; whoever does not take it in time is cut off."""
    writer.close()
    try:
        async with asyncio.timeout(_PATIENCE):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()


def _refused(status: str, message: str) -> bytes:
    return answers.whole(status, answers.TEXT, f"{message}\n".encode())


@asynccontextmanager
async def serving(
    address: Address, files: Mapping[str, File], hub: Hub, details: Details
) -> AsyncIterator[Address]:
    """Serve while the context lasts; gives the address that was taken."""
    site = Site(files, hub, details, Names(address.host, address.others))
    server = await _listening(address, site)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield Address(host, port, address.others)
    finally:
        server.close()
        await site.end()


async def _listening(address: Address, site: Site) -> asyncio.Server:
    try:
        return await asyncio.start_server(site.answer, address.host, address.port, limit=_LARGEST)
    except OSError as error:
        where = f"{address.host}:{address.port}"
        if error.errno == errno.EADDRINUSE:
            line = f"--port: another process has {where}; take another, or none for a free one"
            raise AskedWronglyError(line, exits.PORT_TAKEN) from error
        line = f"--bind, --port: {where} cannot be listened at: {error.strerror or error}"
        raise AskedWronglyError(line, exits.BAD_SETTINGS) from error
