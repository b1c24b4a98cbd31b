"""A reconciler of sets before an API server that stores what is written, look by look."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from api.jsons import Json, JsonObject
from controller.workloads.caches import Caches, caches
from controller.workloads.reconciling import Reconciler
from controller.workloads.views import Choices
from kube.resources import PODCLIQUESETS, Resource
from tests.support.chance import dice
from tests.support.manualclock import LeapingClock
from tests.support.patchapi import PatchApi, patching
from tests.support.sets import clique, set_spec

KEY = ("default", "demo")
STATUS = f"PATCH {PODCLIQUESETS.path(*KEY)}/status"


@dataclass
class Scene:
    """A reconciler whose caches know what it made itself, and no more."""

    api: PatchApi
    clock: LeapingClock
    known: Caches
    reconciler: Reconciler
    leads: bool = True

    def apply(self, pods: int = 2, name: str = "demo", **spec: Json) -> None:
        """Store a set, whether or not admission would let it through."""
        whole = set_spec(clique("a", pods)).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        body: JsonObject = {
            "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 1},
            "spec": {**whole, **spec},
        }
        self.api.put(PODCLIQUESETS.path("default", name), body)
        self.known.observe(PODCLIQUESETS, msgspec.json.encode(body))

    def edit(self, **spec: Json) -> None:
        """Somebody changes the set."""
        path = PODCLIQUESETS.path(*KEY)
        body = copy.deepcopy(self.api.objects[path])
        meta, told = body["metadata"], body["spec"]
        assert isinstance(meta, dict)
        assert isinstance(told, dict)
        meta["generation"] = 2
        told.update(spec)
        self.api.put(path, body)
        self.known.observe(PODCLIQUESETS, msgspec.json.encode(body))

    async def look(self, name: str = "demo") -> list[str]:
        """Look at the set once; give what was written or tried meanwhile."""
        tried: list[str] = []
        self.api.before = tried.append
        await self.reconciler.reconcile(("default", name))
        return tried

    def status(self, field: str) -> list[JsonObject]:
        """What was written into this list of the set's status."""
        told = self.told()[field]
        assert isinstance(told, list)
        return [each for each in told if isinstance(each, dict)]

    def take_statuses(self) -> None:
        """Store what is said of the set, from now on."""
        path = PODCLIQUESETS.path(*KEY)
        self.api.put(f"{path}/status", copy.deepcopy(self.api.objects[path]))

    def told(self) -> JsonObject:
        status = self.api.objects[f"{PODCLIQUESETS.path(*KEY)}/status"]["status"]
        assert isinstance(status, dict)
        return status

    def there(self, kind: Resource) -> list[str]:
        start = f"{kind.path('default')}/"
        return [path for path in self.api.objects if path.startswith(start)]


@asynccontextmanager
async def reconciling() -> AsyncIterator[Scene]:
    """Run an API server, and a reconciler before it."""
    async with patching() as (api, client, clock):
        known = caches(client, dice())
        made: list[Scene] = []
        reconciler = Reconciler(client, clock, known, lambda: made[0].leads, Choices(), "one")
        made.append(Scene(api, clock, known, reconciler))
        yield made[0]
