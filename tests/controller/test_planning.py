"""Whatever there is, plans lead to what the set wants, from any point where a process died."""

import re
from collections.abc import Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Meta, Owner
from controller.voicing import Tell
from controller.workloads.owning import controller_of
from controller.workloads.planning import plan
from controller.workloads.stepping import Again, Create, Remove, Say, Step
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SCALING_GROUPS, Resource
from tests.support.generated_sets import podcliquesets
from tests.support.sets import NOW, clique, set_spec
from tests.support.worlds import World

GROUP: JsonObject = {
    "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 2, "minAvailable": 1,
}  # fmt: skip
SPEC = set_spec(
    clique("router", 2, 1), clique("leader", 1), clique("worker", 2), groups=[GROUP], replicas=2
)


def settled(spec: PodCliqueSetSpec) -> World:
    world = World(spec)
    world.settle()
    return world


def work(steps: list[Step]) -> list[Step]:
    return [step for step in steps if not isinstance(step, Again | Tell)]


def shared(raw: Json) -> Iterator[JsonObject]:
    """Everything that says which claims are shared, wherever it stands."""
    if isinstance(raw, dict):
        sharing = raw.get("resourceSharing", [])
        yield from (each for each in sharing if isinstance(each, dict))  # type: ignore[union-attr]
        raw = [*raw.values()]
    for each in raw if isinstance(raw, list) else []:
        yield from shared(each)


def made(steps: list[Step], kind: Resource) -> list[str]:
    bodies = [s.body for s in steps if isinstance(s, Create) and s.resource is kind]
    return [str(body["metadata"]["name"]) for body in bodies if isinstance(body["metadata"], dict)]


def removed(steps: list[Step], kind: Resource) -> list[str]:
    return [step.name for step in steps if isinstance(step, Remove) and step.resource is kind]


def test_a_settled_set_needs_nothing_and_has_everything() -> None:
    world = settled(SPEC)
    assert work(world.plan()) == []
    found = {kind: len(each) for kind, each in world.summary().items()}
    assert found == {
        "podcliquesets": 1, "podcliquescalinggroups": 2, "podcliques": 10, "podgangs": 4,
        "pods": 16, "services": 2,
    }  # fmt: skip
    for gang in world.of(PODGANGS).values():
        assert '"status": "True"' in str(gang["status"]).replace("'", '"')


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=8))
def test_dying_after_any_prefix_of_steps_leads_to_the_same_end(deaths: list[int]) -> None:
    world = World(SPEC)
    for count in deaths:
        for step in world.plan()[:count]:
            world.apply(step)
    world.settle()
    assert world.summary() == settled(SPEC).summary()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 80), st.lists(st.integers(0, 40), max_size=8))
def test_a_deleted_set_leaves_nothing_however_far_it_was_made(made: int, deaths: list[int]) -> None:
    world = World(SPEC)
    world.patch(PODCLIQUESETS, "demo", {"metadata": {"finalizers": [names.SET_FINALIZER]}})
    for _ in range(4):
        todo = world.plan()[:made]
        made -= len(todo)
        for step in todo:
            world.apply(step)
    world.delete(PODCLIQUESETS, "demo")
    for count in deaths:
        for step in world.plan()[:count]:
            world.apply(step)
    world.settle()
    assert world.summary() == {}


@settings(max_examples=25, deadline=None)
@given(podcliquesets())
def test_whatever_admission_takes_is_planned_and_each_object_made_once(raw: JsonObject) -> None:
    world = World(PodCliqueSetSpec.model_validate(raw["spec"]))
    for sharing in shared(raw):
        there = str(sharing.get("namespace", "default")), str(sharing["name"])
        world.templates[there] = {"spec": {"spec": {"devices": {}}}}
    world.settle(30)
    assert work(world.plan()) == []
    view = world.view()
    assert view is not None
    assert len(world.pods()) == view.spec.pods


def test_an_object_that_somebody_took_away_is_made_again() -> None:
    whole = settled(SPEC).summary()
    for kind in (SCALING_GROUPS, PODCLIQUES, PODGANGS, PODS):
        world = settled(SPEC)
        world.delete(kind, min(world.of(kind)))
        world.settle()
        assert world.summary() == whole


def test_base_gangs_are_made_before_scaled_ones_and_minima_before_extras() -> None:
    world = World(SPEC)
    assert made(world.plan(), PODGANGS) == ["demo-0", "demo-0-model-0", "demo-1", "demo-1-model-0"]
    for _ in range(2):
        for step in world.plan():
            if not isinstance(step, Create) or step.resource is not PODS:
                world.apply(step)
    pods = made(world.plan(), PODS)
    assert len(pods) == 16
    assert all(re.match("demo-[01]-router-", name) for name in pods[-2:])


def test_fewer_replicas_remove_the_highest_with_all_it_has() -> None:
    world = settled(SPEC)
    world.edit(SPEC.model_copy(update={"replicas": 1}))
    assert removed(world.plan(), PODGANGS) == ["demo-1", "demo-1-model-0"]
    world.settle()
    assert world.summary() == settled(SPEC.model_copy(update={"replicas": 1})).summary()


def test_a_group_that_is_scaled_in_loses_its_highest_copies() -> None:
    world = settled(SPEC)
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"replicas": 1}})
    world.settle()
    left = [name for name in world.of(PODCLIQUES) if name.startswith("demo-0-model")]
    assert left == ["demo-0-model-0-leader", "demo-0-model-0-worker"]
    assert sorted(world.of(PODGANGS)) == ["demo-0", "demo-1", "demo-1-model-0"]


def test_counts_in_the_template_reach_live_objects_only_where_the_set_asks_for_it() -> None:
    autoscaled = clique("auto", 1, autoScalingConfig={"maxReplicas": 5})

    def spec(count: int) -> PodCliqueSetSpec:
        group: JsonObject = {**GROUP, "replicas": count, "minAvailable": 1}
        return set_spec(clique("router", count, 1), clique("leader", 1), clique("worker", 2),
                        autoscaled, groups=[group])  # fmt: skip

    def counts(world: World) -> list[int]:
        view = world.view()
        assert view is not None
        return [
            view.cliques["demo-0-router"].spec.replicas,
            view.groups["demo-0-model"].spec.replicas,
            view.cliques["demo-0-auto"].spec.replicas,
        ]

    world = settled(spec(2))
    world.patch(PODCLIQUES, "demo-0-auto", {"spec": {"replicas": 4}})
    world.edit(spec(3))
    world.settle()
    assert counts(world) == [2, 2, 4]
    asked: JsonObject = {"metadata": {"annotations": {names.REPLICAS_ANNOTATION: "template"}}}
    world.patch(PODCLIQUESETS, "demo", asked)
    world.settle()
    assert counts(world) == [3, 3, 4]


def test_a_pod_that_is_being_replaced_keeps_its_place_and_comes_back_when_it_is_gone() -> None:
    world = settled(SPEC)
    world.lingering = True
    name = min(world.of(PODS))
    world.delete(PODS, name)
    assert not [s for s in world.plan() if isinstance(s, Create | Remove)]
    assert not [s for s in world.plan() if not isinstance(s, Say) and "PodGang" in str(s)]
    world.gone()
    assert made(world.plan(), PODS) == [name]


def test_a_clique_goes_only_after_its_pods_and_a_group_after_its_cliques() -> None:
    world = settled(SPEC)
    world.lingering = True
    world.delete(PODCLIQUESETS, "demo")
    for _ in range(6):
        for step in world.plan():
            world.apply(step)
    assert len(world.of(PODS)) == 16
    assert len(world.of(PODCLIQUES)) == 10
    assert len(world.of(SCALING_GROUPS)) == 2
    world.gone()
    world.settle()
    assert world.summary() == {}


def test_a_set_whose_objects_are_to_stay_is_left_alone() -> None:
    world = settled(SPEC)
    finalizers: JsonObject = {"metadata": {"finalizers": ["orphan", names.SET_FINALIZER]}}
    world.patch(PODCLIQUESETS, "demo", finalizers)
    world.delete(PODCLIQUESETS, "demo")
    assert world.plan() == []


def test_nothing_below_a_group_is_deleted_before_the_group_is_sure_to_go() -> None:
    """Else what was orphaned a moment ago would lose its pods."""
    world = settled(SPEC)
    world.delete(PODCLIQUESETS, "demo")
    first = world.plan()
    assert removed(first, SCALING_GROUPS) == ["demo-0-model", "demo-1-model"]
    assert removed(first, PODCLIQUES) == ["demo-0-router", "demo-1-router"]
    assert removed(first, PODS) == []
    assert all(step.version for step in first if isinstance(step, Remove))


def test_finalizers_of_others_stay_when_ours_goes() -> None:
    world = settled(set_spec(clique("a", 1)))
    kept: JsonObject = {"metadata": {"finalizers": ["mine.example/x", names.CLIQUE_FINALIZER]}}
    world.patch(PODCLIQUES, "demo-0-a", kept)
    world.delete(PODCLIQUESETS, "demo")
    world.settle()
    metadata = world.of(PODCLIQUES)["demo-0-a"]["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["finalizers"] == ["mine.example/x"]


def test_a_plan_is_the_same_whenever_it_is_made() -> None:
    view = settled(SPEC).view()
    assert view is not None
    assert plan(view, NOW) == plan(view, NOW)


def test_only_a_reference_to_one_of_ours_tells_whose_an_object_is() -> None:
    def controlled(kind: str, *, controller: bool = True) -> Meta:
        owner = Owner(kind=kind, name="demo", uid="set-uid", controller=controller)
        return Meta(name="p", owner_references=(owner,))

    for kind in ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique"):
        found = controller_of(controlled(kind))
        assert found is not None
        assert found.uid == "set-uid"
    assert controller_of(controlled("ConfigMap")) is None
    assert controller_of(controlled("PodCliqueSet", controller=False)) is None


def with_scheduler(world: World, name: str, scheduler: str) -> None:
    world.patch(PODS, name, {"spec": {"schedulerName": scheduler}})


def test_new_pods_of_a_set_go_to_the_default_scheduler_if_its_pods_do_and_to_no_other() -> None:
    named: JsonObject = {"containers": [{"name": "main"}], "schedulerName": "kai-scheduler"}
    for there, then in (("default-scheduler", "default-scheduler"), ("another", "kai-scheduler")):
        world = settled(set_spec(clique("a", 2, podSpec=named)))
        first, second = sorted(world.of(PODS))
        assert world.pods()[first].spec.scheduler_name == "kai-scheduler"
        # The webhook wrote another name when the pod was made; it may be away now.
        with_scheduler(world, first, there)
        world.delete(PODS, second)
        world.settle()
        assert world.pods()[second].spec.scheduler_name == then
        assert msgspec.to_builtins(world.pods()[second].metadata.owner_references)
