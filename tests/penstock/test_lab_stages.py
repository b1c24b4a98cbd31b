"""The stages as data; what they do is tried on a real KWOK in tests/cluster."""

import re

import yaml

from penstock.lab import kwokctl, pod_templates
from penstock.lab.stages import ANNOTATIONS, PREFIX, node_stages, pod_stages, stages

NAMES = {
    "node-up",
    "node-down",
    "node-heartbeat",
    "pod-start-at-once",
    "pod-admit",
    "pod-init-next",
    "pod-start",
    "pod-readiness",
    "pod-complete",
    "pod-fail",
    "pod-crash",
    "pod-restart",
    "pod-stop",
    "pod-remove",
}
TEMPLATES = {
    name: value
    for name, value in vars(pod_templates).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}


def test_the_set_is_complete_and_survives_yaml() -> None:
    read = list(yaml.safe_load_all(kwokctl.render(stages())))
    assert read == stages()
    assert {stage["metadata"]["name"] for stage in read} == NAMES
    kinds = {stage["spec"]["resourceRef"]["kind"] for stage in read}
    assert kinds == {"Node", "Pod"}
    assert len(node_stages()) + len(pod_stages()) == len(NAMES)


def test_every_stage_has_a_condition_and_a_step() -> None:
    for stage in yaml.safe_load_all(kwokctl.render(stages())):
        (expression,) = stage["spec"]["selector"]["matchExpressions"]
        assert expression["jq"]["operator"] == "In"
        assert expression["jq"]["values"] == ["true"]
        assert len(stage["spec"]["steps"]) == 1


def test_brackets_balance_in_every_template_and_expression() -> None:
    for name, template in TEMPLATES.items():
        opened = len(re.findall(r"{{ (?:if|range|with) ", template))
        assert opened == len(re.findall(r"{{ end }}", template)), name
    for stage in yaml.safe_load_all(kwokctl.render(stages())):
        (expression,) = stage["spec"]["selector"]["matchExpressions"]
        for one, other in ("()", "[]", "{}"):
            assert expression["jq"]["key"].count(one) == expression["jq"]["key"].count(other)


def test_every_annotation_that_is_read_is_documented() -> None:
    text = kwokctl.render(stages())
    read = set(re.findall(r'(?:annotation|seconds)\("([a-z.-]+)"', text))
    read |= set(re.findall(rf'"{re.escape(PREFIX)}([a-z-]+)"', text))
    documented = {name.partition("CONTAINER")[0] for name in ANNOTATIONS}
    assert read <= documented
    assert documented - read == set()


def test_no_stage_writes_the_condition_of_a_readiness_gate() -> None:
    for template in TEMPLATES.values():
        assert "- type: {{ $gate" not in template
