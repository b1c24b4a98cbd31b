import pytest
import yaml

from api import names
from api.jsons import JsonObject
from tests.support.charts import CHART, Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

Rule = tuple[str, str, str, str]  # group, resource, verb, resource name or ""


def rules(role: JsonObject) -> set[Rule]:
    found: set[Rule] = set()
    for rule in items(role, "rules"):
        for group in items(rule, "apiGroups"):
            for resource in items(rule, "resources"):
                for verb in items(rule, "verbs"):
                    for name in items(rule, "resourceNames") or [""]:
                        found.add((str(group), str(resource), str(verb), str(name)))
    return found


def expand(*rows: tuple[str, str, str, str]) -> set[Rule]:
    return {
        (group, resource, verb, name)
        for group, resource, verbs, resource_names in rows
        for verb in verbs.split()
        for name in (resource_names.split() or [""])
    }


def granted(objects: Objects, account: str) -> set[Rule]:
    """Everything an account may do, by the bindings that name it."""
    found: set[Rule] = set()
    for (kind, _), binding in objects.items():
        if kind not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        (subject,) = items(binding, "subjects")
        assert isinstance(subject, dict)
        assert subject["kind"] == "ServiceAccount"
        assert subject["namespace"] == names.NAMESPACE
        (role_kind,) = items(binding, "roleRef", "kind")
        (role_name,) = items(binding, "roleRef", "name")
        if subject["name"] == account:
            found |= rules(objects[str(role_kind), str(role_name)])
    return found


READ = "get list watch"
MAKE = "create patch delete"
RIGHTS = {"roles", "rolebindings"}
OWNERS = ("podcliquesets", "podcliques", "podcliquescalinggroups")
OURS = f"{names.CA_SECRET} {names.TLS_SECRET}"
ADMISSION = "admissionregistration.k8s.io"


def test_the_webhook_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, names.WEBHOOK_ACCOUNT) == expand(
        ("grove.io", "clustertopologybindings", READ, ""),
        ("grove.io", "podcliquesets", READ, ""),
        (
            "",
            "configmaps",
            READ,
            f"{names.POLICY_CONFIG} {names.KEPT_POLICY_CONFIG} {names.CAPACITY_CONFIG}",
        ),
        ("events.k8s.io", "events", "create", ""),
    )


def test_workloads_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, names.WORKLOADS_ACCOUNT) == expand(
        ("grove.io", "podcliquesets", f"{READ} patch", ""),
        ("grove.io", "podcliques", f"{READ} {MAKE}", ""),
        ("grove.io", "podcliquescalinggroups", f"{READ} {MAKE}", ""),
        *(("grove.io", f"{owner}/status", "patch", "") for owner in OWNERS),
        *(("grove.io", f"{owner}/finalizers", "update", "") for owner in OWNERS),
        ("grove.io", "clustertopologybindings", READ, ""),
        ("scheduler.grove.io", "podgangs", f"{READ} create patch delete", ""),
        ("scheduler.grove.io", "podgangs/status", "patch", ""),
        ("penstock.dev", "gangpods", "create", ""),
        ("", "pods", f"{READ} create delete", ""),
        ("", "pods/status", READ, ""),
        ("", "services", f"{READ} {MAKE}", ""),
        ("autoscaling", "horizontalpodautoscalers", f"{READ} {MAKE}", ""),
        ("", "serviceaccounts", f"{READ} {MAKE}", ""),
        ("", "secrets", "create", ""),
        ("rbac.authorization.k8s.io", "roles", f"{READ} {MAKE}", ""),
        ("rbac.authorization.k8s.io", "rolebindings", f"{READ} {MAKE}", ""),
        ("resource.k8s.io", "resourceclaims", f"{READ} {MAKE}", ""),
        ("resource.k8s.io", "resourceclaimtemplates", READ, ""),
        ("resource.nvidia.com", "computedomains", f"{READ} {MAKE}", ""),
        ("events.k8s.io", "events", "create", ""),
        ("", "configmaps", READ, f"{names.POLICY_CONFIG} {names.KEPT_POLICY_CONFIG}"),
        ("coordination.k8s.io", "leases", "get patch", names.WORKLOADS_LEASE),
        ("coordination.k8s.io", "leases", "create", ""),
    )


def test_gangs_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, names.GANGS_ACCOUNT) == expand(
        ("scheduler.grove.io", "podgangs", f"{READ} {MAKE}", ""),
        ("scheduler.grove.io", "podgangs/status", "patch", ""),
        ("grove.io", "podcliques", READ, ""),
        ("grove.io", "podcliquescalinggroups", READ, ""),
        ("penstock.dev", "reservations", f"{READ} create patch delete", ""),
        ("penstock.dev", "reservations/status", "patch", ""),
        ("penstock.dev", "schedulinggates", "lift", ""),
        ("", "pods", f"{READ} patch delete", ""),
        ("", "pods/status", "patch", ""),
        ("", "nodes", READ, ""),
        ("apps", "daemonsets", READ, ""),
        ("", "persistentvolumeclaims", READ, ""),
        ("", "persistentvolumes", READ, ""),
        ("storage.k8s.io", "storageclasses", READ, ""),
        ("resource.k8s.io", "resourceclaims", READ, ""),
        ("resource.k8s.io", "resourceclaimtemplates", READ, ""),
        ("resource.k8s.io", "resourceslices", READ, ""),
        ("resource.k8s.io", "deviceclasses", READ, ""),
        ("events.k8s.io", "events", "create", ""),
        ("grove.io", "clustertopologybindings", READ, ""),
        ("", "secrets", f"{READ} patch", OURS),
        ("", "secrets", "create", ""),
        (
            "",
            "configmaps",
            "get patch",
            f"{names.CAPACITY_CONFIG} {names.KEPT_POLICY_CONFIG} {names.SCAN_CONFIG}",
        ),
        ("grove.io", "podcliquesets", "get list", ""),
        ("wgpolicyk8s.io", "policyreports", "list patch delete", names.POLICY_REPORT),
        ("wgpolicyk8s.io", "policyreports", "create", ""),
        ("openreports.io", "reports", "list patch delete", names.POLICY_REPORT),
        ("openreports.io", "reports", "create", ""),
        ("", "configmaps", f"{READ} patch", names.POLICY_CONFIG),
        ("discovery.k8s.io", "endpointslices", "list", ""),
        (ADMISSION, "validatingwebhookconfigurations", f"{READ} patch", "penstock"),
        (ADMISSION, "mutatingwebhookconfigurations", f"{READ} patch", "penstock"),
        ("apiregistration.k8s.io", "apiservices", f"{READ} patch", names.AUDIT_SERVICE),
        (ADMISSION, "validatingadmissionpolicybindings", "get", names.GANG_PODS_GUARD),
        ("coordination.k8s.io", "leases", "get patch", names.GANGS_LEASE),
        ("coordination.k8s.io", "leases", "create", ""),
    )


def test_secrets_and_leases_are_read_and_changed_in_our_namespace_only(outside: Objects) -> None:
    for (kind, _), role in outside.items():
        if kind == "ClusterRole":
            assert "leases" not in {rule[1] for rule in rules(role)}
            verbs = {verb for _, resource, verb, _ in rules(role) if resource == "secrets"}
            assert verbs <= {"create", "delete"}


@pytest.mark.parametrize("account", [names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT])
def test_nobody_has_wildcards_or_rights_over_rights(outside: Objects, account: str) -> None:
    for group, resource, verb, _ in granted(outside, account):
        assert "*" not in group + resource + verb
        assert verb not in {"escalate", "bind", "impersonate", "deletecollection"}
        assert resource not in {"serviceaccounts/token", "pods/exec"}
        assert resource not in {"clusterroles", "clusterrolebindings"}
        # A guard says which ones, and without escalate and bind they grant what is held at most.
        assert resource not in RIGHTS or account == names.WORKLOADS_ACCOUNT


def test_who_creates_pods_cannot_change_them_and_the_other_way_round(outside: Objects) -> None:
    makers, changers = set(), set()
    for account in (names.WEBHOOK_ACCOUNT, names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT):
        for _, resource, verb, _ in granted(outside, account):
            if (resource, verb) == ("pods", "create"):
                makers.add(account)
            if resource.split("/")[0] == "pods" and verb in {"patch", "update"}:
                changers.add(account)
    assert makers == {names.WORKLOADS_ACCOUNT}
    assert changers == {names.GANGS_ACCOUNT}


def test_accounts_get_no_token_unasked(outside: Objects) -> None:
    for account in (names.WEBHOOK_ACCOUNT, names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT):
        assert outside["ServiceAccount", account]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("secret", [names.CA_SECRET, names.TLS_SECRET])
def test_secrets_come_empty_so_that_an_upgrade_blanks_nothing(
    outside: Objects, secret: str
) -> None:
    assert outside["Secret", secret].keys().isdisjoint({"data", "stringData", "immutable"})
    assert outside["Secret", secret]["type"] == "Opaque"


def test_outside_the_cluster_there_is_no_service(outside: Objects) -> None:
    assert ("Service", names.WEBHOOK_SERVICE) not in outside


def test_definitions_come_with_upgrades_and_stay_when_the_release_goes(outside: Objects) -> None:
    files = sorted((CHART / "files" / "crds").glob("*.yaml"))
    assert files
    assert not (CHART / "crds").exists()  # Helm would never upgrade them
    for file in files:
        written = yaml.load(file.read_text(), yaml.CSafeLoader)
        rendered = outside["CustomResourceDefinition", written["metadata"]["name"]]
        assert rendered == written
        (policy,) = items(rendered, "metadata", "annotations", "helm.sh/resource-policy")
        assert policy == "keep"


def test_labels_of_the_user_are_on_every_object_but_definitions(render: Render) -> None:
    for (kind, name), each in render("labels.team=inference").items():
        if kind != "CustomResourceDefinition":
            assert items(each, "metadata", "labels", "team") == ["inference"], (kind, name)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("webhook.url=http://127.0.0.1:1", "/webhook/url"),
        ("webhook.url=https://127.0.0.1:1/path", "/webhook/url"),
        ("webhook.timeoutSeconds.pods=31", "/webhook/timeoutSeconds/pods"),
        ("webhook.caBundle=x", "caBundle"),
        ("webhook.replicas=1", "/webhook/replicas"),
        ("webhok.url=x", "webhok"),
        ("webhook.excludedNamespaces={A}", "/webhook/excludedNamespaces/0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(render: Render, setting: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render(setting)


def test_nobody_may_keep_room_until_the_clusters_owner_says_so(
    render: Render, outside: Objects
) -> None:
    role = outside["ClusterRole", "penstock-reservations"]
    assert rules(role) == expand(("penstock.dev", "reservations", f"{READ} {MAKE} update", ""))
    for (kind, _), binding in outside.items():
        if kind in {"RoleBinding", "ClusterRoleBinding"}:
            assert items(binding, "roleRef", "name") != ["penstock-reservations"]

    def aggregated(objects: Objects) -> set[str]:
        labels = objects["ClusterRole", "penstock-reservations"]["metadata"]
        return {key for key in str(labels).split("'") if "aggregate-to" in key}

    assert aggregated(outside) == set()
    told = render("reservations.aggregateTo[0]=edit")
    assert aggregated(told) == {"rbac.authorization.k8s.io/aggregate-to-edit"}
