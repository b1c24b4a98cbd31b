"""Waits: follows the pods that count until enough of them are up, however long it takes."""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Final

from api.streams import Pod
from controller.waiter.counting import Progress, progress, selector
from controller.waiter.settings import Settings
from kube import accounts
from kube.cache import Cache
from kube.client import Client, Scope
from kube.clock import Clock
from kube.errors import ApiError
from kube.resources import PODS

_log = logging.getLogger("waiter")

_ANOTHER_TRY_SECONDS: Final = 5.0


async def wait(
    settings: Settings, clock: Clock, rng: random.Random, environ: Mapping[str, str]
) -> None:
    """Return when all are up.

    Whatever is in the way is said and tried again: token and rights may well come after the pod.
    """
    while True:
        try:
            found = accounts.in_cluster(settings.account, clock, environ)
            async with Client(found, "waiter", clock) as client:
                return await _until_up(client, settings, rng)
        except ApiError as error:
            _log.warning("trying again in %.0f s: %s", _ANOTHER_TRY_SECONDS, error)
        await clock.sleep(_ANOTHER_TRY_SECONDS)


async def _until_up(client: Client, settings: Settings, rng: random.Random) -> None:
    scope = Scope(settings.namespace, selector(settings.gang, settings.parents))
    pods = Cache(client, PODS, Pod, rng, scope)
    changed = asyncio.Event()
    pods.subscribe(lambda _: changed.set())
    following = asyncio.create_task(pods.run())
    try:
        await pods.synced()
        said: tuple[Progress, ...] = ()
        # Looked at only between changes, when the copy is of one instant.
        while not _all_up(now := progress(settings.parents, pods)):
            _say(now, said)
            said = now
            await changed.wait()
            changed.clear()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _all_up(now: tuple[Progress, ...]) -> bool:
    return all(each.done for each in now)


def _say(now: tuple[Progress, ...], said: tuple[Progress, ...]) -> None:
    for each in now:
        if not each.done and each not in said:
            _log.info("waiting: %s", each.sentence)
