"""A scanner before a server of objects: what is there, and what was said of it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from typing_extensions import override

from api import names
from api.jsons import JsonObject
from controller.gangs.scanning import (
    Scanner,
)
from kube.resources import (
    CONFIGMAPS,
    PODCLIQUESETS,
    POLICY_REPORTS,
    Resource,
)
from tests.policies.drafts import draft
from tests.support import fakeapi
from tests.support.manualclock import LeapingClock
from tests.support.patchapi import PatchApi, serving

FEW: Final = """
queues:
- {name: q, namespaces: ['*'], default: true, submitters: {users: [anna]}, limits: {gangs: 1}}
rules:
- {id: digests, images: {requireDigest: true}, mode: warn}
"""
A_SET: Final = {"kind": "PodCliqueSet"}
SCAN: Final = CONFIGMAPS.path("ours", names.SCAN_CONFIG)
POLICY: Final = CONFIGMAPS.path("ours", names.POLICY_CONFIG)
KEPT: Final = CONFIGMAPS.path("ours", names.KEPT_POLICY_CONFIG)


@dataclass
class ListingApi(PatchApi):
    """Lists too, by what is in its paths; kinds that are not `served` it does not know."""

    served: set[str] = field(default_factory=lambda: {"podcliquesets", "pods"})
    asked: list[str] = field(default_factory=list)

    @override
    async def _get(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        plural = request.path.rsplit("/", 1)[-1]
        if request.path in self.objects:
            return await super()._get(request)
        if plural not in self.served:
            return await fakeapi.status(404, "NotFound")(request)
        items = [
            each
            for path, each in self.objects.items()
            if path.split("/")[-2] == plural and path.startswith(request.path.rsplit("/", 1)[0])
        ]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


@dataclass
class Stand:
    api: ListingApi
    clock: LeapingClock
    scanner: Scanner
    leads: list[int | None]

    def says(self, text: str) -> None:
        self.put(CONFIGMAPS, {"data": {names.POLICY_KEY: text}}, names.POLICY_CONFIG, "ours")

    def put(self, kind: Resource, thing: JsonObject, name: str, namespace: str = "team") -> None:
        metadata = thing.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        where: JsonObject = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
        whole: JsonObject = {**thing, "kind": kind.kind, "metadata": {**known, **where}}
        self.api.put(kind.path(namespace, name), whole)

    def a_set(self, name: str, replicas: int = 1, namespace: str = "team") -> None:
        thing = draft(name=name)
        spec = thing["spec"]
        assert isinstance(spec, dict)
        self.put(PODCLIQUESETS, {**thing, "spec": {**spec, "replicas": replicas}}, name, namespace)

    def said(self) -> JsonObject:
        data = self.api.objects[SCAN]["data"]
        assert isinstance(data, dict)
        found: JsonObject = json.loads(str(data[names.SCAN_KEY]))
        return found

    def broken(self) -> dict[str, int]:
        found = self.said()["broken"]
        assert isinstance(found, list)
        return {str(each["rule"]): int(each["objects"]) for each in found}  # type: ignore[index,call-overload,arg-type]

    def report(self, namespace: str = "team") -> JsonObject | None:
        return self.api.objects.get(POLICY_REPORTS.path(namespace, names.POLICY_REPORT))


@asynccontextmanager
async def standing(*, reports: bool = False, sets: bool = True) -> AsyncIterator[Stand]:
    api = ListingApi()
    api.put(SCAN, {"metadata": {"name": names.SCAN_CONFIG}})
    api.put(KEPT, {"metadata": {"name": names.KEPT_POLICY_CONFIG}})
    if reports:
        api.served.add(POLICY_REPORTS.plural)
    leads: list[int | None] = [1]
    async with serving(api) as (client, clock):
        scanner = Scanner(client, "ours", lambda: leads[-1], sets=sets)
        yield Stand(api, clock, scanner, leads)
