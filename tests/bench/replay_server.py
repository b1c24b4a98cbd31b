"""A stand-in for an API server: it lists and watches a fleet of documents, and takes writes.

It is asked the way a real one is: over TLS, page by page, and for watches that carry bookmarks.
What is written is kept and told to those who watch; nobody judges it.
"""

import asyncio
import json
import re
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import jsonpatch
import msgspec
from aiohttp import web

from api.jsons import Json, JsonObject
from certs.issue import Names, issue_authority, issue_leaf
from kube import resources
from kube.clock import SystemClock
from kube.resources import Resource
from tests.bench.replay_documents import Fleet
from tests.support import fakeapi
from tests.support.patchapi import merged_with

LOOPBACK: Final = "127.0.0.1"
BOOKMARKS_EVERY: Final = 20.0
KINDS: Final = {
    kind.path(): kind for kind in vars(resources).values() if isinstance(kind, Resource)
}
_NAMESPACED: Final = re.compile(r"/namespaces/([^/]+)(?=/)")
_SELECTED: Final = re.compile(r"(!?)([^=!,]+)(?:=([^,]*))?")


@dataclass
class ReplayServer:
    """Serves the fleet. `writes` counts what was asked to be written, but for leases."""

    fleet: Fleet
    url: str = ""
    version: int = 10**9  # beyond all that was recorded
    listed: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    objects: dict[str, JsonObject] = field(default_factory=dict)
    _watchers: dict[str, list[asyncio.Queue[bytes]]] = field(default_factory=dict)

    def tell(self, kind: Resource, word: str, document: bytes) -> None:
        """Send an event to all that watch the kind; it is another version of the object."""
        for queue in self._watchers.get(kind.full_name, ()):
            queue.put_nowait(b'{"type":"%s","object":%s}\n' % (word.encode(), document))

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def watched(self, kind: Resource) -> int:
        """How many watch a kind."""
        return len(self._watchers.get(kind.full_name, ()))

    def waiting(self) -> int:
        """How many events have not been taken by who watches."""
        return sum(queue.qsize() for queues in self._watchers.values() for queue in queues)

    def put(self, path: str, thing: JsonObject) -> None:
        """Store an object by its path, as a new version of itself, and tell who watches."""
        word = "MODIFIED" if path in self.objects else "ADDED"
        meta = thing["metadata"]
        assert isinstance(meta, dict)
        meta["resourceVersion"] = str(self.next_version())
        self.objects[path] = thing
        kind = KINDS[_NAMESPACED.sub("", path.rsplit("/", 1)[0])]
        self.tell(kind, word, msgspec.json.encode(thing))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        kind = KINDS.get(_NAMESPACED.sub("", request.path))
        if request.method == "GET" and kind is not None:
            return await self._collection(request, kind)
        if request.method == "GET":
            found = self._found(request.path)
            missing = await fakeapi.status(404, "NotFound")(request)
            return missing if found is None else web.json_response(found)
        return await self._write(request)

    async def _collection(self, request: web.Request, kind: Resource) -> web.StreamResponse:
        name = kind.full_name
        known = self.fleet.count(name) or any(line.kind == name for line in self.fleet.lines)
        if not known and kind not in SERVED_EMPTY:
            return await fakeapi.status(404, "NotFound")(request)
        if "watch" in request.query:
            return await self._watch(request, kind)
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query.get("limit", "500"))
        meta: JsonObject = {"resourceVersion": str(self.version)}
        if not self.fleet.count(name):
            items = [bytes(raw) for raw in self.fleet.single(name) if _chosen(raw, request)]
        else:
            items = list(self.fleet.documents(name, begin, end))
            if end < self.fleet.count(name):
                meta["continue"] = str(end)
            elif end - begin > 1:
                self.listed[name] += 1
        head: JsonObject = {
            "kind": f"{kind.kind}List",
            "apiVersion": kind.api_version,
            "metadata": meta,
        }
        return web.Response(body=_page(head, items), content_type="application/json")

    async def _watch(self, request: web.Request, kind: Resource) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        watchers = self._watchers.setdefault(kind.full_name, [])
        watchers.append(queue)
        try:
            while True:
                try:
                    async with asyncio.timeout(BOOKMARKS_EVERY):
                        line = await queue.get()
                except TimeoutError:
                    meta: JsonObject = {"resourceVersion": str(self.version)}
                    line = fakeapi.event("BOOKMARK", {"kind": kind.kind, "metadata": meta})
                await response.write(line)
        finally:
            watchers.remove(queue)

    async def _write(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        path = request.path.removesuffix("/status")
        if "/leases" not in path:
            self.writes[f"{request.method} {_NAMESPACED.sub('', path).rsplit('/', 1)[0]}"] += 1
        if request.method == "POST":
            path = f"{path}/{body['metadata'].get('name', self.version)}"
            self.put(path, {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.version}"}})
            return web.json_response(self.objects[path], status=201)
        found = self._found(path)
        if found is None:
            return await fakeapi.status(404, "NotFound")(request)
        if request.method == "DELETE":
            return web.json_response(found)
        fresh = (
            jsonpatch.apply_patch(found, body)
            if request.content_type.endswith("json-patch+json")
            else _merged(found, body)
        )
        self.objects.setdefault(path, found)
        self.put(path, fresh)
        return web.json_response(fresh)

    def _found(self, path: str) -> JsonObject | None:
        """Give what was written under a path, or what the fleet has there."""
        if path in self.objects:
            return self.objects[path]
        kind = KINDS.get(_NAMESPACED.sub("", path.rsplit("/", 1)[0]))
        name, number = path.rsplit("/", 1)[1], re.search(r"-(\d{5})", path.rsplit("/", 1)[1])
        if kind is None:
            return None
        every: Iterable[bytes] = map(bytes, self.fleet.single(kind.full_name))
        if number is not None and self.fleet.count(kind.full_name):
            each, which = len(self.fleet.templates[kind.full_name]), int(number[1])
            every = self.fleet.documents(kind.full_name, which * each, (which + 1) * each)
        documents: Iterable[JsonObject] = map(json.loads, every)
        return next((each for each in documents if _named(each) == name), None)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Path]:
        """Serve on the loopback; gives a kubeconfig."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{tail:.*}", self.handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        authority = issue_authority(SystemClock().now())
        leaf = issue_leaf(authority, Names.of(LOOPBACK), SystemClock().now())
        with tempfile.TemporaryDirectory() as folder:
            files = {"ca.crt": authority.certificate_pem, "tls.crt": leaf.certificate_pem}
            for name, content in (files | {"tls.key": leaf.key_pem, "token": b"replayed"}).items():
                (Path(folder) / name).write_bytes(content)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(Path(folder) / "tls.crt", Path(folder) / "tls.key")
            await web.TCPSite(runner, LOOPBACK, 0, ssl_context=context).start()
            self.url = f"https://{LOOPBACK}:{runner.addresses[0][1]}"
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(self.url)))
            try:
                yield kubeconfig
            finally:
                await runner.cleanup()


SERVED_EMPTY: Final = (
    resources.SCALING_GROUPS, resources.TOPOLOGY_BINDINGS, resources.DAEMONSETS,
    resources.VOLUME_CLAIMS, resources.VOLUMES, resources.STORAGE_CLASSES,
    resources.RESOURCE_CLAIMS, resources.CLAIM_TEMPLATES, resources.DEVICE_SLICES,
    resources.DEVICE_CLASSES, resources.AUTOSCALERS, resources.ROLES, resources.ROLE_BINDINGS,
    resources.ENDPOINTSLICES,
)  # fmt: skip


def _kubeconfig(url: str) -> JsonObject:
    cluster: JsonObject = {"server": url, "certificate-authority": "ca.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "replay", "cluster": cluster}],
        "users": [{"name": "replay", "user": {"tokenFile": "token"}}],
        "contexts": [{"name": "replay", "context": {"cluster": "replay", "user": "replay"}}],
        "current-context": "replay",
    }


def _page(head: JsonObject, items: list[bytes]) -> bytes:
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _chosen(raw: msgspec.Raw, request: web.Request) -> bool:
    """Whether a list that names one object by a field means this one."""
    wanted = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
    return not wanted or _named(json.loads(bytes(raw))) == wanted


def _merged(found: JsonObject, body: JsonObject) -> JsonObject:
    """Merge what is written; of conditions, those of the same type."""
    fresh = merged_with(found, body)
    before, now = _conditions(found), _conditions(body)
    if now:
        kept = [each for each in before if all(each["type"] != new["type"] for new in now)]
        status = fresh["status"]
        assert isinstance(status, dict)
        status["conditions"] = [*kept, *now]
    return fresh


def _conditions(thing: JsonObject) -> list[JsonObject]:
    status = thing.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _named(thing: JsonObject) -> Json:
    meta = thing["metadata"]
    assert isinstance(meta, dict)
    return meta["name"]
