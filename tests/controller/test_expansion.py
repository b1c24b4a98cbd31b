"""A set expands into exactly Grove's objects, the same ones every time."""

import re

import msgspec
import pytest

from api.jsons import Json, JsonObject
from controller.workloads.expansion import WantedGang, expand, gang_body
from tests.support.sets import clique, set_meta, set_spec

OURS: JsonObject = {"name": "penstock.dev/gang"}
GROUP: JsonObject = {
    "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
}  # fmt: skip


def shape(gangs: tuple[WantedGang, ...]) -> dict[str, dict[str, tuple[int, int]]]:
    return {g.name: {c.name: (c.minimum, len(c.pods)) for c in g.cliques} for g in gangs}


def test_every_replica_is_a_gang_of_all_its_cliques() -> None:
    spec = set_spec(clique("prefill", 2), clique("decode", 4, 3), replicas=2)
    assert shape(expand(set_meta(), spec)) == {
        "demo-0": {"demo-0-prefill": (2, 2), "demo-0-decode": (3, 4)},
        "demo-1": {"demo-1-prefill": (2, 2), "demo-1-decode": (3, 4)},
    }


def test_copies_of_a_group_beyond_its_minimum_are_gangs_that_wait_for_their_base() -> None:
    spec = set_spec(clique("router", 1), clique("leader", 1), clique("worker", 2), groups=[GROUP])
    gangs = expand(set_meta(), spec)
    assert shape(gangs) == {
        "demo-0": {
            "demo-0-router": (1, 1),
            "demo-0-model-0-leader": (1, 1),
            "demo-0-model-0-worker": (2, 2),
            "demo-0-model-1-leader": (1, 1),
            "demo-0-model-1-worker": (2, 2),
        },
        "demo-0-model-0": {"demo-0-model-2-leader": (1, 1), "demo-0-model-2-worker": (2, 2)},
    }
    assert [gang.base for gang in gangs] == ["", "demo-0"]


def labels_of(body: JsonObject) -> dict[str, str]:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    labels = metadata["labels"]
    assert isinstance(labels, dict)
    return {key: str(value) for key, value in labels.items()}


def test_a_pod_is_named_labelled_and_hosted_as_grove_does_it() -> None:
    spec = set_spec(clique("leader", 1), clique("worker", 2), groups=[GROUP])
    pod = expand(set_meta(), spec)[1].cliques[1].pods[1]
    assert re.fullmatch(r"demo-0-model-2-worker-[a-z0-9]{5}", pod.name)
    assert labels_of(pod.body("")) == {
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
    assert pod.body("")["spec"] == {
        "containers": [{"name": "main", "image": "model"}],
        "schedulingGates": [{"name": "penstock.dev/gang"}],
        "hostname": "demo-0-model-2-worker-1",
        "subdomain": "demo-0",
    }


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
    spec = set_spec(clique("a", 1, podSpec=pod_spec))
    for _ in range(2):
        body = expand(set_meta(), spec)[0].cliques[0].pods[0].body("")["spec"]
        assert isinstance(body, dict)
        assert body["schedulingGates"] == made


def test_names_follow_from_the_slot_and_differ_between_sets_of_the_same_name() -> None:
    spec = set_spec(clique("a", 3))
    first, again = (expand(set_meta(), spec) for _ in range(2))
    assert first == again
    names = [pod.name for pod in first[0].cliques[0].pods]
    assert len(set(names)) == 3
    other = msgspec.structs.replace(set_meta(), uid="another")
    assert expand(other, spec)[0].cliques[0].pods[0].name not in names


def test_the_template_is_not_changed_by_expanding_it() -> None:
    spec = set_spec(clique("a", 1))
    before = spec.model_dump()
    expand(set_meta(), spec)
    assert spec.model_dump() == before


def test_a_gang_begins_with_all_cliques_and_no_pods() -> None:
    spec = set_spec(clique("a", 2, 1))
    (gang,) = expand(set_meta(), spec)
    body = gang_body(set_meta(), spec, gang)
    assert body["spec"] == {
        "podgroups": [{"name": "demo-0-a", "minReplicas": 1, "podReferences": []}],
        "priorityClassName": "",
    }


def test_a_template_cannot_say_which_gang_its_pods_belong_to() -> None:
    made = clique("a", 1) | {
        "labels": {"penstock.dev/gang": "x", "grove.io/base-podgang": "x", "role": "a"},
        "annotations": {"kubernetes.io/config.mirror": "x", "note": "kept"},
    }
    body = expand(set_meta(), set_spec(made))[0].cliques[0].pods[0].body("")
    assert not {"penstock.dev/gang", "grove.io/base-podgang"} & labels_of(body).keys()
    assert labels_of(body)["role"] == "a"
    assert isinstance(body["metadata"], dict)
    assert body["metadata"]["annotations"] == {"note": "kept"}
