"""The guards of the chart, as helm renders them."""

from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from policies.policy import BUILT_IN
from tests.repo.test_chart import expand, rules
from tests.support.chart_pods import mapping
from tests.support.charts import CHART, Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
WARNS: Final = "penstock-guard-owners-warning"
GROVE: Final = "penstock-grove-operator"
ACCOUNTS: Final = ("grove.accounts[0].namespace=grove-system", "grove.accounts[0].name=operator")


def guards(objects: Objects) -> dict[str, JsonObject]:
    return {name: each for (kind, name), each in objects.items() if kind == POLICY}


def expressions(value: Json) -> Iterator[str]:
    """Every expression of a guard, wherever it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"expression", "messageExpression"} and isinstance(inner, str):
                yield inner
            else:
                yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def test_every_guard_is_bound_and_fails_closed(outside: Objects) -> None:
    found = guards(outside)
    assert len(found) >= 10
    assert {name for kind, name in outside if kind == BINDING} == set(found)
    for name, guard in found.items():
        assert items(guard, "spec", "failurePolicy") == ["Fail"], name
        bound = outside[BINDING, name]
        assert items(bound, "spec", "policyName") == [name]
        assert items(bound, "spec", "validationActions") == ["Warn" if name == WARNS else "Deny"]


def test_every_refusal_has_a_message(outside: Objects) -> None:
    for name, guard in guards(outside).items():
        for validation in items(guard, "spec", "validations"):
            assert isinstance(validation, dict)
            assert validation.get("message"), (name, validation)


def test_our_verbs_are_asked_for_in_the_whole_cluster(outside: Objects) -> None:
    asked = [
        expression
        for guard in guards(outside).values()
        for expression in expressions(guard)
        if f"resource('{names.GATES_RESOURCE}')" in expression
        or f"resource('{names.GANG_PODS_RESOURCE}')" in expression
    ]
    assert asked
    assert not [expression for expression in asked if ".namespace(" in expression]


def test_the_gate_is_guarded_in_every_namespace(outside: Objects) -> None:
    conditions = items(outside[POLICY, "penstock-guard-gate"], "spec", "matchConditions")
    assert not [text for text in expressions(conditions) if "request.namespace" in text]


def test_other_guards_of_pods_leave_out_the_namespaces_that_the_webhooks_leave_out(
    render: Render,
) -> None:
    objects = render("webhook.excludedNamespaces={tools}")
    for part in ("gang-pods", "labels", "bindings", "owners", "managed-status"):
        conditions = items(objects[POLICY, f"penstock-guard-{part}"], "spec", "matchConditions")
        (asked,) = (text for text in expressions(conditions) if "!(request.namespace in" in text)
        left_out = asked.split("!(request.namespace in [")[1].split("]")[0]
        assert "'tools'" in left_out
        assert "'kube-system'" in left_out


def test_no_request_has_to_wait_until_the_selectors_of_guards_are_read(outside: Objects) -> None:
    # The API server reads each one anew for every request, also where the guard's rules say no.
    for name, guard in guards(outside).items():
        constraints = mapping(guard, "spec", "matchConstraints")
        assert not {"namespaceSelector", "objectSelector"} & constraints.keys(), name


def test_the_schedulers_are_those_of_the_policy_without_a_file() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["schedulers"] == list(BUILT_IN.schedulers)
    taken = {name for name in BUILT_IN.scheduler_names if BUILT_IN.ours(name)}
    assert set(values["schedulerAliases"]) == taken - {"", *BUILT_IN.schedulers}


@pytest.mark.parametrize(
    "guard", ["penstock-guard-gang-pods", "penstock-guard-labels", "penstock-guard-owners"]
)
def test_other_schedulers_are_guarded_when_the_values_name_them(render: Render, guard: str) -> None:
    objects = render("schedulers={gpu-scheduler}", "schedulerAliases={other}")
    conditions = items(objects[POLICY, guard], "spec", "matchConditions")
    asked = [text for text in expressions(conditions) if "schedulerName" in text]
    assert ["gpu-scheduler" in text for text in asked] == [True]
    assert "kai-scheduler" not in asked[0]


def test_nobody_makes_gangs_pods_beside_workloads_unless_named(
    outside: Objects, render: Render
) -> None:
    assert rules(outside["ClusterRole", GROVE]) == expand(
        (names.GROUP, names.GANG_PODS_RESOURCE, names.GANG_PODS_VERB, "")
    )
    assert ("ClusterRoleBinding", GROVE) not in outside
    binding = render(*ACCOUNTS)["ClusterRoleBinding", GROVE]
    assert items(binding, "subjects") == [
        {"kind": "ServiceAccount", "namespace": "grove-system", "name": "operator"}
    ]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("schedulers={}", "/schedulers"),
        ("schedulers={a'b}", "/schedulers/0"),
        ("schedulerAliases={A}", "/schedulerAliases/0"),
        ("grove.accounts[0].name=x", "/grove/accounts/0"),
    ],
)
def test_a_value_that_would_spoil_a_guard_is_refused(
    render: Render, setting: str, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        render(setting)
