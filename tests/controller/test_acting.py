"""Steps become requests: guarded, answered into the caches, and at peace with who was faster."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import pytest

from api.jsons import Json, JsonObject
from controller.workloads.acting import Actor, ident, trouble
from controller.workloads.stepping import Change, Create, Remove, Say
from kube.errors import AlreadyExists, Forbidden
from kube.resources import PODCLIQUES, PODS, SECRETS, Resource
from tests.support.patchapi import PatchApi, patching

SPACE = "default"


def a_pod(owner: str, kind: str = "PodClique") -> JsonObject:
    reference: JsonObject = {"kind": kind, "name": "demo-0-a", "uid": owner, "controller": True}
    return {"metadata": {"name": "p", "namespace": SPACE, "ownerReferences": [reference]}}


@dataclass
class Scene:
    """An actor, the API it speaks to, and what it was answered."""

    api: PatchApi
    actor: Actor
    answers: list[tuple[Resource, Json]] = field(default_factory=list)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with patching() as (api, client, clock):
        answers: list[tuple[Resource, Json]] = []

        def observe(resource: Resource, body: bytes) -> None:
            answers.append((resource, msgspec.json.decode(body)["metadata"]["name"]))

        yield Scene(api, Actor(client, clock, observe, "one"), answers)


async def test_what_is_made_is_known_at_once(scene: Scene) -> None:
    await scene.actor.take(Create(PODS, a_pod("clique")), SPACE)
    assert scene.answers == [(PODS, "p")]
    assert PODS.path(SPACE, "p") in scene.api.objects


async def test_what_is_there_already_is_enough_and_known_if_it_is_ours(scene: Scene) -> None:
    scene.api.put(PODS.path(SPACE, "p"), a_pod("clique"))
    await scene.actor.take(Create(PODS, a_pod("clique")), SPACE)
    assert scene.answers == [(PODS, "p")]
    assert scene.api.writes == []


@pytest.mark.parametrize("there", [a_pod("stranger"), a_pod("clique", "ConfigMap")])
async def test_a_strangers_object_under_the_name_is_an_error(
    scene: Scene, there: JsonObject
) -> None:
    scene.api.put(PODS.path(SPACE, "p"), there)
    with pytest.raises(AlreadyExists):
        await scene.actor.take(Create(PODS, a_pod("clique")), SPACE)
    assert scene.answers == []


async def test_no_secret_is_ever_read(scene: Scene) -> None:
    path = SECRETS.path(SPACE, "p")
    scene.api.put(path, a_pod("stranger"))
    await scene.actor.take(Create(SECRETS, a_pod("clique")), SPACE)
    assert scene.answers == []


async def test_a_change_names_the_uid_and_the_version_it_was_decided_on(scene: Scene) -> None:
    path = PODCLIQUES.path(SPACE, "c")
    scene.api.put(path, {"metadata": {"name": "c", "uid": "u"}, "spec": {"replicas": 1}})
    patch: JsonObject = {"spec": {"replicas": 2}}
    await scene.actor.take(Change(PODCLIQUES, "c", "u", patch, "1"), SPACE)
    assert scene.api.objects[path]["spec"] == {"replicas": 1}  # it had another version by then
    await scene.actor.take(Change(PODCLIQUES, "c", "u", patch), SPACE)
    assert scene.api.objects[path]["spec"] == {"replicas": 2}
    assert scene.answers == [(PODCLIQUES, "c")]


async def test_who_is_gone_is_neither_changed_nor_spoken_of(scene: Scene) -> None:
    await scene.actor.take(Change(PODCLIQUES, "c", "u", {}), SPACE)
    await scene.actor.take(Say(PODCLIQUES, "c", "u", {"replicas": 1}), SPACE)
    await scene.actor.take(Remove(PODCLIQUES, "c", "u"), SPACE)
    assert scene.answers == []
    assert scene.api.writes == []


def test_a_refusal_is_told_by_what_was_done_to_what_and_a_quotas_apart() -> None:
    step = Create(PODS, a_pod("clique"))
    said = Forbidden(403, "Forbidden", 'pods "p" is forbidden: exceeded quota: few')
    found = trouble(step, said)
    assert (found.code, found.name, found.over_quota) == ("ERR_CREATE_POD", "p", True)
    assert not trouble(step, Forbidden(403, "Forbidden", "no")).over_quota


def test_steps_are_told_apart_by_what_they_do_to_what() -> None:
    made, gone = Create(PODS, a_pod("a")), Remove(PODS, "p", "u")
    assert ident(made) == ident(Create(PODS, a_pod("b")))
    assert ident(made) != ident(gone)
    assert ident(gone) != ident(Remove(PODCLIQUES, "p", "u"))


@pytest.mark.parametrize(("others", "gone"), [([], True), (["example.com/kept"], False)])
async def test_who_lost_the_last_finalizer_is_not_asked_to_once_more(
    scene: Scene, others: list[Json], *, gone: bool
) -> None:
    leaving: JsonObject = {
        "name": "c", "uid": "u", "deletionTimestamp": "2026-01-02T03:04:05Z",
        "finalizers": ["grove.io/podclique", *others],
    }  # fmt: skip
    scene.api.put(PODCLIQUES.path(SPACE, "c"), {"metadata": leaving})
    release = Change(PODCLIQUES, "c", "u", {"metadata": {"finalizers": others}})
    assert not scene.actor.is_done(release)
    await scene.actor.take(release, SPACE)
    assert scene.actor.is_done(release) is gone
