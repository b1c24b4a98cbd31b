"""Who closes the webhooks: what it may, and how it is run."""

from typing import Final

import pytest
import typer.main

from api import names
from penstock.__main__ import app
from penstock.proving import NAMESPACE
from policies import pod_security
from tests.repo.test_chart import ADMISSION, expand, granted
from tests.repo.test_chart_switches import COMPANION
from tests.support.chart_pods import PROCESSES, labels, listed, mapping, selects
from tests.support.charts import Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

PROVER = "penstock-prover"
GUARD = "penstock-guard-prover"


def test_the_prover_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, PROVER) == expand(
        (ADMISSION, "validatingwebhookconfigurations", "get patch", "penstock"),
        (ADMISSION, "mutatingwebhookconfigurations", "get patch", "penstock"),
        ("grove.io", "clustertopologybindings", "create", ""),
        ("grove.io", "podcliquesets", "create", ""),
        ("", "serviceaccounts", "use", "default"),
    )
    assert outside["ServiceAccount", PROVER]["automountServiceAccountToken"] is False


def test_it_tries_sets_in_one_namespace_which_the_webhooks_see(render: Render) -> None:
    made = render("webhook.proof.namespace=trials")
    for kind in ("Role", "RoleBinding"):
        assert mapping(made[kind, PROVER], "metadata")["namespace"] == "trials"
    assert "--namespace=trials" in arguments(made)
    for hidden in ("kube-system", names.NAMESPACE):
        with pytest.raises(ValueError, match=r"webhook\.proof\.namespace: webhooks never see"):
            render(f"webhook.proof.namespace={hidden}")


def test_a_guard_lets_it_create_in_dry_runs_only(outside: Objects) -> None:
    spec = mapping(outside["ValidatingAdmissionPolicy", GUARD], "spec")
    assert spec["failurePolicy"] == "Fail"
    (rule,) = listed(spec, "matchConstraints", "resourceRules")
    creates = {rule[1] for rule in granted(outside, PROVER) if rule[2] == "create"}
    assert {*items(rule, "resources")} == creates
    (validation,) = listed(spec, "validations")
    assert validation["expression"] == "request.?dryRun.orValue(false)"
    assert ("ValidatingAdmissionPolicyBinding", GUARD) in outside


def job(objects: Objects) -> tuple[dict[str, object], dict[str, object]]:
    """The Job's pod and its one container."""
    spec = mapping(objects["Job", PROVER], "spec", "template", "spec")
    (only,) = listed(spec, "containers")
    return {**spec}, {**only}


def arguments(objects: Objects) -> list[str]:
    found = job(objects)[1]["args"]
    assert isinstance(found, list)
    return [str(each) for each in found]


def test_it_is_run_after_every_change_and_leaves_nothing_once_it_succeeded(
    inside: Objects,
) -> None:
    notes = mapping(inside["Job", PROVER], "metadata", "annotations")
    assert notes["helm.sh/hook"] == "post-install,post-upgrade,post-rollback"
    assert notes["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    spec = mapping(inside["Job", PROVER], "spec")
    assert "ttlSecondsAfterFinished" in spec, "one that failed is no part of the release"


def test_its_pod_keeps_to_the_restricted_standard(inside: Objects) -> None:
    spec = mapping(inside["Job", PROVER], "spec", "template", "spec")
    assert [*pod_security.check("restricted", "spec", spec)] == []
    _, main = job(inside)
    context = main["securityContext"]
    assert isinstance(context, dict)
    assert context["readOnlyRootFilesystem"] is True
    assert main["command"] == ["python", "-m", "penstock"]


def test_its_command_takes_the_flags_it_is_given(inside: Objects) -> None:
    command, *flags = arguments(inside)
    group = typer.main.get_command(app)
    found = group.get_command(group.make_context("penstock", [command]), command)  # type: ignore[attr-defined]
    told = found.make_context(command, flags).params
    assert (told["namespace"], told["look"]) == (NAMESPACE, False)
    # Longer than webhooks wait for a certificate, and over before helm gives up.
    assert 180 < told["wait"] < 300


NETWORKS: Final = ("networkPolicy.enabled=true", "networkPolicy.apiServers={10.0.0.0/8}")


def test_its_pod_reaches_api_servers_alone_and_nobody_reaches_it(render: Render) -> None:
    made = render(*NETWORKS, "networkPolicy.metricsFrom={monitoring}")
    spec = mapping(made["NetworkPolicy", PROVER], "spec")
    selector = mapping(spec, "podSelector", "matchLabels")
    assert selects(selector, mapping(made["Job", PROVER], "spec", "template", "metadata", "labels"))
    assert not any(selects(selector, labels(made, each)) for each in PROCESSES)
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec, "it serves nothing"
    servers, resolvers = listed(spec, "egress")
    assert [each["port"] for each in listed(servers, "ports")] == [443, 6443]
    assert listed(servers, "to") == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    assert {each["port"] for each in listed(resolvers, "ports")} == {53}


@pytest.mark.parametrize(
    "settings", [("webhook.proof.enabled=false",), COMPANION], ids=["unproven", "companion"]
)
def test_where_nothing_is_to_be_closed_there_is_no_prover(
    render: Render, settings: tuple[str, ...]
) -> None:
    assert not any(name in (PROVER, GUARD) for _, name in render(*settings, *NETWORKS))


def test_outside_the_cluster_somebody_else_runs_it_with_its_account(outside: Objects) -> None:
    assert ("Job", PROVER) not in outside
    assert ("ServiceAccount", PROVER) in outside
