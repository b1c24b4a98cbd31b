"""Tenants of one namespace, each with a real token and some rights, and what they might attack."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pytest

from api.jsons import Json, JsonObject
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError, NotFound
from kube.resources import (
    NAMESPACES,
    PODCLIQUESETS,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from kube.transport import JSON, Call, Patience, Transport
from penstock.lab import kubeconfigs, tokens
from tests.support.installed import Installed
from tests.support.living import Cluster, engine_set

RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Resource(RBAC, "v1", "roles", "Role", namespaced=True)
ROLEBINDINGS: Final = Resource(RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True)
CLUSTERROLEBINDINGS: Final = Resource(
    RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
GROVE_ROLE: Final = "penstock-grove-operator"

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

# Who there is: two by the cluster's own roles for people, one who owns all of the namespace by a
# role in it, one who may write sets and use the account `default` and nothing else, and an upstream
# Grove operator, which may make pods of gangs anywhere.
EDITOR: Final = "editor"
ADMIN: Final = "admin"
OWNER: Final = "owner"
AUTHOR: Final = "author"
GROVE: Final = "grove"
TENANTS: Final = (EDITOR, ADMIN, OWNER, AUTHOR, GROVE)
CLUSTER_ROLES: Final = {EDITOR: "edit", ADMIN: "admin", GROVE: "edit"}
OWN_ROLES: Final[Mapping[str, list[Json]]] = {
    OWNER: [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    AUTHOR: [
        {
            "apiGroups": ["grove.io"],
            "resources": ["podcliquesets", "podcliques"],
            "verbs": ["get", "create", "update", "patch"],
        },
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts"],
            "resourceNames": ["default"],
            "verbs": ["use"],
        },
    ],
}


@dataclass(frozen=True)
class Tenant:
    """Asks the API server for anything, by a ServiceAccount's token alone."""

    transport: Transport

    async def ask(
        self, method: str, path: str, body: Json = None, media: str = JSON, **query: str
    ) -> JsonObject:
        """Send one request and give the answer; what is refused raises the types of kube.errors."""
        sent = None if body is None else msgspec.json.encode(body)
        answer = await self.transport.send(Call(method, path, query, sent, media))
        found: JsonObject = msgspec.json.decode(answer)
        return found


@dataclass(frozen=True)
class Estate:
    """A namespace with tenants, in which one gang runs and another waits behind its gate."""

    folder: Path
    namespace: str
    set_uid: str
    gated: str
    bound: str
    loose: str

    def path(self, resource: Resource, name: str | None = None, sub: str | None = None) -> str:
        """Give where something of this namespace is asked for."""
        return resource.path(self.namespace, name, sub)

    @asynccontextmanager
    async def acting(self, tenant: str) -> AsyncIterator[Tenant]:
        """Speak as one of the tenants."""
        clock = SystemClock()
        found = credentials.load(self.folder / tenant, None, clock, {})
        transport = Transport(found, "penstock/tenant", clock, Patience())
        transport.open()
        try:
            yield Tenant(transport)
        finally:
            await transport.close()


RUNNING_SET: Final = "team"
WAITING_SET: Final = "stuck"
PRIZE: Final = "prize"  # a Secret, and a ServiceAccount, that are not for everybody
NOWHERE: Final[JsonObject] = {"example.com/no-such-node": "yes"}


def a_pod(name: str, **spec: Json) -> JsonObject:
    """A pod that no node will take."""
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            "nodeSelector": NOWHERE,
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


@pytest.fixture(scope="session")
def estate(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """Make the namespace once; what is tried in it should change nothing."""
    folder = tmp_path_factory.mktemp("tenants")
    space = f"tenants-{secrets.token_hex(4)}"
    living = _Living(installed, folder, space)
    yield asyncio.run(living.begin())
    asyncio.run(living.end())


@dataclass(frozen=True)
class _Living:
    installed: Installed
    folder: Path
    space: str

    async def begin(self) -> Estate:
        async with self.installed.person() as person:
            await person.create(NAMESPACES, {"metadata": {"name": self.space}})
            for tenant in TENANTS:
                await self._settle(person, tenant)
            for resource in (SECRETS, SERVICEACCOUNTS):
                body = {"metadata": {"name": PRIZE}}
                await person.create(resource, body, self.space)
            cluster = Cluster(person, self.space)
            running = engine_set(RUNNING_SET, pods=1, gpus=1)
            waiting = engine_set(WAITING_SET, pods=1, gpus=1, selector="example.com/no-such-node")
            answers = [
                await person.create(PODCLIQUESETS, s, self.space) for s in (running, waiting)
            ]
            await person.create(PODS, a_pod("loose"), self.space)
            (bound,) = (await cluster.running(RUNNING_SET)).pods
            (gated,) = await cluster.pods(WAITING_SET, 1)
            for name in (RUNNING_SET, WAITING_SET):
                await cluster.service(f"{name}-0")
        uid: str = msgspec.json.decode(answers[1])["metadata"]["uid"]
        found = Estate(self.folder, self.space, uid, gated.metadata.name, bound, "loose")
        for tenant in TENANTS:
            await self._heard_of(found, tenant)
        return found

    async def end(self) -> None:
        async with self.installed.person() as person:
            await person.delete(NAMESPACES, self.space)
            await person.delete(CLUSTERROLEBINDINGS, self.space)

    async def _settle(self, person: Client, tenant: str) -> None:
        await person.create(SERVICEACCOUNTS, {"metadata": {"name": tenant}}, self.space)
        if tenant in OWN_ROLES:
            body = {"metadata": {"name": tenant}, "rules": OWN_ROLES[tenant]}
            await person.create(ROLES, body, self.space)
        await person.create(ROLEBINDINGS, self._binding(tenant), self.space)
        if tenant == GROVE:
            await person.create(CLUSTERROLEBINDINGS, self._makes_gang_pods())
        answer = await person.create_in(
            SERVICEACCOUNTS, tenant, "token", tokens.request(3600), self.space
        )
        token = self.folder / f"{tenant}.token"
        kubeconfigs.write_private(token, tokens.answer(msgspec.json.decode(answer)))
        cluster = kubeconfigs.cluster_of(self.installed.lab.kubeconfig)
        kubeconfigs.write_private(self.folder / tenant, kubeconfigs.render(cluster, tenant, token))

    def _binding(self, tenant: str) -> JsonObject:
        kind = "Role" if tenant in OWN_ROLES else "ClusterRole"
        role = {"apiGroup": RBAC, "kind": kind, "name": CLUSTER_ROLES.get(tenant, tenant)}
        return {"metadata": {"name": tenant}, "roleRef": {**role}, "subjects": [self._who(tenant)]}

    def _makes_gang_pods(self) -> JsonObject:
        """Bind what the chart's value `grove.accounts` binds."""
        role: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": GROVE_ROLE}
        meta: JsonObject = {"name": self.space}
        return {"metadata": meta, "roleRef": role, "subjects": [self._who(GROVE)]}

    def _who(self, tenant: str) -> JsonObject:
        return {"kind": "ServiceAccount", "name": tenant, "namespace": self.space}

    async def _heard_of(self, estate: Estate, tenant: str) -> None:
        """Wait until the API server knows the tenant's rights."""
        async with estate.acting(tenant) as asking:

            async def attempt() -> bool | None:
                kind = PODCLIQUESETS if tenant in OWN_ROLES else PODS
                try:
                    await asking.ask("GET", estate.path(kind, "nobody"))
                except NotFound:
                    return True
                except ApiError:
                    return None
                return True

            async with self.installed.person() as person:
                await Cluster(person, self.space).until(attempt, f"rights of {tenant}")
