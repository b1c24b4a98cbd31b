"""The names that there are of a kind, for a shell that asks: quickly, or none."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from kube import resources
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.errors import ApiError
from kube.objects import BareObject
from kube.resources import Resource
from penstock.plugin.asking import Where
from penstock.plugin.running import client_of, default_namespace

SECONDS: Final = 2.0  # nobody waits longer for a Tab

_bare = msgspec.json.Decoder(BareObject)


def names(kinds: Iterable[str], where: Where) -> list[str]:
    """List them, in the namespace that is meant; none if that cannot be told in time."""
    wanted: list[Resource] = [getattr(resources, kind) for kind in kinds]
    try:
        return sorted(asyncio.run(_names(wanted, where)))
    except (ApiError, TimeoutError):
        return []


async def _names(wanted: Iterable[Resource], where: Where) -> set[str]:
    async with asyncio.timeout(SECONDS), client_of(where, SystemClock()) as client:
        found = await asyncio.gather(*(_of(client, each, where) for each in wanted))
    return {name for each in found for name in each}


async def _of(client: Client, resource: Resource, where: Where) -> list[str]:
    namespace = None
    if resource.namespaced:
        namespace = where.namespace or default_namespace(where)
    scope = Scope(namespace, metadata_only=True)
    found = await client.list_with(resource, _bare.decode, scope)
    return [each.metadata.name for each in found.items]
