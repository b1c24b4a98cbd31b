"""Whatever there is, the steps lead to what the set wants, from any point where a process died."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Meta, Owner, Pod
from controller.podgang import Gang
from controller.workloads.reconciling import set_of
from controller.workloads.steps import (
    Announce,
    CreateGang,
    CreatePod,
    DeleteGang,
    DeletePod,
    ReferToPods,
    Report,
    SetView,
    Step,
    steps,
)  # fmt: skip
from tests.support.sets import NOW, clique, set_meta, set_spec

SPEC = set_spec(clique("prefill", 2), clique("decode", 2, 1), replicas=2)


class World:
    """A set and its objects, to which steps can be applied one by one."""

    def __init__(self, spec: PodCliqueSetSpec) -> None:
        self.spec = spec
        self.status = PodCliqueSetStatus()
        self.gangs: dict[str, Gang] = {}
        self.pods: dict[str, Pod] = {}

    def view(self) -> SetView:
        return SetView(set_meta(), self.spec, self.status, dict(self.gangs), dict(self.pods))

    def apply(self, step: Step) -> None:
        match step:
            case CreateGang(name, body):
                assert name not in self.gangs
                meta = Meta(name=name, namespace="default", uid=f"uid-{name}")
                spec = PodGangSpec.model_validate(body["spec"])
                self.gangs[name] = Gang(meta, spec, PodGangStatus())
            case CreatePod(name, body):
                assert name not in self.pods
                self.pods[name] = msgspec.convert(body, Pod)
            case DeleteGang(name):
                del self.gangs[name]
            case DeletePod(name):
                del self.pods[name]
            case ReferToPods(name, _, groups):
                gang = self.gangs[name]
                spec = PodGangSpec.model_validate({"podgroups": groups})
                self.gangs[name] = Gang(gang.metadata, spec, gang.status)
            case Announce(name, condition):
                gang = self.gangs[name]
                status = PodGangStatus(conditions=[condition])
                self.gangs[name] = Gang(gang.metadata, gang.spec, status)
            case Report(status):
                self.status = status

    def settle(self) -> None:
        for _ in range(10):
            todo = steps(self.view(), NOW)
            if not todo:
                return
            for step in todo:
                self.apply(step)
        raise AssertionError(f"still to do: {steps(self.view(), NOW)}")

    def summary(self) -> JsonObject:
        gangs: dict[str, Json] = {
            name: {
                "pods": [ref.name for g in gang.spec.pod_groups for ref in g.pod_references],
                "initialized": [c.status for c in gang.status.conditions],
            }
            for name, gang in sorted(self.gangs.items())
        }
        pods: list[Json] = [*sorted(self.pods)]
        return {"gangs": gangs, "pods": pods, "replicas": self.status.replicas}


def settled(spec: PodCliqueSetSpec) -> World:
    world = World(spec)
    world.settle()
    return world


def test_a_settled_set_needs_nothing_and_has_everything() -> None:
    world = settled(SPEC)
    assert steps(world.view(), NOW) == []
    assert len(world.gangs) == 2
    assert len(world.pods) == 8
    for gang in world.gangs.values():
        assert [c.status for c in gang.status.conditions] == ["True"]
        assert all(len(g.pod_references) == 2 for g in gang.spec.pod_groups)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=6))
def test_dying_after_any_prefix_of_steps_leads_to_the_same_end(deaths: list[int]) -> None:
    world = World(SPEC)
    for count in deaths:
        for step in steps(world.view(), NOW)[:count]:
            world.apply(step)
    world.settle()
    assert world.summary() == settled(SPEC).summary()


def test_gangs_are_made_before_their_pods_so_that_no_pod_is_without_one() -> None:
    kinds = [type(step) for step in steps(World(SPEC).view(), NOW)]
    assert kinds.index(CreateGang) < kinds.index(CreatePod)
    assert CreateGang not in kinds[kinds.index(CreatePod) :]


def test_fewer_replicas_remove_the_highest_with_its_pods() -> None:
    world = settled(SPEC)
    world.spec = SPEC.model_copy(update={"replicas": 1})
    todo = steps(world.view(), NOW)
    assert [step.name for step in todo if isinstance(step, DeleteGang)] == ["demo-1"]
    assert len([step for step in todo if isinstance(step, DeletePod)]) == 4
    world.settle()
    assert world.summary() == settled(world.spec).summary()


def terminating(pod: Pod) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=NOW)
    return msgspec.structs.replace(pod, metadata=meta)


def test_a_pod_that_is_being_replaced_keeps_its_place_in_the_gang() -> None:
    world = settled(SPEC)
    name = min(world.pods)
    world.pods[name] = terminating(world.pods[name])
    assert steps(world.view(), NOW) == []
    del world.pods[name]
    (step,) = steps(world.view(), NOW)
    assert isinstance(step, CreatePod)
    assert step.name == name


def test_before_all_pods_were_made_the_gang_refers_only_to_those_there_are() -> None:
    world = World(SPEC)
    first, *_ = [step for step in steps(world.view(), NOW) if isinstance(step, CreatePod)]
    for step in steps(world.view(), NOW):
        if isinstance(step, CreateGang):
            world.apply(step)
    world.apply(first)
    (refer,) = [step for step in steps(world.view(), NOW) if isinstance(step, ReferToPods)]
    assert first.name in str(refer.groups)
    world.pods[first.name] = terminating(world.pods[first.name])
    assert not [step for step in steps(world.view(), NOW) if isinstance(step, ReferToPods)]


def test_a_smaller_clique_is_a_smaller_gang() -> None:
    world = settled(SPEC)
    world.spec = set_spec(clique("prefill", 1), clique("decode", 2, 1), replicas=2)
    todo = steps(world.view(), NOW)
    assert len([step for step in todo if isinstance(step, DeletePod)]) == 2
    world.settle()
    assert world.summary() == settled(world.spec).summary()


def test_new_pods_of_a_set_go_to_the_scheduler_that_its_pods_have() -> None:
    spec = set_spec(
        clique("a", 2, podSpec={"containers": [{"name": "main"}], "schedulerName": "kai-scheduler"})
    )
    world = World(spec)
    for step in steps(world.view(), NOW):
        world.apply(step)
    first, second = sorted(world.pods)
    assert world.pods[first].spec.scheduler_name == "kai-scheduler"
    # The webhook wrote another name when the pod was made; it may be away now.
    given = msgspec.structs.replace(world.pods[first].spec, scheduler_name="default-scheduler")
    world.pods = {first: msgspec.structs.replace(world.pods[first], spec=given)}
    (made,) = [step for step in steps(world.view(), NOW) if isinstance(step, CreatePod)]
    assert made.name == second
    assert msgspec.convert(made.body, Pod).spec.scheduler_name == "default-scheduler"


def with_scheduler(pod: Pod, name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=name))


def made_after(world: World, there: dict[str, Pod]) -> set[str]:
    """The schedulers of the pods that the set makes while it has these."""
    world.pods = there
    made = [step for step in steps(world.view(), NOW) if isinstance(step, CreatePod)]
    assert made
    return {msgspec.convert(step.body, Pod).spec.scheduler_name for step in made}


def test_no_pod_says_that_a_set_goes_to_another_scheduler() -> None:
    named: JsonObject = {"containers": [{"name": "main"}], "schedulerName": "kai-scheduler"}
    world = settled(set_spec(clique("a", 3, podSpec=named)))
    first, second, _ = sorted(world.pods)
    stranger = with_scheduler(world.pods[first], "another")
    ours = with_scheduler(world.pods[second], names.DEFAULT_SCHEDULER)
    assert made_after(world, {first: stranger}) == {"kai-scheduler"}
    assert made_after(world, {first: stranger, second: ours}) == {names.DEFAULT_SCHEDULER}


def test_a_pod_that_the_set_does_not_want_says_nothing_of_its_scheduler() -> None:
    named: JsonObject = {"containers": [{"name": "main"}], "schedulerName": "volcano"}
    world = settled(set_spec(clique("a", 2, podSpec=named)))
    pod = world.pods[min(world.pods)]
    for name in ("another", names.DEFAULT_SCHEDULER):
        assert made_after(world, {"slipped-in": with_scheduler(pod, name)}) == {"volcano"}


def test_only_a_reference_to_a_set_makes_its_pods() -> None:
    def controlled(kind: str, *, controller: bool = True) -> Meta:
        owner = Owner(kind=kind, name="demo", uid="set-uid", controller=controller)
        return Meta(name="p", owner_references=(owner,))

    assert set_of(controlled("PodCliqueSet")) == "set-uid"
    assert set_of(controlled("ConfigMap")) == ""
    assert set_of(controlled("PodCliqueSet", controller=False)) == ""


def test_a_set_that_is_going_away_is_left_to_garbage_collection() -> None:
    view = World(SPEC).view()
    gone = msgspec.structs.replace(view.metadata, deletion_timestamp=NOW)
    assert steps(SetView(gone, view.spec, view.status, {}, {}), NOW) == []


def test_initialized_says_how_many_pods_are_made_and_never_turns_back() -> None:
    world = World(SPEC)
    todo = steps(world.view(), NOW)
    for step in todo:
        if isinstance(step, CreateGang):
            world.apply(step)
    (first, *_) = [s for s in steps(world.view(), NOW) if isinstance(s, Announce)]
    assert (first.condition.status, first.condition.message) == ("False", "0 of 4 pods are made")
    world.settle()
    del world.pods[min(world.pods)]
    assert not [s for s in steps(world.view(), NOW) if isinstance(s, Announce)]


def test_a_replica_is_available_once_every_clique_has_its_minimum_ready() -> None:
    world = settled(SPEC)
    raw: Json = {"type": "Ready", "status": "True"}
    for name, pod in list(world.pods.items()):
        if "demo-0" in name and not name.startswith("demo-0-decode"):
            status = msgspec.convert({"conditions": [raw]}, type(pod.status))
            world.pods[name] = msgspec.structs.replace(pod, status=status)
    assert steps(world.view(), NOW) == []
    one_decode = min(name for name in world.pods if name.startswith("demo-0-decode"))
    pod = world.pods[one_decode]
    status = msgspec.convert({"conditions": [raw]}, type(pod.status))
    world.pods[one_decode] = msgspec.structs.replace(pod, status=status)
    (step,) = steps(world.view(), NOW)
    assert isinstance(step, Report)
    assert (step.status.available_replicas, step.status.replicas) == (1, 2)
