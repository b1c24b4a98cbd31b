"""Kubernetes' garbage collector: waiting until it has come to what a test is about."""

from typing import Final

from api.jsons import JsonObject
from api.streams import Custom
from kube.errors import NotFound
from kube.resources import CONFIGMAPS, RESERVATIONS, Resource
from tests.support.living import Cluster

NOBODY: Final = "00000000-0000-0000-0000-000000000000"
# It looks for new kinds every half minute.
PATIENCE: Final = 120.0


async def knows_our_kinds(cluster: Cluster) -> None:
    """Wait until it follows our kinds, which it comes to know some time after their definitions.

    Before, it would not let go of what hangs on a set that is to leave its things behind.
    """
    spec: JsonObject = {
        "owners": [{"object": {"kind": "PodGang", "name": "none"}}],
        "requests": {"cpu": "1m"},
        "ttl": "1h",
    }
    await _owned_by(cluster, NOBODY, RESERVATIONS, {"spec": spec})
    await _collected(cluster, RESERVATIONS)


async def has_caught_up(cluster: Cluster) -> None:
    """Wait until it has come to what was deleted before now."""
    client, space = cluster.client, cluster.namespace
    owner: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}}
    await client.create(CONFIGMAPS, owner, space)
    uid = (await client.get(CONFIGMAPS, Custom, "owner", space)).metadata.uid
    await _owned_by(cluster, uid, CONFIGMAPS, {})
    await client.delete(CONFIGMAPS, "owner", space)
    await _collected(cluster, CONFIGMAPS)


async def _owned_by(cluster: Cluster, uid: str, kind: Resource, rest: JsonObject) -> None:
    owner: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    metadata: JsonObject = {"name": "owned", "ownerReferences": [owner]}
    body: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    await cluster.client.create(kind, {**body, **rest}, cluster.namespace)


async def _collected(cluster: Cluster, kind: Resource) -> None:
    async def gone() -> bool | None:
        try:
            await cluster.client.raw_get(kind.path(cluster.namespace, "owned"))
        except NotFound:
            return True
        return None

    await cluster.until(gone, "collected what nobody owns", PATIENCE)
