"""Who issues the webhook's certificate, as the chart has it."""

from typing import Final

import pytest

from api import names
from tests.repo.test_chart import granted
from tests.support.charts import Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

ENABLED: Final = "certManager.enabled=true"
CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


@pytest.fixture(scope="module")
def managed(render: Render) -> Objects:
    return render(ENABLED)


def test_cert_manager_signs_the_webhooks_certificate_by_an_authority_of_our_own(
    managed: Objects,
) -> None:
    leaf = managed["Certificate", "penstock-webhook"]["spec"]
    assert items(leaf, "secretName") == [names.TLS_SECRET]
    service = names.WEBHOOK_SERVICE
    inside = f"{service}.{names.NAMESPACE}"
    assert items(leaf, "dnsNames") == [service, inside, f"{inside}.svc"]
    (issuer,) = items(leaf, "issuerRef", "name")
    (secret,) = items(managed["Issuer", str(issuer)]["spec"], "ca", "secretName")
    authority = managed["Certificate", "penstock-ca"]["spec"]
    assert (items(authority, "secretName"), items(authority, "isCA")) == ([secret], [True])
    (root,) = items(authority, "issuerRef", "name")
    assert managed["Issuer", str(root)]["spec"] == {"selfSigned": {}}


@pytest.mark.parametrize("certificate", ["penstock-webhook", "penstock-ca"])
def test_keys_are_elliptic_and_change_with_their_certificates(
    managed: Objects, certificate: str
) -> None:
    (key,) = items(managed["Certificate", certificate], "spec", "privateKey")
    assert key == {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_cert_manager_puts_the_authority_into_the_configurations(
    managed: Objects, outside: Objects, kind: str
) -> None:
    where = ("metadata", "annotations", "cert-manager.io/inject-ca-from")
    name = names.WEBHOOK_CONFIGURATION
    assert items(managed[kind, name], *where) == [f"{names.NAMESPACE}/penstock-webhook"]
    assert items(outside[kind, name], *where) == []


def test_with_cert_manager_gangs_has_no_right_over_secrets_and_configurations(
    managed: Objects, outside: Objects
) -> None:
    configurations = {f"{kind.lower()}s" for kind in CONFIGURATIONS}
    touched = {"secrets", "endpointslices", *configurations}
    assert touched == touched & {rule[1] for rule in granted(outside, names.GANGS_ACCOUNT)}
    left = granted(managed, names.GANGS_ACCOUNT)
    assert {rule[2] for rule in left if rule[1] in configurations} == {"get"}
    assert (touched - configurations).isdisjoint({rule[1] for rule in left})


def test_with_cert_manager_the_chart_makes_no_secrets_and_needs_no_guard_for_them(
    managed: Objects, outside: Objects
) -> None:
    made = {("Secret", names.CA_SECRET), ("Secret", names.TLS_SECRET)}
    guard = ("ValidatingAdmissionPolicy", "penstock-guard-secrets")
    assert {*made, guard} <= outside.keys()
    assert not {*made, guard} & managed.keys()


def test_without_cert_manager_there_is_nothing_of_it(outside: Objects) -> None:
    assert {kind for kind, _ in outside}.isdisjoint({"Certificate", "Issuer"})


def test_cert_manager_and_a_webhook_outside_the_cluster_do_not_go_together(render: Render) -> None:
    with pytest.raises(ValueError, match="needs the webhook inside the cluster"):
        render(ENABLED, "webhook.url=https://127.0.0.1:1")


@pytest.mark.parametrize("setting", ["certManager.enabled=maybe", "certManager.issuer=x"])
def test_a_wrong_setting_of_cert_manager_is_refused_by_name(render: Render, setting: str) -> None:
    with pytest.raises(ValueError, match=r"certManager"):
        render(setting)


def test_the_capacity_comes_empty_so_that_an_upgrade_blanks_nothing(outside: Objects) -> None:
    assert outside["ConfigMap", names.CAPACITY_CONFIG].keys().isdisjoint({"data", "immutable"})
