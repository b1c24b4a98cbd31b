"""A proxy in front of the API server that kills its client at a chosen write.

The client dies by SIGKILL after its n-th write was carried out and before it hears of that: the
hardest instant, since its successor finds a write that nobody knows to have succeeded. Which
writes count is for the test to say, so that one it means is met however the others fall.
"""

import asyncio
import os
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import yaml
from aiohttp import web

_WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})
_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length"})


def every_write(_write: str) -> bool:
    """Count whatever is written."""
    return True


@dataclass
class KillingProxy:
    """Forwards everything; `kill_after` counted writes later it kills `pid`. Leases never count."""

    server: str
    tls: ssl.SSLContext
    kill_after: int
    counts: Callable[[str], bool] = every_write
    pid: int = 0
    writes: list[str] = field(default_factory=list)
    fired: bool = False

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
        )
        application = web.Application(client_max_size=8 << 20)
        application.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._one_at_a_time = asyncio.Lock()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if request.method not in _WRITES or "/leases" in request.path:
            return await self._pass_on(request)
        async with self._one_at_a_time:
            if self.fired or self.kill_after == 0:
                self._fire()
                return web.Response(status=503)
            answer = await self._pass_on(request)
            self.writes.append(f"{request.method} {request.path} {answer.status}")
            if len([write for write in self.writes if self.counts(write)]) == self.kill_after:
                self._fire()
                # Whatever is still in its buffers, the client is not there to read it.
                return web.Response(status=503)
            return answer

    def _fire(self) -> None:
        if not self.fired:
            self.fired = True
            os.kill(self.pid, signal.SIGKILL)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        body = await request.read()
        counts = request.method in _WRITES and "/leases" not in request.path
        async with self._session.request(
            request.method,
            f"{self.server}{request.raw_path}",
            headers=headers,
            data=body or None,
            ssl=self.tls,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            passed = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            if counts:
                return web.Response(status=answer.status, headers=passed, body=await answer.read())
            stream = web.StreamResponse(status=answer.status, headers=passed)
            await stream.prepare(request)
            async for chunk in answer.content.iter_any():
                await stream.write(chunk)
            await stream.write_eof()
            return stream


def through(proxy: KillingProxy, kubeconfig: Path, to: Path) -> Path:
    """Write the component's kubeconfig with the proxy as its server."""
    config = yaml.safe_load(kubeconfig.read_text())
    for cluster in config["clusters"]:
        cluster["cluster"] = {"server": proxy.url}
    to.write_text(yaml.safe_dump(config))
    return to
