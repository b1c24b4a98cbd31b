"""What is changed by hand in a PodClique or group is put right; scale and others' words stay."""

from dataclasses import replace

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.voicing import Tell
from controller.workloads.expansion import expand
from controller.workloads.making import cliques, groups
from controller.workloads.stepping import Again, Change, Say, Step
from controller.workloads.updates import adopting
from kube.resources import PODCLIQUES, PODS, SCALING_GROUPS, Resource
from tests.support.sets import NOW, clique, set_spec
from tests.support.worlds import World

GROUP: JsonObject = {
    "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
}  # fmt: skip
SPEC = PodCliqueSetSpec.model_validate(
    {
        "replicas": 1,
        "template": {
            "cliqueStartupType": "CliqueStartupTypeInOrder",
            "cliques": [clique("router", 2, 1), clique("leader", 1), clique("worker", 2)],
            "podCliqueScalingGroups": [GROUP],
        },
    }
)
ALONE, MEMBER = "demo-0-router", "demo-0-model-0-worker"
EACH = pytest.mark.parametrize("name", [ALONE, MEMBER])


def settled(spec: PodCliqueSetSpec = SPEC) -> World:
    world = World(spec)
    world.settle()
    return world


def work(world: World) -> list[Step]:
    return [step for step in world.plan() if not isinstance(step, Again | Tell)]


def spec_of(world: World, kind: Resource, name: str) -> JsonObject:
    spec = world.of(kind)[name]["spec"]
    assert isinstance(spec, dict)
    return spec


def pod_spec(world: World, name: str) -> JsonObject:
    found = spec_of(world, PODCLIQUES, name)["podSpec"]
    assert isinstance(found, dict)
    return found


def is_put_right(kind: Resource, name: str, patch: JsonObject) -> bool:
    world = settled()
    before = spec_of(world, kind, name)
    pods = {uid: pod.metadata.uid for uid, pod in world.pods().items()}
    world.patch(kind, name, {"spec": patch})
    assert spec_of(world, kind, name) != before
    todo = [step for step in work(world) if not (isinstance(step, Say) and step.patience)]
    assert [type(step) for step in todo] == [Change], todo
    world.settle()
    assert {uid: pod.metadata.uid for uid, pod in world.pods().items()} == pods
    return spec_of(world, kind, name) == before


@EACH
@pytest.mark.parametrize(
    "patch",
    [
        {"podSpec": {"containers": [{"name": "main", "image": "another"}]}},
        {"podSpec": {"hostNetwork": True}},
        {"minAvailable": 1, "replicas": 2},
        {"roleName": "another"},
        {"startsAfter": ["demo-0-ghost"]},
    ],
)
def test_a_podclique_that_says_otherwise_than_its_template_is_put_right(
    name: str, patch: JsonObject
) -> None:
    if patch.get("minAvailable"):
        patch = {"minAvailable": 2} if name == ALONE else {"minAvailable": 1}
    assert is_put_right(PODCLIQUES, name, patch)


def test_what_a_podclique_does_not_say_any_more_is_written_back() -> None:
    world = settled()
    assert spec_of(world, PODCLIQUES, MEMBER)["startsAfter"] == ["demo-0-model-0-leader"]
    assert is_put_right(PODCLIQUES, MEMBER, {"startsAfter": None})
    assert is_put_right(PODCLIQUES, MEMBER, {"startsAfter": []})
    assert is_put_right(PODCLIQUES, MEMBER, {"podSpec": {"containers": None}})


@pytest.mark.parametrize("patch", [{"minAvailable": 1}, {"cliqueNames": ["leader"]}])
def test_a_group_that_says_otherwise_than_its_template_is_put_right(patch: JsonObject) -> None:
    assert is_put_right(SCALING_GROUPS, "demo-0-model", patch)


def test_pods_that_come_afterwards_are_made_as_the_template_says() -> None:
    world = settled()
    world.patch(PODCLIQUES, ALONE, {"spec": {"podSpec": {"priorityClassName": "high"}}})
    world.settle()
    world.delete_pod(next(name for name in world.pods() if name.startswith(ALONE)))
    world.settle()
    assert {spec.get("priorityClassName") for spec in _specs(world)} == {None}


def _specs(world: World) -> list[JsonObject]:
    return [spec_of(world, PODS, name) for name in world.of(PODS)]


def test_scale_belongs_to_whoever_scales() -> None:
    world = settled()
    world.patch(PODCLIQUES, ALONE, {"spec": {"replicas": 5}})
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"replicas": 4}})
    world.settle()
    assert spec_of(world, PODCLIQUES, ALONE)["replicas"] == 5
    assert spec_of(world, SCALING_GROUPS, "demo-0-model")["replicas"] == 4


@EACH
@pytest.mark.parametrize(
    "patch",
    [
        {"dnsPolicy": "ClusterFirst"},
        {"terminationGracePeriodSeconds": 30},
        {"securityContext": {}},
    ],
)
def test_another_spelling_of_the_same_pods_is_left(name: str, patch: JsonObject) -> None:
    world = settled()
    world.patch(PODCLIQUES, name, {"spec": {"podSpec": patch}})
    assert pod_spec(world, name).keys() >= patch.keys()
    assert work(world) == []


def test_labels_and_annotations_of_a_template_are_written_back_and_those_of_others_left() -> None:
    told: JsonObject = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    world = settled(set_spec(clique("router", 2, 1) | told))
    strays: JsonObject = {"labels": {"a": "x", "mine": "y"}, "annotations": {"c": None, "my": "z"}}
    world.patch(PODCLIQUES, ALONE, {"metadata": strays})
    world.settle()
    metadata = world.of(PODCLIQUES)[ALONE]["metadata"]
    assert isinstance(metadata, dict)
    labels, annotations = metadata["labels"], metadata["annotations"]
    assert isinstance(labels, dict)
    assert isinstance(annotations, dict)
    assert {labels["a"], labels["mine"], annotations["c"], annotations["my"]} == set("bydz")


def test_a_podclique_of_an_older_template_keeps_it_until_its_turn() -> None:
    world = settled()
    view = world.view()
    assert view is not None
    there = view.cliques[MEMBER]
    labels = there.metadata.labels | {names.TEMPLATE_HASH_LABEL: "0123456789abcdef"}
    old: Json = {"spec": {"podSpec": {"hostNetwork": True}}, "metadata": {"labels": {**labels}}}
    assert isinstance(old, dict)
    world.patch(PODCLIQUES, MEMBER, old)
    view = world.view()
    assert view is not None
    assert [*cliques.steps(view, expand(view), NOW)] == []


def test_what_our_definition_may_refuse_is_asked_for_by_itself() -> None:
    world = settled()
    world.patch(PODCLIQUES, ALONE, {"spec": {"roleName": "x", "podSpec": {"hostNetwork": True}}})
    world.patch(SCALING_GROUPS, "demo-0-model", {"metadata": {"labels": {names.PART_OF_LABEL: ""}}})
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"minAvailable": 1}})
    patches = [step.patch for step in work(world) if isinstance(step, Change)]
    assert [sorted(patch) for patch in patches] == [["metadata"], ["spec"], ["spec"], ["spec"]]
    assert {"spec": {"roleName": "router"}} in patches
    assert {"spec": {"minAvailable": 2}} in patches


@pytest.mark.parametrize(
    ("name", "said", "groves"),
    [
        (MEMBER, ["demo-0-model-0-leader", "demo-0-model-1-leader"], True),
        (MEMBER, ["demo-0-model-1-leader"], False),
        (MEMBER, ["demo-0-model-0-leader", "demo-0-router"], False),
        (MEMBER, [], False),
        ("demo-0-model-2-worker", [], True),
        (ALONE, ["demo-0-ghost"], False),
    ],
)
def test_an_order_that_grove_wrote_otherwise_stays(
    name: str,
    said: list[str],
    groves: bool,  # noqa: FBT001
) -> None:
    world = settled()
    view = world.view()
    assert view is not None
    wanted = expand(view)
    assert adopting.is_groves_order(wanted.cliques[name], said) is groves
    there = view.cliques[name]
    spec = there.spec.model_copy(update={"starts_after": said})
    view = replace(view, cliques={**view.cliques, name: replace(there, spec=spec)})
    changed = [step for step in cliques.steps(view, wanted, NOW) if isinstance(step, Change)]
    assert bool(changed) is not groves
    assert [*groups.steps(view, wanted, NOW)] == []
