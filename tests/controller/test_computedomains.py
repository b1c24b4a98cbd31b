"""NVLink over several nodes: one domain a group in each replica, gone when its last pod is."""

from dataclasses import replace

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Meta, Pod
from controller.workloads.expansion import expand
from controller.workloads.making import computedomains
from controller.workloads.stepping import Change, Create, Remove, Step
from controller.workloads.views import Choices, SetView, Thing
from kube.resources import COMPUTE_DOMAINS
from tests.support.setviews import NOW, clique, made, set_spec

FINALIZER = "grove.io/computedomain-finalizer"
KEY = "grove.io/mnnvl-group"
ON = Choices(mnnvl=True)


def gpus(count: Json, where: str = "limits") -> JsonObject:
    return {"name": "main", "resources": {where: {"nvidia.com/gpu": count}}}


def spec_of(
    of_group: str = "", of_clique: str = "", *, replicas: int = 1, gpu: Json = "4"
) -> PodCliqueSetSpec:
    """A router without GPUs; workers with them, in a group."""
    group: JsonObject = {"name": "model", "cliqueNames": ["worker"], "replicas": 2}
    if of_group:
        group["annotations"] = {KEY: of_group}
    worker = clique("worker", 1, podSpec={"containers": [gpus(gpu), {"name": "side"}]})
    if of_clique:
        worker["annotations"] = {KEY: of_clique}
    return set_spec(clique("router", 1), worker, groups=[group], replicas=replicas)


def view_of(of_set: str, spec: PodCliqueSetSpec, choices: Choices = ON) -> SetView:
    view = made(spec)
    notes = {KEY: of_set} if of_set else {}
    meta = msgspec.structs.replace(view.metadata, annotations=notes)
    return replace(view, metadata=meta, choices=choices)


def steps(view: SetView) -> list[Step]:
    return list(computedomains.steps(view, expand(view), NOW))


def made_domains(view: SetView) -> dict[str, JsonObject]:
    found = {}
    for step in steps(view):
        assert isinstance(step, Create)
        metadata = step.body["metadata"]
        assert isinstance(metadata, dict)
        found[str(metadata["name"])] = step.body
    return found


def test_each_replica_has_a_domain_of_each_group_made_as_grove_makes_it() -> None:
    found = made_domains(view_of("nv", spec_of(replicas=2)))
    assert found.keys() == {"demo-0-nv", "demo-1-nv"}
    body = found["demo-1-nv"]
    assert body["apiVersion"] == "resource.nvidia.com/v1beta1"
    assert body["spec"] == {
        "numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "demo-1-nv"}},
    }  # fmt: skip
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-1-nv",
        "app.kubernetes.io/component": "pcs-computedomain",
        "grove.io/podcliqueset-replica-index": "1",
        "grove.io/mnnvl-group": "nv",
    }


@pytest.mark.parametrize(
    ("of_set", "of_group", "of_clique", "group"),
    [
        ("a", "", "", "a"),
        ("a", "b", "", "b"),
        ("a", "b", "c", "c"),
        ("a", "b", "none", ""),
        ("a", "none", "", ""),
        ("none", "", "c", "c"),
        ("", "", "", ""),
    ],
)
def test_a_clique_goes_by_its_own_word_then_its_groups_then_its_sets(
    of_set: str, of_group: str, of_clique: str, group: str
) -> None:
    view = view_of(of_set, spec_of(of_group, of_clique))
    assert computedomains.group_of(view, expand(view).cliques["demo-0-model-0-worker"]) == group


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(view_of("nv", spec_of(), Choices()), id="switched off"),
        pytest.param(view_of("nv", spec_of(gpu="0")), id="no GPUs"),
        pytest.param(view_of("none", spec_of()), id="opted out"),
    ],
)
def test_no_domain_is_made_without_need(view: SetView) -> None:
    want = expand(view).cliques["demo-0-model-0-worker"]
    spec = want.template.spec.pod_spec
    assert steps(view) == []
    assert computedomains.shaped(view, want, 0, spec) == spec


@pytest.mark.parametrize("where", ["limits", "requests"])
def test_only_containers_with_gpus_refer_to_the_domain(where: str) -> None:
    view = view_of("nv", spec_of())
    want = expand(view).cliques["demo-0-model-1-worker"]
    spec: JsonObject = {"containers": [gpus(2, where), {"name": "side"}, gpus("none")]}
    shaped = computedomains.shaped(view, want, 0, spec)
    assert shaped["resourceClaims"] == [
        {"name": "mnnvl-claim", "resourceClaimTemplateName": "demo-0-nv"}
    ]
    first, *others = shaped["containers"] if isinstance(shaped["containers"], list) else []
    assert isinstance(first, dict)
    resources = first["resources"]
    assert isinstance(resources, dict)
    assert resources["claims"] == [{"name": "mnnvl-claim"}]
    assert others == [{"name": "side"}, gpus("none")]


def with_domains(view: SetView, *, leaving: str = "") -> SetView:
    things = {}
    for name, body in made_domains(view).items():
        labels = {"grove.io/podcliqueset-replica-index": name.split("-")[1]}
        meta = Meta(
            name=name, uid=f"uid-{name}", resource_version="7", labels=labels,
            finalizers=("other", FINALIZER), deletion_timestamp=NOW if name == leaving else None,
        )  # fmt: skip
        things[name] = Thing(meta, body)
    return replace(view, things={COMPUTE_DOMAINS: things})


def labelled(view: SetView) -> SetView:
    """The same, its pods labelled with their replica."""

    def of(pod: Pod, replica: int) -> Pod:
        labels = {**pod.metadata.labels, "grove.io/podcliqueset-replica-index": str(replica)}
        meta = msgspec.structs.replace(pod.metadata, labels=labels)
        return msgspec.structs.replace(pod, metadata=meta)

    wanted = expand(view).cliques
    pods = {n: tuple(of(p, wanted[n].place.replica) for p in ps) for n, ps in view.pods.items()}
    return replace(view, pods=pods)


def test_domains_that_are_there_are_left_alone() -> None:
    assert steps(with_domains(view_of("nv", spec_of(replicas=2)))) == []


def test_a_replica_that_is_scaled_in_loses_its_domain_and_keeps_it_while_it_has_pods() -> None:
    view = labelled(with_domains(view_of("nv", spec_of(replicas=2))))
    one = replace(view, spec=view.spec.model_copy(update={"replicas": 1}))
    assert steps(one) == [Remove(COMPUTE_DOMAINS, "demo-1-nv", "uid-demo-1-nv")]
    full = view_of("nv", spec_of(replicas=2))
    going = replace(one, things=with_domains(full, leaving="demo-1-nv").things)
    assert steps(going) == []
    left = {name: pods for name, pods in going.pods.items() if name.startswith("demo-0")}
    assert steps(replace(going, pods=left)) == [
        Change(
            COMPUTE_DOMAINS, "demo-1-nv", "uid-demo-1-nv",
            {"metadata": {"finalizers": ["other"]}}, "7",
        )
    ]  # fmt: skip


def test_when_it_is_switched_off_what_was_made_goes() -> None:
    view = with_domains(view_of("nv", spec_of()))
    assert steps(replace(view, choices=Choices())) == [
        Remove(COMPUTE_DOMAINS, "demo-0-nv", "uid-demo-0-nv")
    ]
