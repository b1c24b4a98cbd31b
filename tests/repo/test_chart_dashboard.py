"""The dashboard that the chart runs where it is asked for: it reads, and few may look."""

import pytest
from typer.testing import CliRunner

from api.jsons import JsonObject
from penstock.__main__ import app
from penstock.dashboard import happenings
from penstock.plugin.scenes import VIEWER
from policies import pod_security
from tests.repo.test_chart import rules
from tests.repo.test_chart_switches import COMPANION
from tests.support.chart_pods import arguments, container, labels, listed, mapping, pod, selects
from tests.support.charts import Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

NAME = "penstock-dashboard"
EVERYTHING = (
    *("dashboard.enabled=true", "dashboard.service=true", "dashboard.hosts={gpus.example.com}"),
    *("dashboard.from={ingress}", "audit.serve=true", "networkPolicy.enabled=true"),
)


@pytest.fixture(scope="module")
def shown(render: Render) -> Objects:
    return render("dashboard.enabled=true")


@pytest.fixture(scope="module")
def all_on(render: Render) -> Objects:
    return render(*EVERYTHING)


def bound(objects: Objects) -> set[str]:
    """The roles that its account has, by all bindings there are."""
    found = set()
    for (kind, _), binding in objects.items():
        if kind in {"RoleBinding", "ClusterRoleBinding"}:
            (subject,) = listed(binding, "subjects")
            if subject["name"] == NAME:
                found.add(str(mapping(binding, "roleRef")["name"]))
    return found


def test_unasked_there_is_only_the_role_that_people_may_be_given(inside: Objects) -> None:
    assert [kind for kind, name in inside if name.startswith(NAME)] == ["ClusterRole"]


def test_its_account_may_read_and_nothing_else(all_on: Objects, shown: Objects) -> None:
    assert bound(shown) == {VIEWER, NAME}
    assert bound(all_on) == {VIEWER, NAME, "penstock-audit-reader"}
    for role in (NAME, "penstock-audit-reader", "penstock-view", "penstock-view-cluster"):
        assert {verb for _, _, verb, _ in rules(all_on["ClusterRole", role])} <= {
            "get", "list", "watch",
        }  # fmt: skip
    (rule,) = items(all_on["ClusterRole", NAME], "rules")
    assert isinstance(rule, dict)
    assert (rule["apiGroups"], rule["resources"]) == (["events.k8s.io"], ["events"])
    assert happenings.FOLLOWED
    assert shown["ServiceAccount", NAME]["automountServiceAccountToken"] is False
    assert pod(shown, "dashboard")["serviceAccountName"] == NAME


def test_its_pod_keeps_to_the_restricted_standard_and_comes_before_nobody(shown: Objects) -> None:
    spec, main = pod(shown, "dashboard"), container(shown, "dashboard")
    assert [*pod_security.check("restricted", "spec", spec)] == []
    assert mapping(main, "securityContext")["readOnlyRootFilesystem"] is True
    assert "priorityClassName" not in spec
    assert "priorityClassName" in pod(shown, "gangs")
    resources = mapping(main, "resources")
    assert mapping(resources, "limits").keys() == {"memory"}


@pytest.mark.parametrize("settings", [("dashboard.enabled=true",), EVERYTHING, (
    *COMPANION, "dashboard.enabled=true")], ids=["default", "everything", "companion"])  # fmt: skip
def test_it_takes_the_flags_it_is_given(render: Render, settings: tuple[str, ...]) -> None:
    told = arguments(render(*settings), "dashboard")
    assert told[0] == "dashboard"
    result = CliRunner().invoke(app, [told[0], "--help", *told[1:]])
    assert result.exit_code == 0, result.output
    assert ("--companion" in told) is (settings[0] in COMPANION)


def test_without_a_service_only_port_forwards_reach_it(shown: Objects) -> None:
    assert "--bind=127.0.0.1" in arguments(shown, "dashboard")
    assert ("Service", NAME) not in shown
    assert "--port=8080" in arguments(shown, "dashboard")
    probe = mapping(container(shown, "dashboard"), "readinessProbe", "exec")
    assert "http://127.0.0.1:8080/healthz" in str(probe["command"])


def test_with_a_service_it_is_found_by_its_names(all_on: Objects) -> None:
    told = arguments(all_on, "dashboard")
    assert {"--bind=0.0.0.0", "--host=gpus.example.com"} <= {*told}
    service = mapping(all_on["Service", NAME], "spec")
    ours = labels(all_on, "dashboard")
    assert selects(mapping(service, "selector"), ours)
    assert not selects(mapping(service, "selector"), labels(all_on, "gangs"))
    (port,) = listed(service, "ports")
    (own,) = listed(container(all_on, "dashboard"), "ports")
    assert (port["targetPort"], own["containerPort"]) == (own["name"], 8080)


def test_networks_let_in_those_that_are_named_alone(all_on: Objects, render: Render) -> None:
    def ingress(objects: Objects) -> list[JsonObject]:
        spec = mapping(objects["NetworkPolicy", NAME], "spec")
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        return listed(spec, "ingress")

    (rule,) = ingress(all_on)
    (source,) = listed(rule, "from")
    names = mapping(source, "namespaceSelector", "matchLabels")
    assert names == {"kubernetes.io/metadata.name": "ingress"}
    assert ingress(render("dashboard.enabled=true", "networkPolicy.enabled=true")) == []
