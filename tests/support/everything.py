"""All objects of a namespace or the cluster, of every kind that the API server serves and lists."""

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError, NotFound
from tests.support.living import Cluster

# What every namespace has, and what is said of things rather than made for them.
_ALWAYS: Final = frozenset(("serviceaccounts/default", "configmaps/kube-root-ca.crt"))
_SAID: Final = frozenset(("events",))


async def objects(client: Client, namespace: str) -> set[str]:
    """Name them all, as podcliques/chat-0-prefill, but for what every namespace has."""
    found = await asyncio.gather(
        *(
            _listed(client, f"{kind.version}/namespaces/{namespace}/{kind.name}")
            for kind in await _kinds(client)
            if kind.namespaced
        )
    )
    return {f"{kind}/{name}" for each in found for (kind, _, name) in each} - _ALWAYS


async def of_the_cluster(client: Client) -> dict[tuple[str, str, str], str]:
    """Name them all by kind, namespace and name, with what they hold in JSON."""
    found = await asyncio.gather(
        *(_listed(client, f"{kind.version}/{kind.name}") for kind in await _kinds(client))
    )
    return {key: text for each in found for key, text in each.items()}


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


@dataclass(frozen=True)
class _Kind:
    """Under which path a kind is served."""

    version: str
    name: str
    namespaced: bool


async def _kinds(client: Client) -> list[_Kind]:
    """List what is served, each kind once."""
    groups = await _read(client, "/apis")
    versions = ["/api/v1"]
    for group in _items(groups, "groups"):
        preferred = group["preferredVersion"]
        assert isinstance(preferred, dict)
        versions.append(f"/apis/{preferred['groupVersion']}")
    lists = await asyncio.gather(*(_served(client, version) for version in versions))
    return [
        _Kind(version, str(kind["name"]), bool(kind["namespaced"]))
        for version, served in zip(versions, lists, strict=True)
        for kind in _items(served, "resources")
        if "list" in str(kind["verbs"]) and kind["name"] not in _SAID
    ]


async def _served(client: Client, version: str) -> JsonObject:
    try:
        return await _read(client, version)
    except NotFound:
        return {}  # a group is named a moment before it is served, and a moment after


async def _listed(client: Client, path: str) -> dict[tuple[str, str, str], str]:
    kind = path.rpartition("/")[2]
    try:
        found = await _read(client, path)
    except ApiError:
        return {}  # what is aggregated may be away
    listed: dict[tuple[str, str, str], str] = {}
    for item in _items(found, "items"):
        meta = item["metadata"]
        if isinstance(meta, dict):
            key = (kind, str(meta.get("namespace", "")), str(meta["name"]))
            listed[key] = msgspec.json.encode(item).decode()
    return listed


async def _read(client: Client, path: str) -> JsonObject:
    found: Json = msgspec.json.decode(await client.raw_get(path))
    assert isinstance(found, dict)
    return found


def _items(found: JsonObject, key: str) -> list[JsonObject]:
    items = found.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
