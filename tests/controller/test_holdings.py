"""Whose an object is: told by owners' UIDs up to the set, within one namespace, and by kind."""

import copy
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from controller.workloads import leaving
from controller.workloads.caches import Caches, caches
from controller.workloads.holdings import Holdings
from controller.workloads.stepping import Remove, Step
from controller.workloads.views import Choices, SetView
from kube.client import Listing, Scope, WatchStart
from kube.clock import Clock
from kube.objects import Key
from kube.resources import (
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICES,
    TOPOLOGY_BINDINGS,
    Resource,
)
from tests.support.manualclock import ManualClock
from tests.support.sets import clique, set_spec
from tests.support.worlds import World

D = TypeVar("D")
KEY = ("default", "demo")
GROUP: JsonObject = {"name": "model", "cliqueNames": ["worker"], "replicas": 2}


class Silent:
    """A source that is never asked: what is known is put into the caches by hand."""

    def __init__(self) -> None:
        self.clock: Clock = ManualClock()

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        raise NotImplementedError

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError


class Known:
    """What `workloads` knows, and whom it was woken for."""

    def __init__(self, world: World) -> None:
        self.caches: Caches = caches(Silent(), random.Random(1))  # noqa: S311 - jitter, not secrets
        self.woken: list[Key] = []
        self.holdings = Holdings(self.caches, self.woken.append)
        self._version = 1000
        for (kind, _), body in world.objects.items():
            self.put(kind, body)

    def put(self, kind: Resource, body: JsonObject, **metadata: Json) -> None:
        self._version += 1
        told = copy.deepcopy(body)
        meta = part(told, "metadata")
        meta.update({"namespace": "default", **metadata, "resourceVersion": str(self._version)})
        self.caches.observe(kind, msgspec.json.encode(told))

    def view(self) -> SetView:
        found = self.holdings.view(KEY, Choices(), ())
        assert found is not None
        return found


def part(body: JsonObject, name: str) -> JsonObject:
    found = body[name]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def world() -> World:
    made = World(set_spec(clique("router", 2), clique("worker", 1), groups=[GROUP]))
    made.settle()
    return made


def test_a_view_holds_all_that_belongs_to_the_set_however_far_below_it(world: World) -> None:
    seen, expected = Known(world).view(), world.view()
    assert expected is not None
    assert seen.cliques.keys() == expected.cliques.keys()
    assert len(seen.cliques) == 3
    assert seen.groups.keys() == {"demo-0-model"}
    assert seen.gangs.keys() == {"demo-0", "demo-0-model-0"}
    assert {name: len(pods) for name, pods in seen.pods.items()} == {
        "demo-0-router": 2, "demo-0-model-0-worker": 1, "demo-0-model-1-worker": 1,
    }  # fmt: skip


def test_every_change_below_a_set_wakes_it(world: World) -> None:
    known = Known(world)
    for kind in (SCALING_GROUPS, PODCLIQUES, PODGANGS, PODS):
        known.woken.clear()
        known.put(kind, min(world.of(kind).items())[1])
        assert known.woken == [KEY]


def test_what_names_the_set_of_another_namespace_is_not_the_sets(world: World) -> None:
    known = Known(world)
    for kind in (PODCLIQUES, PODS):
        known.put(kind, min(world.of(kind).items())[1], namespace="elsewhere", uid="forged")
    assert {namespace for namespace, _ in known.woken[-2:]} == {"elsewhere"}
    seen = known.view()
    assert all(c.metadata.namespace == "default" for c in seen.cliques.values())
    assert sum(map(len, seen.pods.values())) == 4


def test_an_owner_of_another_kind_is_no_owner(world: World) -> None:
    known = Known(world)
    owner: JsonObject = {"kind": "ConfigMap", "name": "demo", "uid": "set-uid", "controller": True}
    known.put(
        PODGANGS, world.of(PODGANGS)["demo-0"], name="other", uid="o", ownerReferences=[owner]
    )
    assert "other" not in known.view().gangs


def test_labels_and_names_make_nothing_the_sets(world: World) -> None:
    known = Known(world)
    body = world.of(PODCLIQUES)["demo-0-router"]
    known.put(PODCLIQUES, body, name="demo-0-other", uid="o", ownerReferences=[])
    assert "demo-0-other" not in known.view().cliques


def test_what_leaves_its_owner_is_the_sets_no_more(world: World) -> None:
    known = Known(world)
    known.woken.clear()
    known.put(PODGANGS, world.of(PODGANGS)["demo-0"], ownerReferences=[])
    assert "demo-0" not in known.view().gangs
    assert KEY in known.woken


def removed(steps: list[Step]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for step in steps:
        if isinstance(step, Remove):
            found.setdefault(step.resource.plural, []).append(step.name)
    return found


def test_what_is_going_without_a_set_loses_its_pods_and_what_stays_is_left_alone(
    world: World,
) -> None:
    del world.objects[PODCLIQUESETS, "demo"]
    known = Known(world)
    assert known.holdings.view(KEY, Choices(), ()) is None
    assert removed([*leaving.clearing(known.holdings.strays("default"))]) == {}
    going = world.of(PODCLIQUES)["demo-0-router"]
    known.put(PODCLIQUES, going, deletionTimestamp="2026-01-01T00:00:00Z")
    assert ("default", "demo") in known.woken or ("default", "") in known.woken
    found = removed([*leaving.clearing(known.holdings.strays("default"))])
    assert {kind: len(each) for kind, each in found.items()} == {"pods": 2}
    assert all(name.startswith("demo-0-router-") for name in found["pods"])


def test_what_is_going_with_its_set_is_no_stray(world: World) -> None:
    known = Known(world)
    going = world.of(PODCLIQUES)["demo-0-router"]
    known.put(PODCLIQUES, going, deletionTimestamp="2026-01-01T00:00:00Z")
    assert not known.holdings.strays("default").cliques


def test_an_object_that_cannot_be_read_hides_no_other(world: World) -> None:
    known = Known(world)
    odd = world.of(PODCLIQUES)["demo-0-router"]
    known.put(PODCLIQUES, {**odd, "spec": {"replicas": "many"}}, generation=9)
    assert known.view().cliques.keys() == {"demo-0-model-0-worker", "demo-0-model-1-worker"}


def test_a_topology_wakes_every_set_when_it_says_something_new(world: World) -> None:
    known = Known(world)
    binding: JsonObject = {
        "metadata": {"name": "network", "uid": "b"},
        "spec": {"levels": [{"domain": "zone", "key": "z"}, {"domain": "rack", "key": "r"}]},
    }
    known.woken.clear()
    known.put(TOPOLOGY_BINDINGS, binding, namespace="")
    assert known.woken == [KEY]
    assert known.view().levels == {"network": {"zone": "z", "rack": "r"}}
    known.put(TOPOLOGY_BINDINGS, binding, namespace="")
    assert known.woken == [KEY]


def test_whole_objects_are_kept_without_the_record_of_their_fields(world: World) -> None:
    known = Known(world)
    service = world.of(SERVICES)["demo-0"]
    known.put(SERVICES, service, managedFields=[{"manager": names.WORKLOADS_MANAGER}])
    # No cache has listed yet, so that nobody may take what is missing for gone.
    assert known.view().things == {}
