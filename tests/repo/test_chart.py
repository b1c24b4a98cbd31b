import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from tests.support.helm import find_helm

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

CHART = Path(__file__).parents[2] / "charts" / "penstock"
URL = "https://127.0.0.1:23456"

Objects = Mapping[tuple[str, str], JsonObject]


class Render(Protocol):
    """Renders the chart with `--set` settings."""

    def __call__(self, *settings: str) -> Objects: ...


@pytest.fixture(scope="module")
def helm() -> Path:
    found = find_helm()
    if found is None:
        raise FileNotFoundError("no helm: set PENSTOCK_BIN_DIR or run `make binaries` once")
    return found


@pytest.fixture(scope="module")
def render(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Render:
    home = tmp_path_factory.mktemp("helm")

    def run(*settings: str) -> Objects:
        done = subprocess.run(
            [
                *(helm, "template", "penstock", CHART, "--kube-version", "1.37.1"),
                *("--namespace", names.NAMESPACE),
                *(f"--set={setting}" for setting in settings),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(home)},
        )
        if done.returncode:
            raise ValueError(done.stderr)
        documents = [each for each in yaml.safe_load_all(done.stdout) if each]
        found = {(each["kind"], each["metadata"]["name"]): each for each in documents}
        assert len(found) == len(documents), "two objects of one kind and name"
        return found

    return run


@pytest.fixture(scope="module")
def outside(render: Render) -> Objects:
    return render(f"webhook.url={URL}")


@pytest.fixture(scope="module")
def inside(render: Render) -> Objects:
    return render()


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


def items(value: Json, *path: str | int) -> list[Json]:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
    return value if isinstance(value, list) else [] if value is None else [value]


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
        if not kind.endswith("Binding"):
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
OURS = f"{names.CA_SECRET} {names.TLS_SECRET}"
ADMISSION = "admissionregistration.k8s.io"


def test_the_webhook_may_do_nothing(outside: Objects) -> None:
    assert granted(outside, names.WEBHOOK_ACCOUNT) == set()


def test_workloads_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, names.WORKLOADS_ACCOUNT) == expand(
        ("grove.io", "podcliquesets", READ, ""),
        ("grove.io", "podcliquesets/status", "patch", ""),
        ("grove.io", "podcliquesets/finalizers", "update", ""),
        ("scheduler.grove.io", "podgangs", f"{READ} create patch delete", ""),
        ("scheduler.grove.io", "podgangs/status", "patch", ""),
        ("", "pods", f"{READ} create delete", ""),
        ("coordination.k8s.io", "leases", "get patch", names.WORKLOADS_LEASE),
        ("coordination.k8s.io", "leases", "create", ""),
    )


def test_gangs_may_do_exactly_this(outside: Objects) -> None:
    assert granted(outside, names.GANGS_ACCOUNT) == expand(
        ("scheduler.grove.io", "podgangs", READ, ""),
        ("scheduler.grove.io", "podgangs/status", "patch", ""),
        ("penstock.dev", "reservations", f"{READ} create patch delete", ""),
        ("penstock.dev", "reservations/status", "patch", ""),
        ("penstock.dev", "schedulinggates", "lift", ""),
        ("", "pods", f"{READ} patch delete", ""),
        ("", "pods/status", "patch", ""),
        ("", "nodes", READ, ""),
        ("", "secrets", f"{READ} patch", OURS),
        (ADMISSION, "validatingwebhookconfigurations", f"{READ} patch", "penstock"),
        (ADMISSION, "mutatingwebhookconfigurations", f"{READ} patch", "penstock"),
        ("coordination.k8s.io", "leases", "get patch", names.GANGS_LEASE),
        ("coordination.k8s.io", "leases", "create", ""),
    )


def test_secrets_and_leases_are_granted_in_our_namespace_only(outside: Objects) -> None:
    for (kind, _), role in outside.items():
        if kind == "ClusterRole":
            assert {rule[1] for rule in rules(role)}.isdisjoint({"secrets", "leases"})


@pytest.mark.parametrize("account", [names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT])
def test_nobody_has_wildcards_or_rights_over_rights(outside: Objects, account: str) -> None:
    for group, resource, verb, _ in granted(outside, account):
        assert "*" not in group + resource + verb
        assert verb not in {"escalate", "bind", "impersonate", "deletecollection"}
        assert resource not in {"serviceaccounts/token", "pods/exec", "roles", "rolebindings"}


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


def webhook(objects: Objects, kind: str) -> JsonObject:
    (found,) = items(objects[kind, names.WEBHOOK_CONFIGURATION], "webhooks")
    assert isinstance(found, dict)
    return found


def test_sets_are_validated_on_create_and_update(outside: Objects) -> None:
    found = webhook(outside, "ValidatingWebhookConfiguration")
    assert found["name"] == "podcliquesets.penstock.dev"
    assert found["rules"] == [
        {
            "apiGroups": ["grove.io"],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["podcliquesets"],
            "scope": "Namespaced",
        }
    ]
    assert (found["failurePolicy"], found["matchPolicy"]) == ("Fail", "Equivalent")
    assert (found["timeoutSeconds"], found["sideEffects"]) == (5, "None")
    assert found["clientConfig"] == {"url": f"{URL}/validate/podcliquesets"}


def test_pods_are_marked_on_create_and_only_those_of_gangs(outside: Objects) -> None:
    found = webhook(outside, "MutatingWebhookConfiguration")
    assert found["name"] == "pods.penstock.dev"
    (rule,) = items(found, "rules")
    assert isinstance(rule, dict)
    assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE"])
    assert (found["failurePolicy"], found["reinvocationPolicy"]) == ("Fail", "IfNeeded")
    assert found["timeoutSeconds"] == 3
    assert found["clientConfig"] == {"url": f"{URL}/mutate/pods"}
    conditions = {str(each["name"]): str(each["expression"]) for each in mappings(found)}
    assert names.PODGANG_LABEL in conditions["says-it-belongs-to-a-gang"]
    assert names.GANG_LABEL in conditions["says-it-belongs-to-a-gang"]
    assert "kubernetes.io/config.mirror" in conditions["is-no-mirror-pod"]


def mappings(found: JsonObject) -> list[JsonObject]:
    return [each for each in items(found, "matchConditions") if isinstance(each, dict)]


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_what_would_bring_it_back_is_never_its_business(render: Render, kind: str) -> None:
    objects = render("webhook.excludedNamespaces={tools}")
    (left_out,) = items(webhook(objects, kind), "namespaceSelector", "matchExpressions")
    assert isinstance(left_out, dict)
    assert left_out["operator"] == "NotIn"
    assert left_out["values"] == [
        *("kube-system", "kube-public", "kube-node-lease", names.NAMESPACE),
        "tools",
    ]


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_the_chart_never_names_the_ca_bundle(outside: Objects, inside: Objects, kind: str) -> None:
    for objects in (outside, inside):
        assert "caBundle" not in yaml.safe_dump(objects[kind, names.WEBHOOK_CONFIGURATION])


def test_inside_the_cluster_it_is_reached_by_its_service(inside: Objects) -> None:
    for kind, path in (
        ("ValidatingWebhookConfiguration", "/validate/podcliquesets"),
        ("MutatingWebhookConfiguration", "/mutate/pods"),
    ):
        assert webhook(inside, kind)["clientConfig"] == {
            "service": {
                "name": names.WEBHOOK_SERVICE,
                "namespace": names.NAMESPACE,
                "port": 443,
                "path": path,
            }
        }
    (port,) = items(inside["Service", names.WEBHOOK_SERVICE], "spec", "ports")
    assert isinstance(port, dict)
    assert (port["port"], port["targetPort"]) == (443, 9443)


def test_outside_the_cluster_there_is_no_service(outside: Objects) -> None:
    assert ("Service", names.WEBHOOK_SERVICE) not in outside


def test_definitions_come_with_upgrades_and_stay_when_the_release_goes(outside: Objects) -> None:
    files = sorted((CHART / "files" / "crds").glob("*.yaml"))
    assert files
    assert not (CHART / "crds").exists()  # Helm would never upgrade them
    for file in files:
        written = yaml.safe_load(file.read_text())
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
        ("webhok.url=x", "webhok"),
        ("webhook.excludedNamespaces={A}", "/webhook/excludedNamespaces/0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(render: Render, setting: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render(setting)
