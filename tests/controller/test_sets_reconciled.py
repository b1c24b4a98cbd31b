"""A set is looked at until there is nothing to do; what is refused waits its turn."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
import pytest

from api.jsons import Json, JsonObject
from controller.workloads.caches import Caches, caches
from controller.workloads.reconciling import Reconciler
from controller.workloads.views import Choices
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SERVICES, Resource
from tests.support.chance import dice
from tests.support.manualclock import LeapingClock
from tests.support.patchapi import PatchApi, patching
from tests.support.sets import clique, set_spec

KEY = ("default", "demo")


@dataclass
class Scene:
    """A reconciler whose caches know what it made itself, and no more."""

    api: PatchApi
    clock: LeapingClock
    known: Caches
    reconciler: Reconciler
    leads: bool = True

    def apply(self, pods: int = 2, **spec: Json) -> None:
        """Store a set, whether or not admission would let it through."""
        whole = set_spec(clique("a", pods)).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        body: JsonObject = {
            "metadata": {"name": "demo", "namespace": "default", "uid": "set", "generation": 1},
            "spec": {**whole, **spec},
        }
        self.api.put(PODCLIQUESETS.path(*KEY), body)
        self.known.observe(PODCLIQUESETS, msgspec.json.encode(body))

    async def look(self) -> list[str]:
        """Look at the set once; give what was written or tried meanwhile."""
        tried: list[str] = []
        self.api.before = tried.append
        await self.reconciler.reconcile(KEY)
        return tried

    def there(self, kind: Resource) -> list[str]:
        start = f"{kind.path('default')}/"
        return [path for path in self.api.objects if path.startswith(start)]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with patching() as (api, client, clock):
        known = caches(client, dice())
        made: list[Scene] = []
        reconciler = Reconciler(client, clock, known, lambda: made[0].leads, Choices(), "one")
        made.append(Scene(api, clock, known, reconciler))
        yield made[0]


async def test_each_look_makes_what_has_its_owner_and_the_last_writes_nothing(
    scene: Scene,
) -> None:
    scene.apply()
    await scene.look()
    assert (len(scene.there(PODCLIQUES)), len(scene.there(PODGANGS))) == (1, 1)
    assert not scene.there(PODS)
    await scene.look()
    assert len(scene.there(PODS)) == 2
    for _ in range(4):
        await scene.look()
        scene.clock.skip(3)
    # Neither statuses nor Services come back to these caches.
    again = [w for w in await scene.look() if not w.endswith(("/status", "/services"))]
    assert again == []


async def test_what_was_refused_is_asked_for_again_only_after_a_while(scene: Scene) -> None:
    stranger: JsonObject = {"metadata": {"name": "demo-0"}}
    scene.api.put(SERVICES.path("default", "demo-0"), stranger)
    scene.apply()
    post = f"POST {SERVICES.path('default')}"
    assert post in await scene.look()
    # The rest goes on meanwhile.
    assert post not in await scene.look()
    assert len(scene.there(PODS)) == 2
    scene.clock.skip(200)
    assert post in await scene.look()
    scene.clock.skip(0.06)
    assert post not in await scene.look()  # each time it waits longer


async def test_who_does_not_lead_writes_nothing(scene: Scene) -> None:
    scene.apply()
    scene.leads = False
    assert await scene.look() == []


async def test_a_set_that_breaks_its_definition_is_left_alone(scene: Scene) -> None:
    scene.apply(replicas="many")
    assert await scene.look() == []


async def test_a_set_of_more_pods_than_anybody_means_is_left_alone(scene: Scene) -> None:
    scene.apply(pods=10_000, replicas=3)
    assert await scene.look() == []


async def test_a_set_that_is_gone_needs_nothing(scene: Scene) -> None:
    assert await scene.look() == []
