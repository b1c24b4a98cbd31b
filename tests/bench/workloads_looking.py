"""Sets that are settled, looked at in this process by the reconciler that `workloads` runs."""

import asyncio
import random
import time
from typing import Final

from controller.workloads import serving
from controller.workloads.caches import NEEDED, OPTIONAL, caches
from controller.workloads.reconciling import Reconciler
from controller.workloads.views import Choices
from kube.client import Client
from kube.clock import SystemClock
from kube.objects import Key

SETS_AT_ONCE: Final = 32


async def looks(account: Client, keys: set[Key]) -> tuple[float, float]:
    """Look at all sets twice; returns how long each took. The first reads every object."""
    known = caches(account, random.Random(0))  # noqa: S311 (no secret)
    kinds = [*NEEDED, *await serving.served(account, OPTIONAL)]
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(known.all[kind].run()) for kind in kinds]
        for kind in kinds:
            await known.all[kind].synced()
        # It puts all sets it sees into its queue.
        reconciler = Reconciler(account, SystemClock(), known, lambda: True, Choices(), "bench")
        following.append(group.create_task(reconciler.voice.run()))
        first = await emptied(reconciler, keys)
        for key in keys:
            reconciler.queue.add(key)
        again = await emptied(reconciler, keys)
        for task in following:
            task.cancel()
    return first, again


async def emptied(reconciler: Reconciler, keys: set[Key]) -> float:
    """Work until all keys have been looked at and none waits; returns the seconds it took."""
    left, done = {*keys}, asyncio.Event()

    async def look(key: Key) -> None:
        await reconciler.reconcile(key)
        left.discard(key)
        if not left and not len(reconciler.queue):
            done.set()

    begun = time.perf_counter()
    working = asyncio.create_task(reconciler.queue.run(look, SETS_AT_ONCE))
    await done.wait()
    taken = time.perf_counter() - begun
    working.cancel()
    await asyncio.wait([working])
    return taken
