"""A pretend API server that keeps whole objects and carries out guarded patches."""

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import jsonpatch
from aiohttp import web

from api.jsons import Json, JsonObject
from kube.access import Credentials
from kube.client import Client
from tests.support import fakeapi
from tests.support.manualclock import LeapingClock
from tests.support.talking import NOBODY

_JSON_PATCH = "application/json-patch+json"


@dataclass
class PatchApi:
    """Objects by path. `before` is called ahead of each write, as others might act just then."""

    objects: dict[str, JsonObject] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    before: Callable[[str], None] = field(default=lambda _: None)
    version: int = 100

    def put(self, path: str, thing: JsonObject) -> None:
        """Store an object as a new version of itself."""
        self.version += 1
        meta = thing.setdefault("metadata", {})
        assert isinstance(meta, dict)
        meta["resourceVersion"] = str(self.version)
        self.objects[path] = thing

    def touch(self, path: str) -> None:
        """Somebody writes the object in between and changes nothing of interest."""
        self.put(path, copy.deepcopy(self.objects[path]))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method in ("GET", "DELETE"):
            return await self._get(request)
        self.before(f"{request.method} {request.path}")
        body = json.loads(await request.read())
        if request.method == "POST":
            path = f"{request.path}/{body['metadata']['name']}"
            if path in self.objects:
                return await fakeapi.status(409, "AlreadyExists")(request)
            fresh = body
            fresh["metadata"].setdefault("uid", f"uid-{self.version}")
        else:
            path = request.path
            if path not in self.objects:
                path = path.removesuffix("/status")
            found = self.objects.get(path)
            if found is None:
                return await fakeapi.status(404, "NotFound")(request)
            try:
                if request.content_type == _JSON_PATCH:
                    fresh = jsonpatch.apply_patch(found, body)
                else:
                    fresh = merged_with(found, body)
            except jsonpatch.JsonPatchTestFailed:
                return await fakeapi.status(422, "Invalid")(request)
            if version_of(fresh) != version_of(found):
                return await fakeapi.status(409, "Conflict")(request)
        self.put(path, fresh)
        self.writes.append(path.rsplit("/", 2)[-1])
        return web.json_response(fresh)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        found = self.objects.get(request.path)
        if found is None:
            return await fakeapi.status(404, "NotFound")(request)
        if request.method == "DELETE":
            self.before(f"{request.method} {request.path}")
            del self.objects[request.path]
            self.writes.append(f"-{request.path.rsplit('/', 2)[-1]}")
        return web.json_response(found)


def merged_with(found: JsonObject, body: JsonObject) -> JsonObject:
    """Apply a merge patch."""
    merged = copy.deepcopy(found)
    for key, value in body.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merged_with(old if isinstance(old, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def version_of(thing: JsonObject) -> Json:
    meta = thing["metadata"]
    assert isinstance(meta, dict)
    return meta["resourceVersion"]


@asynccontextmanager
async def patching() -> AsyncIterator[tuple[PatchApi, Client, LeapingClock]]:
    """Serve on a free port, with a client and its clock."""
    api = PatchApi()
    async with serving(api) as (client, clock):
        yield api, client, clock


@asynccontextmanager
async def serving(api: PatchApi) -> AsyncIterator[tuple[Client, LeapingClock]]:
    """Serve these objects on a free port; gives a client and its clock."""
    clock = LeapingClock()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        credentials = Credentials(f"http://{host}:{port}", None, NOBODY)
        async with Client(credentials, "tester", clock) as client:
            yield client, clock
    finally:
        await runner.cleanup()
