"""All objects of a namespace, of every kind that the API server serves and lists."""

import asyncio
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError
from tests.support.living import Cluster

# What every namespace has, and what is said of things rather than made for them.
_ALWAYS: Final = frozenset(("serviceaccounts/default", "configmaps/kube-root-ca.crt"))
_SAID: Final = frozenset(("events",))


async def objects(client: Client, namespace: str) -> set[str]:
    """Name them all, as podcliques/chat-0-prefill, but for what every namespace has."""
    found = await asyncio.gather(
        *(_names(client, path, namespace) for path in await _kinds(client))
    )
    return {name for names in found for name in names} - _ALWAYS


async def nothing_left(cluster: Cluster, *kept: str) -> None:
    """Wait until the namespace holds nothing but the objects named."""

    async def attempt() -> bool | None:
        left = await objects(cluster.client, cluster.namespace)
        return True if left == set(kept) else None

    try:
        await cluster.until(attempt, "nothing left")
    except AssertionError:
        left = await objects(cluster.client, cluster.namespace)
        raise AssertionError(f"still there: {sorted(left - set(kept))}") from None


async def _kinds(client: Client) -> list[str]:
    """List the paths under which namespaced kinds are served, each kind once."""
    groups = await _read(client, "/apis")
    versions = ["/api/v1"]
    for group in _items(groups, "groups"):
        preferred = group["preferredVersion"]
        assert isinstance(preferred, dict)
        versions.append(f"/apis/{preferred['groupVersion']}")
    lists = await asyncio.gather(*(_read(client, version) for version in versions))
    return [
        f"{version}/{{}}/{kind['name']}"
        for version, served in zip(versions, lists, strict=True)
        for kind in _items(served, "resources")
        if kind["namespaced"] and "list" in str(kind["verbs"]) and kind["name"] not in _SAID
    ]


async def _names(client: Client, path: str, namespace: str) -> list[str]:
    kind = path.rpartition("/")[2]
    try:
        found = await _read(client, path.format(f"namespaces/{namespace}"))
    except ApiError:
        return []  # what is aggregated may be away
    metas = (item["metadata"] for item in _items(found, "items"))
    return [f"{kind}/{meta['name']}" for meta in metas if isinstance(meta, dict)]


async def _read(client: Client, path: str) -> JsonObject:
    found: Json = msgspec.json.decode(await client.raw_get(path))
    assert isinstance(found, dict)
    return found


def _items(found: JsonObject, key: str) -> list[JsonObject]:
    items = found.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
