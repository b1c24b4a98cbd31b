"""Hashes that live sets carry change with their pods and with nothing else, in all versions."""

import re

import pytest

from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.workloads.updates.hashing import generation_hash, template_hash

SCRATCH: JsonObject = {"name": "scratch", "emptyDir": {}}
PLAIN: JsonObject = {"containers": [{"name": "main", "image": "model:1"}]}
FULL: JsonObject = {
    "restartPolicy": "OnFailure",
    "priorityClassName": "high",
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"operator": "Exists"}],
    "initContainers": [{"name": "load", "image": "load", "restartPolicy": "Always"}],
    "containers": [
        {
            "name": "main",
            "image": "model:1",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": ""}],
            "ports": [{"containerPort": 80, "protocol": "UDP"}],
            "resources": {"limits": {"cpu": "2", "memory": "1536Mi", "nvidia.com/gpu": 8}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        }
    ],
    "volumes": [SCRATCH],
}


def template(pod_spec: JsonObject, **more: Json) -> CliqueTemplate:
    body: JsonObject = {"name": "main", **more, "spec": {"podSpec": pod_spec}}
    return CliqueTemplate.model_validate(body)


def container(**fields: Json) -> JsonObject:
    return {"containers": [{"name": "main", "image": "model:1", **fields}]}


def test_known_templates_keep_their_known_hashes() -> None:
    """A change here would replace every pod of every live set: never adapt these."""
    assert template_hash(template(PLAIN), "") == "1a030e6aa6bcb22b"
    assert template_hash(template(FULL), "low") == "85479208a6a97448"
    labelled = template(PLAIN, labels={"role": "x"}, annotations={"note": "y"})
    assert template_hash(labelled, "low") == "52770a4587b403d7"


def test_a_hash_can_be_a_label() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", template_hash(template(FULL), "low"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, {**PLAIN, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}),
        (PLAIN, {**PLAIN, "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}),
        (PLAIN, {**PLAIN, "nodeSelector": {}, "tolerations": [], "securityContext": {}}),
        (PLAIN, {**PLAIN, "affinity": None}),
        (PLAIN, container(resources={}, terminationMessagePath="/dev/termination-log")),
        (PLAIN, container(env=[], resources={"limits": {}})),
        (
            container(ports=[{"containerPort": 80}]),
            container(ports=[{"protocol": "TCP", "containerPort": 80}]),
        ),
        (
            container(resources={"limits": {"cpu": 1, "memory": "1Gi"}}),
            container(resources={"limits": {"memory": "1024Mi", "cpu": "1000m"}}),
        ),
        (
            container(readinessProbe={"httpGet": {"port": 80}}),
            container(
                readinessProbe={
                    "httpGet": {"port": 80, "scheme": "HTTP"}, "periodSeconds": 10,
                    "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
                }
            ),
        ),
    ],
)  # fmt: skip
def test_what_makes_the_same_pods_has_the_same_hash(one: JsonObject, other: JsonObject) -> None:
    assert template_hash(template(one), "") == template_hash(template(other), "")


@pytest.mark.parametrize(
    "other",
    [
        container(image="model:2"),
        container(command=["run"]),
        container(stdin=True),
        container(env=[{"name": "A", "value": "1"}]),
        container(ports=[{"containerPort": 80}]),
        container(resources={"limits": {"cpu": "1"}}),
        {**PLAIN, "restartPolicy": "Never"},
        {**PLAIN, "terminationGracePeriodSeconds": 31},
        {**PLAIN, "hostNetwork": True},
        {**PLAIN, "priorityClassName": "high"},
        {**PLAIN, "volumes": [SCRATCH]},
    ],
)
def test_what_makes_other_pods_has_another_hash(other: JsonObject) -> None:
    assert template_hash(template(PLAIN), "") != template_hash(template(other), "")


def test_the_order_of_containers_and_variables_counts() -> None:
    first: Json = {"name": "A", "value": "1"}
    second: Json = {"name": "B", "value": "$(A)"}
    one, other = container(env=[first, second]), container(env=[second, first])
    assert template_hash(template(one), "") != template_hash(template(other), "")


def test_an_empty_selector_is_not_the_same_as_none() -> None:
    spread: JsonObject = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    one: JsonObject = {**PLAIN, "topologySpreadConstraints": [spread]}
    selecting: JsonObject = {**spread, "labelSelector": {}}
    other: JsonObject = {**PLAIN, "topologySpreadConstraints": [selecting]}
    assert template_hash(template(one), "") != template_hash(template(other), "")


def test_labels_and_annotations_count_unless_they_never_reach_a_pod() -> None:
    plain = template_hash(template(PLAIN), "")
    assert template_hash(template(PLAIN, labels={"a": "b"}), "") != plain
    assert template_hash(template(PLAIN, annotations={"a": "b"}), "") != plain
    assert template_hash(template(PLAIN, labels={"app.kubernetes.io/name": "x"}), "") == plain
    assert template_hash(template(PLAIN, annotations={"grove.io/topology-name": "x"}), "") == plain


def test_the_priority_counts_that_pods_really_have() -> None:
    own = template({**PLAIN, "priorityClassName": "high"})
    assert template_hash(template(PLAIN), "low") != template_hash(template(PLAIN), "high")
    assert template_hash(own, "low") == template_hash(own, "high")
    assert template_hash(template(PLAIN), "high") == template_hash(own, "")


def test_scale_and_startup_and_topology_do_not_count() -> None:
    other = {
        "name": "main",
        "topologyConstraint": {"pack": {"required": "rack"}},
        "spec": {"replicas": 7, "minAvailable": 2, "startsAfter": ["other"], "podSpec": PLAIN},
    }
    there = CliqueTemplate.model_validate(other)
    assert template_hash(there, "") == template_hash(template(PLAIN), "")


def set_of(*cliques: Json, priority: str = "") -> PodCliqueSetSpec:
    body = {"template": {"cliques": [*cliques], "priorityClassName": priority}}
    return PodCliqueSetSpec.model_validate(body)


def test_reordered_cliques_are_the_same_generation() -> None:
    one: Json = {"name": "one", "spec": {"podSpec": PLAIN}}
    two: Json = {"name": "two", "spec": {"podSpec": FULL}}
    assert generation_hash(set_of(one, two)) == generation_hash(set_of(two, one))


def test_a_change_of_any_clique_or_of_their_priority_is_another_generation() -> None:
    one: Json = {"name": "one", "spec": {"podSpec": PLAIN}}
    changed: Json = {"name": "one", "spec": {"podSpec": container(image="model:2")}}
    two: Json = {"name": "two", "spec": {"podSpec": FULL}}
    plain = generation_hash(set_of(one, two))
    assert generation_hash(set_of(changed, two)) != plain
    assert generation_hash(set_of(one, two, priority="high")) != plain


def test_a_known_set_keeps_its_known_generation() -> None:
    """As with templates: never adapt it."""
    one: Json = {"name": "one", "spec": {"podSpec": PLAIN}}
    assert generation_hash(set_of(one, priority="low")) == "ac91021053d0ecd6"
