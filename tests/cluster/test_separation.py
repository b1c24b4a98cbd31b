"""Who makes pods cannot release them, and who releases them cannot make them: with real tokens."""

from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.resources import PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICEACCOUNTS, Resource
from penstock.lab import tokens
from penstock.lab.layout import KUBELET_ACCOUNT
from tests.support.installed import Installed

pytestmark = pytest.mark.cluster

NAMESPACE = "default"
REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
ACCOUNTS = (names.WEBHOOK_ACCOUNT, names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT)
Operations = list[dict[str, Json]]

LIFT: Operations = [
    {"op": "test", "path": "/spec/schedulingGates/0/name", "value": names.GATE},
    {"op": "remove", "path": "/spec/schedulingGates/0"},
]
PIN: Operations = [
    {
        "op": "add",
        "path": "/spec/affinity",
        "value": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["nowhere"]}
                            ]
                        }
                    ]
                }
            }
        },
    }
]
NOMINATE: JsonObject = {"status": {"nominatedNodeName": "nowhere"}}


# What it did not make for a set, workloads could not take away again.
OURS: JsonObject = {names.MANAGED_BY_LABEL: names.MANAGED_BY}


def a_gated_pod() -> JsonObject:
    """It says nothing of a gang, so that no controller of ours takes an interest in it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"separation-{uuid4().hex[:8]}", "namespace": NAMESPACE},
        "spec": {
            "schedulingGates": [{"name": names.GATE}],
            "containers": [{"name": "main", "image": "none"}],
        },
    }


async def make(client: Client, body: JsonObject) -> str:
    answer = await client.create(PODS, body, NAMESPACE)
    name: str = msgspec.json.decode(answer)["metadata"]["name"]
    return name


@pytest.fixture
async def pod(installed: Installed) -> AsyncIterator[str]:
    async with installed.person() as person:
        name = await make(person, a_gated_pod())
        yield name
        await person.delete(PODS, name, NAMESPACE)


async def stored(installed: Installed, pod: str) -> JsonObject:
    async with installed.person() as person:
        found: JsonObject = msgspec.json.decode(await person.raw_get(PODS.path(NAMESPACE, pod)))
        return found


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_each_token_is_the_accounts_own(installed: Installed, account: str) -> None:
    body = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind}
    async with installed.acting(account) as client:
        answer = msgspec.json.decode(await client.create(REVIEWS, body))
    user = f"system:serviceaccount:{names.NAMESPACE}:{account}"
    assert answer["status"]["userInfo"]["username"] == user


async def test_workloads_makes_pods_of_gangs_and_takes_them_away(installed: Installed) -> None:
    metadata: JsonObject = {
        "name": f"separation-{uuid4().hex[:8]}",
        "labels": {names.PODGANG_LABEL: "separation-0", **OURS},
    }
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        name = await make(workloads, {**a_gated_pod(), "metadata": metadata})
        await workloads.delete(PODS, name, NAMESPACE)


async def test_workloads_makes_no_other_pods(installed: Installed) -> None:
    placed: JsonObject = {"nodeName": "nowhere", "containers": [{"name": "main", "image": "none"}]}
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        for body in (a_gated_pod(), {**a_gated_pod(), "spec": placed}):
            with pytest.raises(Forbidden, match="may create pods of gangs only"):
                await make(workloads, body)


def a_token(name: str, account: str, **more: Json) -> JsonObject:
    annotations: JsonObject = {"kubernetes.io/service-account.name": account}
    return {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": annotations}, **more,
    }  # fmt: skip


def a_role(resource: str, verb: str) -> JsonObject:
    rule: JsonObject = {"apiGroups": [""], "resources": [resource], "verbs": [verb]}
    return {"metadata": {"name": "grove.io:pcs:separated", "labels": OURS}, "rules": [rule]}


def a_binding(role: str, kind: str, account: str) -> JsonObject:
    return {
        "metadata": {"name": "grove.io:pcs:separated", "labels": OURS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


GIVEN: list[tuple[Resource, JsonObject]] = [
    (SECRETS, a_token("separated-ic-sat", "another")),
    (SECRETS, a_token("separated", "separated")),
    (SECRETS, a_token("separated-ic-sat", "separated", type="Opaque")),
    (ROLES, a_role("pods", "create")),
    (ROLES, a_role("services", "create")),
    (ROLE_BINDINGS, a_binding("grove.io:pcs:separated", "Role", "another")),
    (ROLE_BINDINGS, a_binding("penstock-workloads", "ClusterRole", "separated")),
]


@pytest.mark.parametrize(("kind", "body"), GIVEN, ids=lambda given: getattr(given, "kind", ""))
async def test_workloads_gives_no_rights_but_those_of_waiters(
    installed: Installed, kind: Resource, body: JsonObject
) -> None:
    """All of these it holds itself, so that Kubernetes alone would let it give them."""
    role = "grove.io:pcs:separated"
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        if kind is ROLE_BINDINGS:  # what is bound must be there
            await workloads.create(ROLES, a_role("pods", "get"), NAMESPACE)
        with pytest.raises(Forbidden, match="penstock-workloads may"):
            await workloads.create(kind, body, NAMESPACE)
        if kind is ROLE_BINDINGS:
            await workloads.delete(ROLES, role, NAMESPACE)


async def test_workloads_gives_nothing_that_it_does_not_hold(installed: Installed) -> None:
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="not currently held"):
            await workloads.create(ROLES, a_role("secrets", "get"), NAMESPACE)


async def test_workloads_makes_no_token_where_penstocks_own_accounts_are(
    installed: Installed,
) -> None:
    account = names.GANGS_ACCOUNT
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="outside Penstock's own namespace"):
            await workloads.create(SECRETS, a_token(f"{account}-ic-sat", account), names.NAMESPACE)


async def test_workloads_gives_waiters_what_they_need(installed: Installed) -> None:
    made = (
        (SECRETS, a_token("separated-ic-sat", "separated")),
        (ROLES, a_role("pods/status", "watch")),
        (ROLE_BINDINGS, a_binding("grove.io:pcs:separated", "Role", "separated")),
    )
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        for kind, body in made:
            await workloads.create(kind, body, NAMESPACE)
        for kind in (ROLES, ROLE_BINDINGS):
            await workloads.delete(kind, "grove.io:pcs:separated", NAMESPACE)
    async with installed.person() as person:
        # Kubernetes itself takes the token of an account that there is not.
        with suppress(NotFound):
            await person.delete(SECRETS, "separated-ic-sat", NAMESPACE)


@pytest.mark.parametrize("change", [LIFT, PIN, [*PIN, *LIFT]], ids=["lift", "pin", "both"])
async def test_workloads_neither_lifts_nor_pins(
    installed: Installed, pod: str, change: Operations
) -> None:
    before = await stored(installed, pod)
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match='cannot patch resource "pods"'):
            await workloads.json_patch(PODS, pod, change, NAMESPACE)
        with pytest.raises(Forbidden, match='cannot patch resource "pods"'):
            await workloads.apply(
                PODS, pod, {**a_gated_pod(), "metadata": {"name": pod}}, NAMESPACE
            )
    after = await stored(installed, pod)
    assert after["spec"] == before["spec"]


async def test_workloads_holds_no_node_for_a_pod(installed: Installed, pod: str) -> None:
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="pods/status"):
            await workloads.merge_patch(PODS, pod, NOMINATE, NAMESPACE, subresource="status")


async def test_workloads_binds_no_pod_by_itself(installed: Installed, pod: str) -> None:
    binding: JsonObject = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"kind": "Node", "name": "nowhere"},
    }
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="pods/binding"):
            await workloads.create_in(PODS, pod, "binding", binding, NAMESPACE)


async def test_gangs_pins_and_lifts(installed: Installed, pod: str) -> None:
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        await gangs.merge_patch(PODS, pod, NOMINATE, NAMESPACE, subresource="status")
        await gangs.json_patch(PODS, pod, [*PIN, *LIFT], NAMESPACE)
    spec = (await stored(installed, pod))["spec"]
    assert isinstance(spec, dict)
    assert not spec.get("schedulingGates")
    assert "nowhere" in str(spec["affinity"])


async def test_gangs_makes_no_pods(installed: Installed) -> None:
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        with pytest.raises(Forbidden, match='cannot create resource "pods"'):
            await make(gangs, a_gated_pod())
        # Apply would create what is not there, so it must be refused too.
        body = {**a_gated_pod(), "metadata": {"name": "separation-applied"}}
        with pytest.raises(Forbidden, match='cannot create resource "pods"'):
            await gangs.apply(PODS, "separation-applied", body, NAMESPACE)


@pytest.fixture
async def third_secret(installed: Installed) -> AsyncIterator[str]:
    name = f"third-{uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    async with installed.person() as person:
        await person.create(SECRETS, body, names.NAMESPACE)
        yield name
        await person.delete(SECRETS, name, names.NAMESPACE)


async def test_gangs_reads_its_two_secrets_and_no_other(
    installed: Installed, third_secret: str
) -> None:
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        for name in (names.CA_SECRET, names.TLS_SECRET):
            await gangs.raw_get(SECRETS.path(names.NAMESPACE, name))
            one = f"metadata.name={name}"
            listing = await gangs.list_pages(
                SECRETS, dict[str, object], names.NAMESPACE, fields=one
            )
            assert len(listing.items) == 1
        for path in (
            SECRETS.path(names.NAMESPACE, third_secret),
            SECRETS.path(names.NAMESPACE),
            SECRETS.path("kube-system"),
            SECRETS.path(),
        ):
            with pytest.raises(Forbidden, match="secrets"):
                await gangs.raw_get(path)
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
        with pytest.raises(Forbidden, match="secrets"):
            await gangs.create(SECRETS, body, names.NAMESPACE)


@pytest.mark.parametrize("account", [names.WEBHOOK_ACCOUNT, names.WORKLOADS_ACCOUNT])
async def test_nobody_else_reads_secrets(installed: Installed, account: str) -> None:
    async with installed.acting(account) as client:
        for name in (names.CA_SECRET, names.TLS_SECRET, None):
            with pytest.raises(Forbidden, match="secrets"):
                await client.raw_get(SECRETS.path(names.NAMESPACE, name))


async def test_the_webhook_reads_no_pods(installed: Installed, pod: str) -> None:
    async with installed.acting(names.WEBHOOK_ACCOUNT) as webhook:
        for path in (PODS.path(), PODS.path(NAMESPACE), PODS.path(NAMESPACE, pod)):
            with pytest.raises(Forbidden, match="pods"):
                await webhook.raw_get(path)
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        await workloads.raw_get(PODS.path(NAMESPACE, pod))  # the same request can be answered


async def test_the_keeper_is_no_administrator(installed: Installed) -> None:
    async with installed.acting(KUBELET_ACCOUNT) as keeper:
        await keeper.raw_get(SECRETS.path(names.NAMESPACE, names.TLS_SECRET))
        for path in (
            SECRETS.path(names.NAMESPACE, names.CA_SECRET),
            SECRETS.path(names.NAMESPACE),
            PODS.path(),
        ):
            with pytest.raises(Forbidden):
                await keeper.raw_get(path)
        body = tokens.request(600)
        for namespace in (names.NAMESPACE, "kube-system"):
            with pytest.raises(Forbidden, match="serviceaccounts/token"):
                await keeper.create_in(SERVICEACCOUNTS, "default", "token", body, namespace)


def test_kubeconfigs_hold_a_token_file_and_no_other_credential(installed: Installed) -> None:
    for account in (*ACCOUNTS, KUBELET_ACCOUNT):
        path = installed.installation.kubeconfig(account)
        assert path.stat().st_mode & 0o077 == 0
        text = path.read_text()
        assert str(installed.installation.layout.token(account)) in text
        for word in ("client-certificate", "client-key", "password", "exec:", "token:"):
            assert word not in text
