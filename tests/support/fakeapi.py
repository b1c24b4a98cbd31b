"""A pretend API server on a free port: enough of list, watch and Status for tests of kube/."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from api.jsons import Json, JsonObject

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def status(
    code: int, reason: str = "", message: str = "", headers: dict[str, str] | None = None
) -> Answer:
    """Answer with a Status object."""

    async def answer(_: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return web.json_response(body, status=code, headers=headers)

    return answer


def text(code: int, body: str) -> Answer:
    """Answer in plain text, as proxies do."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body)

    return answer


def json(body: Json, code: int = 200) -> Answer:
    """Answer with this document."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=code)

    return answer


async def hang_up(request: web.Request) -> web.StreamResponse:
    """Close the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def say_nothing(_: web.Request) -> web.StreamResponse:
    """Take the request and never answer it."""
    await asyncio.Event().wait()
    return web.Response()


def stream(*parts: bytes, then: str = "end") -> Answer:
    """Send these bytes as a watch would; then `end` in order, `cut` the line, or `hang`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if then == "cut":
            assert request.transport is not None
            # What was written must leave before the line is cut, or nothing was tested.
            await asyncio.sleep(0.02)
            request.transport.abort()
        elif then == "hang":
            await asyncio.Event().wait()
        return response

    return answer


def event(kind: str, thing: Json) -> bytes:
    """Return one line of a watch."""
    return msgspec.json.encode({"type": kind, "object": thing}) + b"\n"


@dataclass
class FakeApi:
    """Objects of one namespaced kind, and a queue of answers that come before the honest ones.

    `list_answers` and `watch_answers` are taken from the left, one a request; `answers` holds those
    for any other path. A watch replays the log from its resourceVersion and then follows it.
    """

    url: str = ""
    objects: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    uids: dict[tuple[str, str], str] = field(default_factory=dict)
    version: int = 100
    compacted: int = 0
    page_size: int | None = None
    log: list[tuple[int, bytes]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)
    list_answers: deque[Answer] = field(default_factory=deque)
    watch_answers: deque[Answer] = field(default_factory=deque)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None

    def put(self, namespace: str, name: str, data: Json, uid: str | None = None) -> None:
        self.version += 1
        known = (namespace, name) in self.objects
        if uid or not known:
            self.uids[namespace, name] = uid or f"uid-{self.version}"
        meta: JsonObject = {
            "namespace": namespace,
            "name": name,
            "uid": self.uids[namespace, name],
            "resourceVersion": str(self.version),
        }
        thing: JsonObject = {"metadata": meta, "data": {"value": data}}
        self.objects[namespace, name] = thing
        self._publish("MODIFIED" if known else "ADDED", thing)

    def delete(self, namespace: str, name: str) -> None:
        self.version += 1
        thing = self.objects.pop((namespace, name))
        meta = thing["metadata"]
        assert isinstance(meta, dict)
        gone: JsonObject = {**thing, "metadata": {**meta, "resourceVersion": str(self.version)}}
        self._publish("DELETED", gone)

    def bookmark(self) -> None:
        self._publish("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def compact(self) -> None:
        """Forget the log: watches from before now get 410."""
        self.version += 1
        self.compacted = self.version
        self.log.clear()

    def lists(self) -> int:
        return sum("watch" not in request.query for request in self.seen)

    def watches(self) -> list[Seen]:
        return [request for request in self.seen if "watch" in request.query]

    def _publish(self, kind: str, thing: JsonObject) -> None:
        self.log.append((self.version, event(kind, thing)))
        self.changed.set()
        self.changed = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                await request.read(),
            )
        )
        if self.answers:
            return await self.answers.popleft()(request)
        if "watch" in request.query:
            if self.watch_answers:
                return await self.watch_answers.popleft()(request)
            return await self._watch(request)
        if self.list_answers:
            return await self.list_answers.popleft()(request)
        return self._list(request)

    def _list(self, request: web.Request) -> web.StreamResponse:
        limit = self.page_size or int(request.query.get("limit", "500"))
        start = int(request.query.get("continue", "0"))
        items = [self.objects[key] for key in sorted(self.objects)]
        meta: JsonObject = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            meta["continue"] = str(start + limit)
        page: JsonObject = {"metadata": meta, "items": list(items[start : start + limit])}
        return web.json_response(page)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.compacted:
            return await status(410, "Expired", "too old resource version")(request)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            changed = self.changed
            for version, line in list(self.log):
                if version > since or b'"BOOKMARK"' in line:
                    await response.write(line)
            since = max(since, self.version)
            await changed.wait()

    async def start(self, port: int = 0) -> None:
        """Serve on the loopback; without a port, on a free one."""
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        host, bound = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{bound}"

    async def stop(self) -> None:
        """Drop every connection and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[FakeApi]:
    """Serve until the context ends."""
    await api.start()
    try:
        yield api
    finally:
        await api.stop()
