"""The network's levels and the policy, where the chart's values say them."""

import json

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.topology import ClusterTopologyBindingSpec
from controller.gangs.topologies import BUILT_IN
from policies import __main__ as published
from policies import binding_rules, policy_source
from policies.policy import BUILT_IN as BUILT_IN_POLICY
from tests.support.charts import CHART, Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

SERVED = "--api-versions=grove.io/v1alpha1/ClusterTopologyBinding"
ON = "topologyAwareScheduling.enabled=true"
KEY = "topologyAwareScheduling.levels[0].key"
BINDING = "ClusterTopologyBinding"
POLICY = ("ConfigMap", names.POLICY_CONFIG)


def binding(objects: Objects, name: str = "network") -> ClusterTopologyBindingSpec:
    return ClusterTopologyBindingSpec.model_validate(objects[BINDING, name]["spec"])


def test_unless_told_there_is_no_binding_and_no_policy(inside: Objects) -> None:
    assert not any(kind == BINDING for kind, _ in inside)
    assert POLICY not in inside


def test_the_levels_are_those_that_are_known_without_it_and_the_node(render: Render) -> None:
    levels = {each.domain: each.key for each in binding(render(ON, SERVED)).levels}
    assert levels == {**BUILT_IN.keys_by_word, "host": names.HOSTNAME_KEY}


def test_levels_of_ones_own_take_their_place(render: Render) -> None:
    own = ("topologyAwareScheduling.levels[0].domain=row", "topologyAwareScheduling.name=hall")
    made = render(ON, SERVED, *own, "topologyAwareScheduling.levels[0].key=example.com/row")
    assert [each.domain for each in binding(made, "hall").levels] == ["row"]
    spec = made[BINDING, "hall"]["spec"]
    assert isinstance(spec, dict)
    case = binding_rules.BindingCase(spec, BUILT_IN_POLICY)
    assert [found for rule in binding_rules.RULES for found in rule.check(case)] == []


def test_it_is_kept_and_only_made_where_its_kind_is_served(render: Render, inside: Objects) -> None:
    (notes,) = items(render(ON, SERVED)[BINDING, "network"], "metadata", "annotations")
    assert notes == {"helm.sh/resource-policy": "keep"}
    # Helm looks for the kinds of all objects before it makes the first.
    assert render(ON).keys() == inside.keys()


def test_definitions_may_be_left_to_somebody_else(render: Render, inside: Objects) -> None:
    left = inside.keys() - render("definitions.enabled=false").keys()
    assert left == {key for key in inside if key[0] == "CustomResourceDefinition"}
    assert left


def policy(objects: Objects) -> str:
    (text,) = items(objects[POLICY], "data", names.POLICY_KEY)
    return str(text)


def test_a_policy_in_the_values_is_one_that_can_be_gone_by(render: Render) -> None:
    made = render("policy.mode=warn", "policy.queues[0].name=chat",
                  "policy.queues[0].namespaces={chat-*}",
                  "policy.queues[0].limits.gpusPerGang=1000000",
                  "schedulers={default-scheduler,second}")  # fmt: skip
    written = yaml.safe_load(policy(made))
    assert written["schedulers"] == ["default-scheduler", "second"]
    assert written["queues"][0]["limits"] == {"gpusPerGang": 1_000_000}
    found = policy_source.read("values", policy(made)).policy
    assert found.mode == "warn"
    assert [queue.name for queue in found.queues] == ["chat"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("policy.mod=warn",), "'mod' not allowed"),
        (("policy.queues[0].limits.gpu=1",), "'gpu' not allowed"),
        (("policy.schedulers={other}",), r"policy\.schedulers and schedulers must name the same"),
        (("policy.schedulerNames.other=default-scheduler",), "schedulerAliases"),
        ((ON, "topologyAwareScheduling.levels[0].domian=x"), "'domian' not allowed"),
        (
            (ON, "topologyAwareScheduling.levels[0].domain=row", f"{KEY}=a b"),
            "'a b' does not match",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    render: Render, settings: tuple[str, ...], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        render(*settings)


def test_the_values_know_the_policy_as_its_models_do() -> None:
    text = (CHART / "values.schema.json").read_text()
    assert published.in_values(text) == text, "make schema writes it"
    values: JsonObject = json.loads(text)
    (described,) = items(values, "properties", "policy", "properties")
    assert isinstance(described, dict)
    assert "queues" in described
