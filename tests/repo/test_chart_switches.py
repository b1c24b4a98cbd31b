"""What the chart leaves out when something is switched off, or another makes the gangs."""

import pytest

from api import names
from api.features import Features, read
from tests.support.charts import Objects, Render, items

OFF = "featureGates.GangScheduling=false"
NO_SETS = "featureGates.GroveIntegration=false"
COMPANION = (
    "companion.enabled=true",
    "grove.accounts[0].namespace=grove-system",
    "grove.accounts[0].name=grove-operator",
)
GATING = {"penstock-guard-gate", "penstock-guard-owners", "penstock-guard-owners-warning"}


def bound(chart: Objects) -> set[str]:
    return {name for kind, name in chart if kind == "ValidatingAdmissionPolicyBinding"}


def webhooks(chart: Objects, kind: str) -> list[str]:
    found = items(chart[f"{kind}WebhookConfiguration", "penstock"], "webhooks")
    return [str(each["name"]).partition(".")[0] for each in found if isinstance(each, dict)]


def conditions(chart: Objects) -> str:
    return str(items(chart["MutatingWebhookConfiguration", "penstock"], "webhooks"))


def claims(chart: Objects) -> str:
    policy = chart["ValidatingAdmissionPolicy", names.GANG_PODS_GUARD]
    found = items(policy, "spec", "variables")
    (claim,) = [v for v in found if isinstance(v, dict) and v["name"] == "claims"]
    return str(claim["expression"])


def test_without_gang_scheduling_no_pod_is_marked_or_asked_for_a_gate(
    outside: Objects, render: Render
) -> None:
    off = render(OFF)
    assert bound(outside) - bound(off) == GATING
    assert webhooks(off, "Mutating") == ["podcliquesets"]
    assert claims(off) == "false"
    made = str(off["ValidatingAdmissionPolicy", "penstock-guard-workloads"])
    assert "without the scheduling gate" not in made
    assert webhooks(off, "Validating") == webhooks(outside, "Validating")


def test_without_the_grove_kinds_pods_of_sets_are_left_alone_and_others_gated(
    outside: Objects, render: Render
) -> None:
    off = render(NO_SETS)
    assert bound(off) == bound(outside)
    assert webhooks(off, "Mutating") == ["podcliquesets", "pods"]
    assert webhooks(off, "Validating") == ["podcliquesets", "clustertopologybindings", "policy"]
    assert "!('grove.io/podgang' in" in conditions(off)
    assert "!('grove.io/podgang' in" in claims(off)
    assert "!('grove.io/podgang' in" not in conditions(outside) + claims(outside)


@pytest.mark.parametrize("settings", [(), (OFF,), (NO_SETS,), (OFF, NO_SETS)])
def test_gangs_can_read_from_what_gates_pods_how_the_chart_was_installed(
    settings: tuple[str, ...], render: Render
) -> None:
    chart = render(*settings)
    wanted = Features(OFF not in settings, NO_SETS not in settings)
    for kind, name in (
        ("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION),
        ("ValidatingAdmissionPolicyBinding", names.GANG_PODS_GUARD),
    ):
        meta = chart[kind, name]["metadata"]
        assert isinstance(meta, dict)
        (said,) = [str(t) for t in items(meta, "annotations", names.FEATURES_ANNOTATION)]
        assert read(said) == wanted


def test_a_companion_leaves_sets_to_whoever_makes_them(outside: Objects, render: Render) -> None:
    beside = render(*COMPANION)
    brought = {name for kind, name in beside if kind == "CustomResourceDefinition"}
    assert brought == {"reservations.penstock.dev"}
    assert webhooks(beside, "Validating") == ["policy"]  # which is nobody's set
    assert webhooks(beside, "Mutating") == ["pods"]
    assert ("ServiceAccount", names.WORKLOADS_ACCOUNT) in beside
    assert not any(name == names.WORKLOADS_ACCOUNT and "Role" in kind for kind, name in beside)
    assert bound(beside) - bound(outside) == {"penstock-guard-companion"}
    gone = bound(outside) - bound(beside)
    assert gone == {
        "penstock-guard-managed-status",
        "penstock-guard-prover",
        "penstock-guard-set-authors",
        "penstock-guard-set-data",
        "penstock-guard-set-templates",
        "penstock-guard-workloads",
        "penstock-guard-workloads-reach",
        "penstock-guard-workloads-rights",
    }
    binding = beside["ClusterRoleBinding", "penstock-grove-operator"]
    assert items(binding, "subjects") == [
        {"kind": "ServiceAccount", "name": "grove-operator", "namespace": "grove-system"}
    ]


def test_a_companion_must_know_who_makes_the_gangs(render: Render) -> None:
    with pytest.raises(ValueError, match=r"companion\.enabled needs grove\.accounts"):
        render(COMPANION[0])


@pytest.mark.parametrize(
    "setting", ["featureGates.GangSchedule=false", "featureGates.GangScheduling=maybe"]
)
def test_a_gate_that_is_none_is_refused(setting: str, render: Render) -> None:
    with pytest.raises(ValueError, match="featureGates"):
        render(setting)
