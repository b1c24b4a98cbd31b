from typing import Final

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from tests.support.charts import URL, Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

VALIDATING: Final = "ValidatingWebhookConfiguration"
MUTATING: Final = "MutatingWebhookConfiguration"
# Kind of configuration, webhook, path, failure policy once it is proven to answer, seconds.
WEBHOOKS: Final = [
    (MUTATING, "podcliquesets.penstock.dev", "/default/podcliquesets", "Fail", 5),
    (MUTATING, "pods.penstock.dev", "/mutate/pods", "Ignore", 2),
    (VALIDATING, "podcliquesets.penstock.dev", "/validate/podcliquesets", "Fail", 5),
    (
        VALIDATING,
        "clustertopologybindings.penstock.dev",
        "/validate/clustertopologybindings",
        "Fail",
        5,
    ),
    (VALIDATING, "managed.penstock.dev", "/authorize/managed", "Fail", 5),
    (VALIDATING, "policy.penstock.dev", "/validate/policy", "Ignore", 3),
]
NAMED: Final = [pytest.param(kind, name, id=f"{kind[0]} {name}") for kind, name, *_ in WEBHOOKS]
# Topologies are in no namespace, and the policy is in ours.
ELSEWHERE: Final = ("clustertopologybindings.penstock.dev", "policy.penstock.dev")
OF_NAMESPACES: Final = [each for each in NAMED if each.values[1] not in ELSEWHERE]


def webhooks(objects: Objects, kind: str) -> dict[str, JsonObject]:
    found = items(objects[kind, names.WEBHOOK_CONFIGURATION], "webhooks")
    return {str(each["name"]): each for each in found if isinstance(each, dict)}


def covered(webhook: JsonObject) -> set[tuple[str, str, str, str]]:
    """What it is asked about, as group, version, resource and operation."""
    return {
        (str(group), str(version), str(resource), str(operation))
        for rule in items(webhook, "rules")
        for group in items(rule, "apiGroups")
        for version in items(rule, "apiVersions")
        for resource in items(rule, "resources")
        for operation in items(rule, "operations")
    }


def conditions(webhook: JsonObject) -> dict[str, str]:
    return {
        str(each["name"]): str(each["expression"])
        for each in items(webhook, "matchConditions")
        if isinstance(each, dict)
    }


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_these_webhooks_there_are_in_this_order(outside: Objects, kind: str) -> None:
    assert [*webhooks(outside, kind)] == [name for of, name, *_ in WEBHOOKS if of == kind]


@pytest.mark.parametrize(("kind", "name", "path", "policy", "seconds"), WEBHOOKS)
def test_each_answers_at_its_path_and_fails_as_it_should(
    outside: Objects, kind: str, name: str, path: str, policy: str, seconds: int
) -> None:
    found = webhooks(outside, kind)[name]
    assert found["clientConfig"] == {"url": f"{URL}{path}"}
    assert (found["failurePolicy"], found["timeoutSeconds"]) == ("Ignore", seconds)
    # Other served versions come too; and what writes nothing may be asked in a dry run.
    assert (found["matchPolicy"], found["sideEffects"]) == ("Equivalent", "NoneOnDryRun")
    assert found["admissionReviewVersions"] == ["v1"]


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_all_start_open_and_those_are_closed_that_can_be_without_harm(
    outside: Objects, render: Render, kind: str
) -> None:
    policies = {name: policy for of, name, _, policy, _ in WEBHOOKS if of == kind}
    at_once = webhooks(render("webhook.proof.enabled=false"), kind)
    assert {name: each["failurePolicy"] for name, each in at_once.items()} == policies
    configuration = outside[kind, names.WEBHOOK_CONFIGURATION]
    (closing,) = items(configuration, "metadata", "annotations", names.CLOSES_ANNOTATION)
    closed = [name for name, policy in policies.items() if policy == "Fail"]
    assert str(closing).split(",") == closed


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_sets_are_looked_at_when_created_and_updated(outside: Objects, kind: str) -> None:
    found = webhooks(outside, kind)["podcliquesets.penstock.dev"]
    assert covered(found) == {
        ("grove.io", "v1alpha1", "podcliquesets", "CREATE"),
        ("grove.io", "v1alpha1", "podcliquesets", "UPDATE"),
    }


def test_topologies_belong_to_no_namespace(outside: Objects) -> None:
    found = webhooks(outside, VALIDATING)["clustertopologybindings.penstock.dev"]
    assert covered(found) == {
        ("grove.io", "v1alpha1", "clustertopologybindings", "CREATE"),
        ("grove.io", "v1alpha1", "clustertopologybindings", "UPDATE"),
    }
    assert items(found, "rules", 0, "scope") == ["Cluster"]
    assert "namespaceSelector" not in found


def test_pods_are_marked_on_create_and_only_those_of_gangs(outside: Objects) -> None:
    found = webhooks(outside, MUTATING)["pods.penstock.dev"]
    assert covered(found) == {("", "v1", "pods", "CREATE")}
    assert found["reinvocationPolicy"] == "IfNeeded"
    (judged,) = conditions(found).values()
    assert f"'{names.PODGANG_LABEL}' in object.metadata.labels" in judged
    assert f"'{names.GANG_LABEL}' in object.metadata.labels" in judged
    assert "!('kubernetes.io/config.mirror' in object.metadata.annotations)" in judged


def test_only_the_maker_of_sets_pods_is_believed_that_it_has_judged_them(
    outside: Objects, render: Render
) -> None:
    found = conditions(webhooks(outside, MUTATING)["pods.penstock.dev"])
    (told,) = found.values()
    account = f"system:serviceaccount:{names.NAMESPACE}:{names.WORKLOADS_ACCOUNT}"
    assert f"request.userInfo.username != '{account}'" in told
    assert f"'{names.JUDGED_ANNOTATION}' in object.metadata.annotations" in told
    grove = "grove.accounts[0].namespace=grove-system,grove.accounts[0].name=grove-operator"
    beside = webhooks(render(f"companion.enabled=true,{grove}"), MUTATING)["pods.penstock.dev"]
    (told,) = conditions(beside).values()
    assert account not in told
    assert names.JUDGED_ANNOTATION not in told


def test_what_is_made_for_sets_is_protected_and_nothing_else(outside: Objects) -> None:
    found = webhooks(outside, VALIDATING)["managed.penstock.dev"]
    changed = {"UPDATE", "DELETE"}
    expected = {
        ("", "v1", "secrets"): changed,
        ("", "v1", "serviceaccounts"): changed,
        ("", "v1", "services"): changed,
        ("", "v1", "pods"): {"UPDATE"},
        ("rbac.authorization.k8s.io", "v1", "roles"): changed,
        ("rbac.authorization.k8s.io", "v1", "rolebindings"): changed,
        ("autoscaling", "v1", "horizontalpodautoscalers"): changed,
        ("autoscaling", "v2", "horizontalpodautoscalers"): changed,
        ("grove.io", "v1alpha1", "podcliques"): {"CREATE", *changed},
        ("grove.io", "v1alpha1", "podcliquescalinggroups"): {"CREATE", *changed},
        ("scheduler.grove.io", "v1alpha1", "podgangs"): {"CREATE", *changed},
    }
    assert covered(found) == {(*what, op) for what, ops in expected.items() for op in ops}
    assert found["objectSelector"] == {"matchLabels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}


def test_of_config_maps_only_the_policy_in_our_namespace_is_looked_at(outside: Objects) -> None:
    found = webhooks(outside, VALIDATING)["policy.penstock.dev"]
    assert covered(found) == {
        ("", "v1", "configmaps", "CREATE"),
        ("", "v1", "configmaps", "UPDATE"),
    }
    (ours,) = items(found, "namespaceSelector", "matchExpressions")
    assert isinstance(ours, dict)
    assert (ours["operator"], ours["values"]) == ("In", [names.NAMESPACE])
    judged = conditions(found)
    assert f"== '{names.POLICY_CONFIG}'" in judged["is-the-policy"]
    assert "object.?data.orValue({}) != oldObject" in judged["says-something-else"]


@pytest.mark.parametrize("sets", ["companion.enabled=true", "featureGates.GroveIntegration=false"])
def test_the_policy_is_looked_at_whoever_makes_the_gangs(render: Render, sets: str) -> None:
    grove = "grove.accounts[0].namespace=grove-system,grove.accounts[0].name=grove-operator"
    assert "policy.penstock.dev" in webhooks(render(f"{sets},{grove}"), VALIDATING)


def test_who_keeps_a_cluster_going_is_never_asked_about(render: Render) -> None:
    grove = "grove.accounts[0].namespace=grove-system,grove.accounts[0].name=grove-operator"
    judged = conditions(webhooks(render(grove), VALIDATING)["managed.penstock.dev"])
    (asked,) = judged.values()
    makers, kubernetes = asked.split("]) &&", 1)
    for account in (
        f"{names.NAMESPACE}:{names.WORKLOADS_ACCOUNT}",
        f"{names.NAMESPACE}:{names.GANGS_ACCOUNT}",
        "grove-system:grove-operator",
    ):
        assert f"'system:serviceaccount:{account}'" in makers
    assert names.WEBHOOK_ACCOUNT not in makers
    for part in ("system:serviceaccount:kube-system:", "system:kube-scheduler", "system:nodes"):
        assert f"'{part}'" in kubernetes


@pytest.mark.parametrize(("kind", "name"), OF_NAMESPACES)
def test_what_would_bring_it_back_is_never_its_business(
    render: Render, kind: str, name: str
) -> None:
    found = webhooks(render("webhook.excludedNamespaces={tools}"), kind)[name]
    (left_out,) = items(found, "namespaceSelector", "matchExpressions")
    assert isinstance(left_out, dict)
    assert left_out["operator"] == "NotIn"
    assert left_out["values"] == [
        *("kube-system", "kube-public", "kube-node-lease", names.NAMESPACE),
        "tools",
    ]


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_the_chart_never_names_the_ca_bundle(outside: Objects, inside: Objects, kind: str) -> None:
    for objects in (outside, inside):
        assert "caBundle" not in yaml.safe_dump(objects[kind, names.WEBHOOK_CONFIGURATION])


def test_inside_the_cluster_they_are_reached_by_their_service(inside: Objects) -> None:
    for kind, name, path, *_ in WEBHOOKS:
        assert webhooks(inside, kind)[name]["clientConfig"] == {
            "service": {
                "name": names.WEBHOOK_SERVICE,
                "namespace": names.NAMESPACE,
                "port": 443,
                "path": path,
            }
        }
    port, metrics = items(inside["Service", names.WEBHOOK_SERVICE], "spec", "ports")
    assert isinstance(port, dict)
    assert (port["port"], port["targetPort"]) == (443, 9443)
    assert isinstance(metrics, dict)
    assert metrics["name"] == "metrics"
