"""The keeper's way to the API server: the two requests its own account may make."""

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError
from kube.resources import SECRETS, SERVICEACCOUNTS, Resource
from penstock.lab import tokens
from penstock.lab.kubelet import ClusterError
from penstock.lab.layout import ACCOUNTS, KUBELET_ACCOUNT

_RBAC = "rbac.authorization.k8s.io"
_ROLES = Resource(_RBAC, "v1", "roles", "Role", namespaced=True)
_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True)


class ApiCluster:
    """A Cluster (see kubelet) over one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def token(self, account: str, seconds: int) -> str:
        """Return a new token for an account."""
        try:
            body = await self._client.create_in(
                SERVICEACCOUNTS, account, "token", tokens.request(seconds), names.NAMESPACE
            )
            return tokens.answer(msgspec.json.decode(body))
        except (ApiError, ValueError) as error:
            raise ClusterError(str(error)) from error

    async def tls_secret(self) -> Json:
        """Return the Secret with the webhook's certificate."""
        path = SECRETS.path(names.NAMESPACE, names.TLS_SECRET)
        try:
            found: Json = msgspec.json.decode(await self._client.raw_get(path))
        except (ApiError, ValueError) as error:
            raise ClusterError(str(error)) from error
        return found


async def grant(person: Client) -> None:
    """Make the keeper's account and give it exactly its rights, as the person who may do so."""
    metadata: JsonObject = {
        "name": KUBELET_ACCOUNT,
        "namespace": names.NAMESPACE,
        "labels": {names.PART_OF_LABEL: "penstock", names.COMPONENT_LABEL: "lab"},
    }
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }
    role: JsonObject = {
        "apiVersion": _ROLES.api_version,
        "kind": "Role",
        "metadata": metadata,
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["serviceaccounts/token"],
                "resourceNames": [*ACCOUNTS, KUBELET_ACCOUNT],
                "verbs": ["create"],
            },
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "resourceNames": [names.TLS_SECRET],
                "verbs": ["get", "list", "watch"],
            },
        ],
    }
    binding: JsonObject = {
        "apiVersion": _BINDINGS.api_version,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": KUBELET_ACCOUNT},
        "subjects": [
            {"kind": "ServiceAccount", "name": KUBELET_ACCOUNT, "namespace": names.NAMESPACE}
        ],
    }
    for resource, body in ((SERVICEACCOUNTS, account), (_ROLES, role), (_BINDINGS, binding)):
        await person.apply(resource, KUBELET_ACCOUNT, body, names.NAMESPACE)
