"""The audit log in the chart: who may read it, how it is served, the API server's own policy."""

from typing import Final

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from tests.repo.test_chart import expand, rules
from tests.support.charts import CHART, Objects, Render, items
from webhook import audit_api, audit_callers

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

SERVE: Final = "audit.serve=true"
SERVICE: Final = names.AUDIT_SERVICE
POLICY: Final = CHART / "files" / "api-server-audit-policy.yaml"


def test_it_is_registered_under_the_name_that_gangs_keeps() -> None:
    assert f"{audit_api.VERSION}.{audit_api.GROUP}" == SERVICE


def test_readers_may_read_and_nobody_is_one_by_the_chart(outside: Objects) -> None:
    role = outside["ClusterRole", "penstock-audit-reader"]
    assert rules(role) == expand((audit_api.GROUP, "auditlogs", "get list", ""))
    for (kind, _), binding in outside.items():
        if kind in {"RoleBinding", "ClusterRoleBinding"}:
            assert items(binding, "roleRef", "name") != ["penstock-audit-reader"]


def test_nothing_is_registered_unless_it_is_asked_for(inside: Objects) -> None:
    assert ("APIService", SERVICE) not in inside
    assert ("RoleBinding", "penstock-webhook-audit") not in inside
    ports = items(inside["Service", names.WEBHOOK_SERVICE], "spec", "ports")
    assert [items(port, "name") for port in ports] == [["https"], ["metrics"]]


@pytest.mark.parametrize("trust", ["certManager.enabled=true", "certManager.enabled=false"])
def test_the_api_server_finds_the_log_and_knows_its_certificate(render: Render, trust: str) -> None:
    made = render(SERVE, trust)
    spec = made["APIService", SERVICE]["spec"]
    assert isinstance(spec, dict)
    assert (spec["group"], spec["version"]) == (audit_api.GROUP, audit_api.VERSION)
    assert "insecureSkipTLSVerify" not in spec
    metadata = made["APIService", SERVICE]["metadata"]
    assert "caBundle" not in spec, "an upgrade would blank what gangs has put there"
    assert ("inject-ca-from" in str(metadata)) == trust.endswith("true")
    keeper = rules(made["ClusterRole", "penstock-gangs"])
    ours = expand(("apiregistration.k8s.io", "apiservices", "get list watch patch", SERVICE))
    assert (ours <= keeper) == trust.endswith("false")
    (wanted,) = items(spec, "service", "port")
    service = made["Service", names.WEBHOOK_SERVICE]
    assert wanted in [x["port"] for x in items(service, "spec", "ports") if isinstance(x, dict)]
    assert items(made["Service", "penstock-webhook-audit"], "spec", "clusterIP") == ["None"]
    binding = made["RoleBinding", "penstock-webhook-audit"]
    assert items(binding, "metadata", "namespace") == [audit_callers.CONFIG_NAMESPACE]
    assert items(binding, "roleRef", "name") == [f"{audit_callers.CONFIG}-reader"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ((SERVE, "webhook.url=https://127.0.0.1:1"), "webhook.url"),
        (("audit.server=true",), "server"),
    ],
)
def test_what_cannot_work_is_refused(render: Render, settings: tuple[str, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render(*settings)


def test_the_api_servers_own_policy_takes_no_object_in() -> None:
    policy: JsonObject = yaml.safe_load(POLICY.read_text())
    assert (policy["apiVersion"], policy["kind"]) == ("audit.k8s.io/v1", "Policy")
    told = [rule for rule in items(policy, "rules") if isinstance(rule, dict)]
    assert {rule["level"] for rule in told} == {"None", "Metadata"}
    groups = [
        name for rule in told for each in items(rule, "resources") for name in items(each, "group")
    ]
    for group in ("grove.io", "scheduler.grove.io", names.GROUP, audit_api.GROUP):
        assert group in groups
