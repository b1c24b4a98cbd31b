"""ResourceQuotas, which bound how many pods a namespace may have."""

from typing import Final

from api.jsons import JsonObject
from api.streams import Custom
from kube.resources import Resource
from tests.support.living import Cluster, Kubectl

_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)


async def limit_pods(cluster: Cluster, kubectl: Kubectl, count: int) -> None:
    """Allow so many pods in the namespace, and wait until that is in force."""
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": cluster.namespace},
        "spec": {"hard": {"pods": str(count)}},
    }
    kubectl.apply(body)

    async def in_force() -> bool | None:
        found = await cluster.client.get(_QUOTAS, Custom, "few", cluster.namespace)
        return f'"hard":{{"pods":"{count}"}}'.encode() in bytes(found.status) or None

    await cluster.until(in_force, "the quota in force")
