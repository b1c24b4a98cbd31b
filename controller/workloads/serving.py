"""Kinds that not every cluster serves: followed from when they are."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from controller.workloads.caches import AnyCache
from kube.client import Client
from kube.errors import ApiError, Forbidden, NotFound
from kube.resources import Resource

PROBE_EVERY: Final = 5.0  # seconds, while a kind is not served


async def served(client: Client, kinds: Sequence[Resource]) -> list[Resource]:
    """List those kinds that the API server serves to us now."""
    return [kind for kind in kinds if await _is_served(client, kind)]


async def follow(
    client: Client, kind: Resource, cache: AnyCache, known: Callable[[], None]
) -> None:
    """Run a kind's cache, from when it is served; `known` is called once it shows what there is.

    What we made before that, the cache has from the answers to our writes, and tells nobody of it
    when it is listed.
    """
    while not await _is_served(client, kind):
        await client.clock.sleep(PROBE_EVERY)
    async with asyncio.TaskGroup() as group:
        group.create_task(cache.run())
        await cache.synced()
        known()


async def _is_served(client: Client, kind: Resource) -> bool:
    try:
        await client.probe(kind)
    except (NotFound, Forbidden):
        return False
    except ApiError:
        return False  # it cannot be told now, and is asked again
    return True
