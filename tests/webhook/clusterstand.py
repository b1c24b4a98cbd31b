"""A pretend API server with the three kinds that a webhook follows, and single objects to get."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from typing_extensions import override

from api import names
from api.jsons import Json, JsonObject
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi

BINDINGS = "clustertopologybindings"
SETS = "podcliquesets"
CONFIGS = "configmaps"
LEVELS: JsonObject = {"levels": [{"domain": "rack", "key": names.RACK_KEY}]}


class Kind(FakeApi):
    """Objects of one kind, whole."""

    def place(
        self, namespace: str, name: str, body: JsonObject, annotations: JsonObject | None = None
    ) -> None:
        """Store an object, and tell those who watch."""
        self.version += 1
        known = (namespace, name) in self.objects
        meta: JsonObject = {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(self.version),
            "annotations": annotations or {},
        }
        thing: JsonObject = {"metadata": meta, **body}
        self.objects[namespace, name] = thing
        self._publish("MODIFIED" if known else "ADDED", thing)


@dataclass
class Stand(FakeApi):
    """All kinds behind one address."""

    kinds: dict[str, Kind] = field(
        default_factory=lambda: {plural: Kind() for plural in (BINDINGS, SETS, CONFIGS)}
    )
    gets: int = 0
    silent: bool = False

    @override
    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.silent:
            await asyncio.Event().wait()
        plural = next(part for part in request.path.split("/") if part in self.kinds)
        kind = self.kinds[plural]
        before, _, name = request.path.partition(f"/{plural}")
        if not name or kind.answers:
            return await kind.handle(request)
        self.gets += 1
        namespace = before.partition("/namespaces/")[2]
        found = kind.objects.get((namespace, name[1:]))
        if found is None:
            return await fakeapi.status(404, "NotFound", f"{name[1:]} is not there")(request)
        return web.json_response(cast("Json", found))

    def bind(self, name: str, levels: JsonObject = LEVELS) -> None:
        """Store a ClusterTopologyBinding."""
        self.kinds[BINDINGS].place("", name, {"spec": levels})

    def config(self, name: str, **data: str) -> None:
        """Store one of our ConfigMaps."""
        self.kinds[CONFIGS].place(names.NAMESPACE, name, {"data": cast("Json", data)})


@asynccontextmanager
async def standing(stand: Stand) -> AsyncIterator[Stand]:
    """Serve until the context ends."""
    async with fakeapi.serving(stand):
        yield stand
