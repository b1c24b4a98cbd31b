"""One request to the API server: credentials, repeats, and failures as types.

What is repeated, and what is not:
- 429 with Retry-After: every request, writes too. The server says it before it does anything, so
  the request surely did not happen.
- connection loss: only reads. A write whose answer was lost may have happened, and only the caller
  can tell what doing it twice would mean.
- 504 because the server's own copy is behind what was written: reads, as after its restart.
- 401: once, when the credentials can be renewed; the server refused before it did anything.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from kube.access import Credentials
from kube.clock import Clock
from kube.errors import (
    TOO_LARGE_VERSION,
    ApiError,
    ServerFault,
    Stalled,
    TooManyRequests,
    Unreachable,
    from_answer,
)
from kube.stream import split_lines
from kube.tallies import CallTally

JSON = "application/json"


@dataclass(frozen=True)
class Patience:
    """How long and how often the client tries; seconds."""

    connect_seconds: float = 5.0
    request_seconds: float = 30.0
    lost_attempts: int = 4
    busy_attempts: int = 6
    longest_wait: float = 30.0
    first_backoff: float = 0.1
    list_restarts: int = 3


@dataclass(frozen=True)
class Call:
    """One HTTP request, without its credentials."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON


class Transport:
    """Sends calls over one pool of connections; `open` before use, `close` after."""

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str,
        clock: Clock,
        patience: Patience,
        tally: CallTally | None = None,
    ) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._clock = clock
        self._patience = patience
        self._session: aiohttp.ClientSession | None = None
        self._host = urlsplit(credentials.server).netloc
        self._tally = tally or CallTally()

    @property
    def server(self) -> str:
        """Return the address, for messages."""
        return self._credentials.server

    def open(self) -> None:
        """Make the pool; needs a running event loop."""
        self._session = aiohttp.ClientSession(
            # Watches keep theirs for minutes, so the pool has room for more than a burst.
            connector=aiohttp.TCPConnector(limit=200),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Unpacking costs our one thread more than the bytes cost a cluster's network.
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
            middlewares=(_once,),
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: Call) -> bytes:
        """Return the answer's body, repeating what the module's docstring allows."""
        patience = self._patience
        limits = aiohttp.ClientTimeout(
            total=patience.request_seconds, sock_connect=patience.connect_seconds
        )
        lost = busy = 0
        begun = self._clock.monotonic()
        while True:
            try:
                async with self._answered(call, limits) as response:
                    with self._failures_as_ours(call):
                        return await response.read()
            except TooManyRequests as error:
                busy += 1
                # Without Retry-After it is not the server's load but a rule that says no.
                if error.retry_after is None or busy >= patience.busy_attempts:
                    raise
                wait = min(error.retry_after, patience.longest_wait)
            except (Unreachable, ServerFault) as error:
                lost += 1
                spent = self._clock.monotonic() - begun
                again = lost < patience.lost_attempts and spent < patience.request_seconds
                if call.method != "GET" or not again or not _passes(error):
                    raise
                # At once after the first: it was likely a kept connection the server had closed.
                wait = patience.first_backoff * (2 ** (lost - 1) - 1)
            await self._clock.sleep(wait)

    @asynccontextmanager
    async def lines(self, call: Call, idle_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer of lines without end; inside the context the server has agreed.

        Silence of `idle_seconds` raises Stalled, a cut connection Unreachable; an orderly end just
        ends the iteration. Nothing is repeated.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=self._patience.connect_seconds, sock_read=idle_seconds
        )
        async with self._answered(call, limits) as response:
            chunks = self._chunks(call, response)
            async with aclosing(chunks), aclosing(split_lines(chunks)) as lines:
                yield lines

    async def _chunks(
        self, call: Call, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[bytes, None]:
        with self._failures_as_ours(call):
            async for chunk in response.content.iter_any():
                yield chunk

    @asynccontextmanager
    async def _answered(
        self, call: Call, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with self._failures_as_ours(call):
            response = await self._request(call, limits)
            if response.status == 401 and self._credentials.tokens.refused():
                response.release()
                response = await self._request(call, limits)
        async with response:
            if response.status >= 400:
                with self._failures_as_ours(call):
                    body = await response.read()
                raise from_answer(response.status, body, response.headers.get("Retry-After"))
            yield response

    async def _request(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use it in `async with`")
        credentials = self._credentials
        headers = {"Accept": call.accept}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        authorization = await credentials.tokens.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        question = f"?{urlencode(call.query)}" if call.query else ""
        status = CallTally.LOST
        try:
            response = await self._session.request(
                call.method,
                URL(f"{credentials.server}{call.path}{question}", encoded=True),
                data=call.body,
                headers=headers,
                timeout=limits,
                ssl=credentials.ssl_context or True,
                server_hostname=credentials.server_name,
                proxy=credentials.proxy,
                allow_redirects=False,
            )
            status = str(response.status)
            return response
        finally:
            self._tally.answered(self._host, call.method, status)

    @contextmanager
    def _failures_as_ours(self, call: Call) -> Iterator[None]:
        try:
            yield
        except aiohttp.SocketTimeoutError as error:
            raise Stalled(f"{self.server} went silent during {call.method} {call.path}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = str(error) or type(error).__name__
            raise Unreachable(f"cannot reach {self.server}: {problem}") from error


def _passes(error: ApiError) -> bool:
    """Tell whether what kept the server from answering a read is over by itself."""
    # It has waited some seconds for its copy to catch up before it says that it is behind.
    return isinstance(error, Unreachable) or error.has_cause(TOO_LARGE_VERSION)


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a DELETE by itself when the connection is lost."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        # aiohttp's own words for a refused connection name the host twice; the system's do not.
        told = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        # The two caught it answers with a second try; this one it lets through.
        raise aiohttp.ClientConnectionError(str(told) or type(told).__name__) from error
