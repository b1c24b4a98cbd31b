"""A set is looked at until there is nothing to do; what is refused waits its turn."""

import asyncio
import copy
from collections.abc import AsyncIterator

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from controller.voicing import Tell
from controller.workloads.reconciling import TOO_LARGE
from controller.workloads.settling import LONGEST
from controller.workloads.speaking import CALM
from kube.resources import AUTOSCALERS, PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SERVICES
from tests.support.sets import clique
from tests.support.setscenes import KEY, STATUS, Scene, reconciling

POST_SCALER = f"POST {AUTOSCALERS.path('default')}"


async def refused(scene: Scene) -> None:
    """Apply a set whose autoscaler would have the name of a stranger's, and have a first look."""
    scene.api.put(AUTOSCALERS.path("default", "demo-0-a"), {"metadata": {"name": "demo-0-a"}})
    scaled: JsonObject = {"minReplicas": 2, "maxReplicas": 9}
    scene.apply(template={"cliques": [clique("a", 2, autoScalingConfig=scaled)]})
    await scene.look()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with reconciling() as made:
        yield made


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
    # Statuses do not come back to these caches.
    again = [w for w in await scene.look() if not w.endswith("/status")]
    assert again == []


async def test_what_was_refused_is_asked_for_again_only_after_a_while(scene: Scene) -> None:
    await refused(scene)
    assert POST_SCALER in await scene.look()
    # The rest goes on meanwhile.
    assert len(scene.there(PODS)) == 2
    assert POST_SCALER not in await scene.look()
    scene.clock.skip(200)
    assert POST_SCALER in await scene.look()
    scene.clock.skip(0.06)
    assert POST_SCALER not in await scene.look()  # each time it waits longer


async def test_who_does_not_lead_writes_nothing(scene: Scene) -> None:
    scene.apply()
    scene.leads = False
    assert await scene.look() == []


async def test_a_set_that_breaks_its_definition_is_left_alone(scene: Scene) -> None:
    scene.apply(replicas="many")
    scene.take_statuses()
    assert await scene.look() == [STATUS]
    (error,) = scene.status("lastErrors")
    assert error["code"] == "ERR_READ_PODCLIQUESET"
    assert str(error["description"]).startswith("demo cannot be read and is left alone: replicas: ")
    assert not scene.there(PODCLIQUES)


async def test_a_podclique_that_breaks_its_definition_is_told_of_on_its_set(scene: Scene) -> None:
    scene.apply()
    for _ in range(3):
        await scene.look()
    path = PODCLIQUES.path("default", "demo-0-a")
    body = copy.deepcopy(scene.api.objects[path])
    body["spec"] = {"replicas": "many"}
    meta = body["metadata"]
    assert isinstance(meta, dict)
    meta.update(generation=7, resourceVersion="777")
    scene.known.observe(PODCLIQUES, msgspec.json.encode(body))
    scene.clock.skip(3)
    scene.take_statuses()
    tried = await scene.look()
    assert f"POST {PODCLIQUES.path('default')}" not in tried
    (error,) = scene.status("lastErrors")
    assert error["code"] == "ERR_READ_PODCLIQUE"


async def test_a_set_that_breaks_its_definition_can_go(scene: Scene) -> None:
    scene.apply(replicas="many")
    body = scene.api.objects[PODCLIQUESETS.path(*KEY)]
    going: JsonObject = {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": [names.SET_FINALIZER, "example.com/mine"],
    }
    meta = body["metadata"]
    assert isinstance(meta, dict)
    meta.update(going)
    scene.api.put(PODCLIQUESETS.path(*KEY), body)
    scene.known.observe(PODCLIQUESETS, msgspec.json.encode(body))
    await scene.look()
    left = scene.api.objects[PODCLIQUESETS.path(*KEY)]["metadata"]
    assert isinstance(left, dict)
    assert left["finalizers"] == ["example.com/mine"]


async def test_a_set_of_more_pods_than_anybody_means_is_left_alone(scene: Scene) -> None:
    scene.apply(pods=10_000, replicas=3)
    scene.take_statuses()
    assert await scene.look() == [STATUS]
    (error,) = scene.status("lastErrors")
    assert error["code"] == "ERR_TOO_MANY_PODS"
    assert "more than 20000 pods" in str(error["description"])
    assert scene.reconciler.voice.has_told(
        Tell(PODCLIQUESETS, "demo", "demo", "ReconcileFailed", TOO_LARGE, warning=True)
    )


async def test_what_was_said_of_a_set_before_it_was_left_alone_stays(scene: Scene) -> None:
    before: JsonObject = {
        "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2, "observedGeneration": 4,
    }  # fmt: skip
    scene.apply(pods=10_000, replicas=3)
    said: JsonObject = {
        "status": "True", "reason": "x", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    both: list[Json] = [{"type": "Progressing", **said}, {"type": "example.com/Mine", **said}]
    status: JsonObject = {**before, "conditions": both}
    body = {**scene.api.objects[PODCLIQUESETS.path(*KEY)], "status": status}
    scene.api.put(PODCLIQUESETS.path(*KEY), body)
    scene.known.observe(PODCLIQUESETS, msgspec.json.encode(body))
    scene.take_statuses()
    assert await scene.look() == [STATUS]
    assert before.items() <= scene.told().items()
    # Others' conditions stay without being said again.
    assert [each["type"] for each in scene.status("conditions")] == ["Progressing"]
    scene.clock.skip(30)
    assert await scene.look() == []


async def test_a_set_that_is_gone_needs_nothing(scene: Scene) -> None:
    assert await scene.look() == []


async def test_while_a_set_is_being_made_its_statuses_wait_the_longer_the_longer_it_takes(
    scene: Scene,
) -> None:
    tried: list[str] = []

    def slowly(write: str) -> None:
        tried.append(write)
        scene.clock.skip(2)

    scene.api.before = slowly
    scene.apply()
    await scene.reconciler.reconcile(KEY)  # makes the clique and its gang
    del tried[:]
    await scene.reconciler.reconcile(KEY)  # makes the pods
    assert len(scene.there(PODS)) == 2
    assert not [w for w in tried if f"/{PODCLIQUES.plural}/" in w]
    scene.clock.skip(30)
    await scene.reconciler.reconcile(KEY)
    assert [w for w in tried if f"/{PODCLIQUES.plural}/" in w]


async def test_a_set_is_spoken_of_when_no_other_is_being_made_any_more(scene: Scene) -> None:
    scene.apply()
    await scene.look()
    await scene.look()
    scene.clock.skip(2)  # and its own making is no reason any more
    scene.apply(name="other")
    await scene.look("other")
    assert STATUS not in await scene.look()
    scene.clock.skip(0.3)
    assert STATUS not in await scene.look(), "it has something to say, that may yet change"
    scene.clock.skip(LONGEST)
    await scene.look()  # that its gang is whole was told only now, and its own status says so too
    scene.clock.skip(LONGEST)
    assert STATUS in await scene.look()


async def test_that_templates_were_changed_is_told_though_others_are_being_made(
    scene: Scene,
) -> None:
    scene.apply()
    await scene.look()
    await scene.look()
    scene.apply(name="other")
    await scene.look("other")
    assert STATUS not in await scene.look()
    two: JsonObject = {"containers": [{"name": "main", "image": "registry.example/two"}]}
    written = clique("a", 2, podSpec=two)
    scene.edit(template={"cliques": [written]}, updateStrategy={"type": "OnDelete"})
    scene.take_statuses()
    assert STATUS in await scene.look()
    progress = scene.told()["updateProgress"]
    assert isinstance(progress, dict)
    assert progress["updateStartedAt"]


async def test_that_a_gang_is_whole_is_told_when_no_other_set_is_being_made_any_more(
    scene: Scene,
) -> None:
    gang = f"PATCH {PODGANGS.path('default', 'demo-0')}/status"
    scene.apply()
    await scene.look()
    scene.apply(name="other")
    await scene.look("other")
    await scene.look()
    assert len(scene.there(PODS)) == 2
    await scene.look("other")
    assert gang not in await scene.look()
    scene.clock.skip(CALM)
    assert gang in await scene.look()


@pytest.mark.parametrize(("others", "made_at_once"), [(1, 1), (18, 0)])
async def test_a_service_waits_while_many_others_are_being_made(
    scene: Scene, others: int, made_at_once: int
) -> None:
    scene.apply()
    await scene.look()
    await scene.look()
    start(scene)
    for number in range(others):
        scene.apply(name=f"other-{number}")
        await scene.look(f"other-{number}")
    await scene.look()
    assert len(scene.there(SERVICES)) == made_at_once
    scene.clock.skip(CALM)
    await scene.look()
    assert len(scene.there(SERVICES)) == 1


async def test_at_calm_services_of_a_crowd_do_not_wait_for_each_other(scene: Scene) -> None:
    every = [f"set-{number}" for number in range(20)]
    for name in every:
        scene.apply(name=name)
        await scene.look(name)
    for name in every:
        await scene.look(name)
    start(scene)
    for name in every:
        await scene.look(name)
    assert scene.there(SERVICES) == []
    scene.clock.skip(CALM)
    for name in every:
        await scene.look(name)
    assert len(scene.there(SERVICES)) == len(every)


def start(scene: Scene) -> None:
    """Have all pods run that are there."""
    for path in scene.there(PODS):
        pod = copy.deepcopy(scene.api.objects[path])
        assert isinstance(pod["spec"], dict)
        pod["spec"] |= {"nodeName": "n1", "schedulingGates": []}
        pod["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
        scene.api.put(path, pod)
        scene.known.observe(PODS, msgspec.json.encode(pod))


async def test_of_what_is_refused_people_hear_though_others_are_being_made(scene: Scene) -> None:
    await refused(scene)
    await scene.look()
    scene.apply(name="other")
    await scene.look("other")
    assert STATUS in await scene.look()


async def test_what_is_refused_for_ever_holds_up_nothing_that_fails_for_a_moment(
    scene: Scene,
) -> None:
    await refused(scene)
    await scene.look()
    for _ in range(12):
        scene.clock.skip(200)
        await scene.look()
    clique_path = PODCLIQUES.path("default", "demo-1-a")
    scene.api.put(clique_path, {"metadata": {"name": "demo-1-a"}})
    scene.edit(replicas=2)
    post = f"POST {PODCLIQUES.path('default')}"
    assert post in await scene.look()
    del scene.api.objects[clique_path]
    scene.clock.skip(0.1)
    assert post in await scene.look()


async def test_a_wait_that_ends_while_a_set_is_looked_at_is_told_as_none(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await refused(scene)
    assert POST_SCALER in await scene.look()
    scene.api.put(PODCLIQUES.path("default", "demo-1-a"), {"metadata": {"name": "demo-1-a"}})
    scene.edit(replicas=2)
    caplog.clear()
    scene.api.before = lambda _write: scene.clock.skip(100)
    await scene.reconciler.reconcile(KEY)
    assert "trying again in 0.00 s" in caplog.text


async def test_what_goes_without_an_owner_is_let_go_of_in_the_end_though_that_is_refused(
    scene: Scene,
) -> None:
    body: JsonObject = {
        "metadata": {
            "name": "left",
            "namespace": "default",
            "uid": "left",
            "resourceVersion": "50",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": [names.CLIQUE_FINALIZER],
        },
        "spec": {},
    }
    scene.known.observe(PODCLIQUES, msgspec.json.encode(body))
    scene.api.put(PODCLIQUES.path("default", "left"), body)
    queue = scene.reconciler.queue
    tried: list[str] = []

    def cut(write: str) -> None:
        tried.append(write)
        raise ConnectionError

    scene.api.before = cut
    async with asyncio.TaskGroup() as group:
        working = group.create_task(queue.run(scene.reconciler.reconcile, 1))
        async with asyncio.timeout(10):
            while len(tried) < 2:
                await asyncio.sleep(0)
        working.cancel()


async def test_what_goes_of_a_set_that_went_unseen_is_let_go_of(scene: Scene) -> None:
    """The set was deleted while Penstock was down, before it had a finalizer."""
    owner: JsonObject = {
        "apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo",
        "uid": "unseen", "controller": True,
    }  # fmt: skip
    body: JsonObject = {
        "metadata": {
            "name": "demo-0-a",
            "namespace": "default",
            "uid": "left",
            "resourceVersion": "50",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": [names.CLIQUE_FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {},
    }
    scene.api.put(PODCLIQUES.path("default", "demo-0-a"), body)
    scene.known.observe(PODCLIQUES, msgspec.json.encode(body))
    tried = asyncio.Event()
    scene.api.before = lambda _write: tried.set()
    async with asyncio.TaskGroup() as group:
        queue = scene.reconciler.queue
        working = group.create_task(queue.run(scene.reconciler.reconcile, 1))
        async with asyncio.timeout(10):
            await tried.wait()
        working.cancel()
