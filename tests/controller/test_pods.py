"""Pods and PodCliques as they are made: Grove's names, labels, variables, owners and hosts."""

import re
from datetime import timedelta

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from controller.workloads.making.pods import LONG_LIFE, SHORTEST_LIFE
from controller.workloads.stepping import Again, Change, Create, Remove
from controller.workloads.views import Choices
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODS, SCALING_GROUPS
from tests.support.sets import clique, set_spec
from tests.support.worlds import World

OURS: JsonObject = {"name": "penstock.dev/gang"}
GROUP: JsonObject = {
    "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
    "annotations": {"note": "kept"},
}  # fmt: skip
GROUPED = set_spec(clique("leader", 1), clique("worker", 2), groups=[GROUP])


def settled(*cliques: JsonObject) -> World:
    world = World(set_spec(*cliques))
    world.settle()
    return world


def part(body: Json, *path: str) -> JsonObject:
    for step in path:
        assert isinstance(body, dict)
        body = body[step]
    assert isinstance(body, dict)
    return body


def the_pod(world: World) -> JsonObject:
    (body,) = world.of(PODS).values()
    return body


def variables(container: Json) -> dict[str, str]:
    assert isinstance(container, dict)
    env = container["env"]
    assert isinstance(env, list)
    told: dict[str, str] = {}
    for each in env:
        assert isinstance(each, dict)
        told[str(each["name"])] = str(
            each.get("value") or part(each, "valueFrom", "fieldRef")["fieldPath"]
        )
    return told


def test_a_pod_is_named_labelled_hosted_and_owned_as_grove_does_it() -> None:
    world = World(GROUPED)
    world.settle()
    found = {
        name: body
        for name, body in world.of(PODS).items()
        if part(body, "spec")["hostname"] == "demo-0-model-2-worker-1"
    }
    ((name, body),) = found.items()
    assert re.fullmatch(r"demo-0-model-2-worker-[a-z0-9]{5}", name)
    owner = world.of(PODCLIQUES)["demo-0-model-2-worker"]
    labels = part(body, "metadata", "labels")
    assert labels.pop("grove.io/pod-template-hash")
    assert labels == {
        "role": "worker",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-0-model-2-worker",
        "app.kubernetes.io/component": "pcsg-podclique",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": "demo-0-model-0",
        "grove.io/base-podgang": "demo-0",
        "grove.io/podclique": "demo-0-model-2-worker",
        "grove.io/podclique-pod-index": "1",
        "grove.io/podcliquescalinggroup": "demo-0-model",
        "grove.io/podcliquescalinggroup-replica-index": "2",
    }
    assert part(body, "metadata")["ownerReferences"] == [
        {
            "apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "controller": True,
            "name": "demo-0-model-2-worker", "uid": part(owner, "metadata")["uid"],
            "blockOwnerDeletion": True,
        }
    ]  # fmt: skip
    spec = part(body, "spec")
    assert spec["schedulingGates"] == [OURS]
    assert spec["subdomain"] == "demo-0"


def test_every_container_learns_its_place_first_and_keeps_its_authors_words() -> None:
    own: list[Json] = [{"name": "GROVE_PCS_NAME", "value": "mine"}, {"name": "A", "value": "a"}]
    spec: JsonObject = {
        "containers": [{"name": "main", "env": own}, {"name": "side"}],
        "initContainers": [{"name": "before"}],
    }
    made = part(the_pod(settled(clique("a", 1, podSpec=spec))), "spec")
    containers, before = made["containers"], made["initContainers"]
    assert isinstance(containers, list)
    assert isinstance(before, list)
    ours = {
        "GROVE_PCS_NAME": "demo",
        "GROVE_PCS_INDEX": "0",
        "GROVE_PCLQ_NAME": "demo-0-a",
        "GROVE_HEADLESS_SERVICE": "demo-0.default.svc.cluster.local",
        "GROVE_PCLQ_POD_INDEX": "metadata.labels['grove.io/podclique-pod-index']",
    }
    assert variables(containers[0]) == {**ours, "A": "a"}
    assert [*variables(containers[0])][-1] == "A"
    assert variables(containers[1]) == variables(before[0]) == ours


def test_members_of_a_group_learn_its_name_size_and_their_copy() -> None:
    world = World(GROUPED)
    world.settle()
    spec = part(world.of(PODCLIQUES)["demo-0-model-1-leader"], "spec", "podSpec")
    assert isinstance(spec["containers"], list)
    group = {
        "GROVE_PCSG_NAME": "metadata.labels['grove.io/podcliquescalinggroup']",
        "GROVE_PCSG_TEMPLATE_NUM_PODS": "3",
        "GROVE_PCSG_INDEX": "metadata.labels['grove.io/podcliquescalinggroup-replica-index']",
    }
    assert variables(spec["containers"][0]) == group
    pods = [b for n, b in world.of(PODS).items() if n.startswith("demo-0-model-1-leader")]
    containers = part(pods[0], "spec")["containers"]
    assert isinstance(containers, list)
    assert group.items() <= variables(containers[0]).items()
    # In Grove's order: what a variable refers to stands before it.
    assert [*variables(containers[0])] == [
        "GROVE_PCS_NAME", "GROVE_PCS_INDEX", "GROVE_PCLQ_NAME", "GROVE_HEADLESS_SERVICE",
        "GROVE_PCLQ_POD_INDEX",
        "GROVE_PCSG_NAME", "GROVE_PCSG_TEMPLATE_NUM_PODS", "GROVE_PCSG_INDEX",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "made"),
    [
        pytest.param(None, [OURS], id="none"),
        pytest.param([], [OURS], id="an empty list"),
        pytest.param([{"name": "quota"}], [{"name": "quota"}, OURS], id="after the author's own"),
        pytest.param([OURS, {"name": "quota"}], [OURS, {"name": "quota"}], id="ours already"),
    ],
)
def test_a_pod_is_made_with_our_gate_after_those_of_its_author(written: Json, made: Json) -> None:
    pod_spec: JsonObject = {"containers": [{"name": "main"}], "schedulingGates": written}
    world = settled(clique("a", 1, podSpec=pod_spec))
    assert part(the_pod(world), "spec")["schedulingGates"] == made


@pytest.mark.parametrize("written", [None, [{"name": "quota"}]])
def test_while_gangs_are_switched_off_a_pod_is_made_with_its_authors_gates_alone(
    written: Json,
) -> None:
    pod_spec: JsonObject = {"containers": [{"name": "main"}], "schedulingGates": written}
    world = World(set_spec(clique("a", 1, podSpec=pod_spec)), choices=Choices(gates=False))
    world.settle()
    made = the_pod(world)
    assert part(made, "spec")["schedulingGates"] == (written or [])
    told = part(made, "metadata")["annotations"]
    assert isinstance(told, dict)
    assert names.RELEASED_ANNOTATION in told, "so that it is never taken back with a gang"


def test_a_template_cannot_say_which_gang_its_pods_belong_to() -> None:
    made = clique("a", 1) | {
        "labels": {"penstock.dev/gang": "x", "grove.io/base-podgang": "x", "role": "a"},
        "annotations": {"kubernetes.io/config.mirror": "x", "note": "kept"},
    }
    metadata = part(the_pod(settled(made)), "metadata")
    labels = part(metadata, "labels")
    assert not {"penstock.dev/gang", "grove.io/base-podgang"} & labels.keys()
    assert labels["role"] == "a"
    assert metadata["annotations"] == {"note": "kept"}


def test_neither_can_whoever_writes_on_the_podclique() -> None:
    world = settled(clique("a", 1))
    forged: JsonObject = {"grove.io/podgang": "another-0", "penstock.dev/gang": "x", "team": "b"}
    world.patch(PODCLIQUES, "demo-0-a", {"metadata": {"labels": forged}})
    world.delete_pod(min(world.of(PODS)))
    world.settle()
    labels = part(the_pod(world), "metadata", "labels")
    assert (labels["grove.io/podgang"], labels["team"]) == ("demo-0", "b")
    assert "penstock.dev/gang" not in labels
    assert part(world.of(PODCLIQUES)["demo-0-a"], "metadata", "labels")[
        "grove.io/podgang"
    ] == "demo-0"  # fmt: skip


def test_pods_stand_in_the_queue_of_their_set_and_in_no_other() -> None:
    labels: JsonObject = {names.QUEUE_LABEL: "chat", names.KAI_QUEUE_LABEL: "chat"}
    forged: JsonObject = {"labels": {names.QUEUE_LABEL: "lab", "team": "a"}}
    world = World(set_spec(clique("a", 1) | forged))
    world.patch(PODCLIQUESETS, "demo", {"metadata": {"labels": labels}})
    world.settle()
    made = part(the_pod(world), "metadata", "labels")
    assert {key: made[key] for key in labels} == labels
    assert made["team"] == "a"


def test_the_sets_priority_is_its_pods_unless_they_have_their_own() -> None:
    for own, then in ((None, "set"), ("pods", "pods")):
        pod_spec: JsonObject = {"containers": [{"name": "main"}]}
        spec = set_spec(
            clique("a", 1, podSpec=pod_spec | ({"priorityClassName": own} if own else {}))
        )
        template = spec.template.model_copy(update={"priority_class_name": "set"})
        world = World(spec.model_copy(update={"template": template}))
        world.settle()
        assert part(the_pod(world), "spec")["priorityClassName"] == then


def test_a_clique_is_made_with_its_finalizer_owner_and_template() -> None:
    world = World(GROUPED)
    world.settle()
    body = world.of(PODCLIQUES)["demo-0-model-0-worker"]
    metadata = part(body, "metadata")
    assert metadata["finalizers"] == ["grove.io/podclique.grove.io"]
    owners = metadata["ownerReferences"]
    assert isinstance(owners, list)
    assert [part(owner)["kind"] for owner in owners] == ["PodCliqueScalingGroup"]
    spec = part(body, "spec")
    assert (spec["roleName"], spec["replicas"], spec["minAvailable"]) == ("worker", 2, 2)


def test_a_clique_that_stands_alone_and_a_group_are_labelled_as_grove_does_it() -> None:
    alone = clique("a", 1) | {"annotations": {"note": "kept", "grove.io/topology-name": "net"}}
    body = settled(alone).of(PODCLIQUES)["demo-0-a"]
    labels = part(body, "metadata", "labels")
    assert labels.pop("grove.io/pod-template-hash")
    common = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "grove.io/podcliqueset-replica-index": "0",
    }
    assert labels == {
        **common,
        "role": "a",
        "app.kubernetes.io/name": "demo-0-a",
        "app.kubernetes.io/component": "pcs-podclique",
        "grove.io/podgang": "demo-0",
    }
    assert part(body, "metadata", "annotations") == {"note": "kept"}
    world = World(GROUPED)
    world.settle()
    assert part(world.of(SCALING_GROUPS)["demo-0-model"], "metadata", "labels") == {
        **common,
        "app.kubernetes.io/name": "demo-0-model",
        "app.kubernetes.io/component": "pcs-podcliquescalinggroup",
    }


def test_a_group_is_made_with_its_finalizer_owner_and_annotations() -> None:
    world = World(GROUPED)
    world.settle()
    body = world.of(SCALING_GROUPS)["demo-0-model"]
    metadata = part(body, "metadata")
    assert metadata["finalizers"] == ["grove.io/podcliquescalinggroup.grove.io"]
    assert metadata["annotations"] == {"note": "kept"}
    assert part(body, "spec") == {
        "replicas": 3, "minAvailable": 2, "cliqueNames": ["leader", "worker"],
    }  # fmt: skip


def test_labels_that_somebody_changed_on_a_clique_or_group_are_put_right() -> None:
    world = World(GROUPED)
    world.settle()
    for kind, name in ((PODCLIQUES, "demo-0-model-0-worker"), (SCALING_GROUPS, "demo-0-model")):
        whole = part(world.of(kind)[name], "metadata", "labels")
        world.patch(kind, name, {"metadata": {"labels": {names.PART_OF_LABEL: "other"}}})
        assert [s for s in world.plan() if isinstance(s, Change) and s.name == name]
        world.settle()
        assert part(world.of(kind)[name], "metadata", "labels") == whole


def test_a_pod_that_ends_at_once_is_not_replaced_at_once() -> None:
    world = settled(clique("a", 1))
    world.delete_pod(*world.of(PODS))
    world.settle()
    (name,) = world.of(PODS)  # made just now
    world.patch(PODS, name, {"status": {"phase": "Failed"}})
    assert not [step for step in world.plan() if isinstance(step, Remove)]
    assert world.now + SHORTEST_LIFE in {s.at for s in world.plan() if isinstance(s, Again)}
    world.now += SHORTEST_LIFE + timedelta(seconds=1)
    assert [s.name for s in world.plan() if isinstance(s, Remove)] == [name]
    world.settle()
    assert msgspec.convert(part(the_pod(world)), Pod).status.phase == "Pending"


def failed_again(world: World) -> timedelta:
    """Have the pod fail after a while; give how long it is until it is made anew."""
    (name,) = world.of(PODS)
    uid = world.pods()[name].metadata.uid
    world.now += timedelta(seconds=20)
    world.patch(PODS, name, {"status": {"phase": "Failed"}})
    since = world.now
    for _ in range(10):
        world.settle()
        if world.pods()[name].metadata.uid != uid:
            return world.now - since
        world.now = min(step.at for step in world.plan() if isinstance(step, Again))
    raise AssertionError("it is never made anew")


def test_a_pod_that_fails_again_and_again_is_made_anew_after_ever_longer_waits() -> None:
    """The wait is remembered on the PodClique, and on no pod."""
    world = settled(clique("a", 1))
    waits = [failed_again(world).total_seconds() for _ in range(9)]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    told = part(world.of(PODCLIQUES)["demo-0-a"], "metadata", "annotations")
    assert str(told[names.FAILURES_ANNOTATION]).startswith("9 ")
    assert names.FAILURES_ANNOTATION not in part(the_pod(world), "metadata", "annotations")
    world.now += LONG_LIFE
    assert [failed_again(world).total_seconds() for _ in range(3)] == [0, 0, 10]


@pytest.mark.parametrize("written", ["", "x", "2 now then", "0 2026-01-01 2026-01-01", "9 1 1"])
def test_what_somebody_else_writes_of_failures_counts_for_nothing(written: str) -> None:
    world = settled(clique("a", 1))
    note: JsonObject = {"annotations": {names.FAILURES_ANNOTATION: written}}
    world.patch(PODCLIQUES, "demo-0-a", {"metadata": note})
    assert failed_again(world).total_seconds() == 0


def test_pods_that_were_made_together_fail_as_one() -> None:
    world = settled(clique("a", 3))
    for name in [*world.of(PODS)]:
        world.now += timedelta(seconds=10)
        world.patch(PODS, name, {"status": {"phase": "Failed"}})
        assert [s.name for s in world.plan() if isinstance(s, Remove)] == [name]
        world.settle()


def test_one_that_ran_for_long_is_made_anew_at_once() -> None:
    world = settled(clique("a", 2))
    first, second = world.of(PODS)
    for _ in range(3):
        world.now += timedelta(seconds=20)
        world.patch(PODS, first, {"status": {"phase": "Failed"}})
        world.settle()
        world.now = max([s.at for s in world.plan() if isinstance(s, Again)] or [world.now])
        world.settle()
    world.patch(PODS, first, {"status": {"phase": "Failed"}})
    world.now += LONG_LIFE
    world.patch(PODS, second, {"status": {"phase": "Failed"}})
    assert second in {s.name for s in world.plan() if isinstance(s, Remove)}


def test_a_pod_that_is_done_is_left_and_its_clique_says_so() -> None:
    world = settled(clique("a", 1))
    (name,) = world.of(PODS)
    there: JsonObject = {"nodeName": "n", "schedulingGates": None}
    world.patch(PODS, name, {"spec": there, "status": {"phase": "Succeeded"}})
    world.now += timedelta(hours=10)
    world.settle()
    assert name in world.of(PODS)
    assert part(the_pod(world), "status")["phase"] == "Succeeded"
    status = part(world.of(PODCLIQUES)["demo-0-a"], "status")
    assert part(status, "lastOperation")["description"] == "0 pods are ready, 1 are done"
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    assert {str(c["type"]): c["status"] for c in conditions if isinstance(c, dict)} == {
        "MinAvailableBreached": "False", "PodCliqueScheduled": "True",
    }  # fmt: skip


def test_pods_are_made_only_when_their_clique_is_there_to_stay() -> None:
    world = settled(clique("a", 2))
    world.lingering = True
    world.delete(PODCLIQUES, "demo-0-a")
    for _ in range(3):
        for step in world.plan():
            assert not isinstance(step, Create)
            world.apply(step)
    world.gone()
    world.settle()
    assert len(world.of(PODS)) == 2
