"""A glance at a pod lets nothing pass in which a rule would find anything."""

from dataclasses import fields
from functools import cached_property
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from api import names
from api.jsons import Json, JsonObject
from policies import bounds, pod_glance, podcliqueset_view, podspec_rules, rules
from policies.known import NOTHING
from policies.podcliqueset_case import Case
from policies.podcliqueset_startup_rules import waiters_names_are_free
from policies.podcliqueset_view import Clique, SetView
from policies.policy import BUILT_IN
from policies.rules import Rule
from tests.policies import chaos
from tests.policies.chaos import JSONS
from tests.policies.drafts import clique, draft

REQUIRED: Final = bounds.REQUIRED
RULES: Final = (*podspec_rules.RULES, Rule(waiters_names_are_free))
CONTAINER: Final[JsonObject] = {
    "name": "engine",
    "image": "registry.example/engine:1",
    "command": ["serve"],
    "env": [{"name": "MODE", "value": "x"}, {"name": "IP", "valueFrom": {"fieldRef": {}}}],
    "envFrom": [{"secretRef": {"name": "keys"}}],
    "ports": [{"name": "http", "containerPort": 8000}],
    "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}},
    "livenessProbe": {"httpGet": {"port": 8000}},
}
POD: Final[JsonObject] = {
    "restartPolicy": "Always",
    "nodeName": "",
    "hostNetwork": False,
    "priority": 7,
    "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
    "initContainers": [{"name": "fetch", "image": "registry.example/fetch:1"}],
    "containers": [CONTAINER, {"name": "metrics"}],
    "ephemeralContainers": [],
    "volumes": [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "data", "image": {"reference": "registry.example/data:1"}},
    ],
    "affinity": {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool"}]}]}
        },
    },
    "unknown": [{}],
}
_TWICE: Final[list[Json]] = [{"name": "A"}, {"name": "A"}]
_TEXTS: Final[list[Json]] = ["", "x", "a b", "..", "Sometimes", "x" * 254, "x" * 1025, names.WAITER]
_LISTS: Final[list[Json]] = [[], [{}], [None], _TWICE, [{"name": names.TOKEN_VOLUME}], [1] * 300]
ANYTHING: Final = st.sampled_from([*_TEXTS, *_LISTS, 1.0, True, None]) | JSONS


class Closely(SetView):
    """A set in all of whose pods rules look for something."""

    @cached_property
    @override
    def doubtful(self) -> tuple[Clique, ...]:
        return self.cliques


def found(pod: JsonObject) -> list[str]:
    """What rules have to say of the pod of a clique that waits for another."""
    seen = podcliqueset_view.view(draft(clique("a"), clique("b", "a", pod=pod)))
    closely = Closely(**{each.name: getattr(seen, each.name) for each in fields(seen)})
    case = Case(closely, BUILT_IN, NOTHING, is_new=True)
    return [problem.path for problem in rules.found(RULES, case)]


@st.composite
def broken_pods(draw: st.DrawFn) -> JsonObject:
    """A pod with anything at all in one to three places."""
    made = POD
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([each for each in chaos.paths(made) if each]))
        made = chaos.replaced(made, path, draw(ANYTHING))
    return made


@given(broken_pods())
def test_rules_find_nothing_in_what_passes(pod: JsonObject) -> None:
    assert not pod_glance.surely_fits(pod) or found(pod) == []


def test_what_people_write_passes() -> None:
    assert pod_glance.surely_fits(POD)
    assert pod_glance.surely_fits({"containers": [{"name": "main"}]})
    assert found(POD) == []


def within(**fields: Json) -> JsonObject:
    return {**POD, "containers": [{**CONTAINER, **fields}]}


def full(field: str) -> list[Json]:
    return [{"name": f"n{i}"} for i in range(bounds.MOST[field] + 1)]


EMPTY_TERM: Final[JsonObject] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}
VOLUME_OF_IMAGE: Final[JsonObject] = {"name": "data", "image": {"reference": "x" * 1025}}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {**POD, "containers": []},
        {**POD, "containers": None},
        {**POD, "ephemeralContainers": [{"name": "debug"}]},
        {**POD, "nodeName": "node-1"},
        {**POD, "restartPolicy": "Sometimes"},
        {**POD, "topologySpreadConstraints": []},
        {**POD, "affinity": EMPTY_TERM},
        {**POD, "priority": "7"},
        {**POD, "initContainers": [{"name": names.WAITER}]},
        {**POD, "volumes": [{"name": names.TOKEN_VOLUME}]},
        {**POD, "volumes": full("volumes")},
        {**POD, "volumes": [VOLUME_OF_IMAGE]},
        {**POD, "securityContext": {"sysctls": full("sysctls")}},
        within(name=names.WAITER),
        within(image="x" * 1025),
        within(env=_TWICE),
        within(env=[{"name": "1A"}]),
        within(env=full("env")),
        within(envFrom=full("envFrom")),
        within(ports=[{"hostPort": 80}]),
        within(volumeMounts=[{"name": "models"}]),
        within(securityContext={"capabilities": {"add": full("add")}}),
    ],
)
def test_what_a_rule_refuses_does_not_pass(pod: JsonObject) -> None:
    assert found(pod)
    assert not pod_glance.surely_fits(pod)
