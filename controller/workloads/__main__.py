"""The `workloads` process: `python -m controller.workloads --help`."""

import asyncio
import sys
from collections.abc import Sequence

from api import names
from api.streams import Custom, Pod
from controller import process, settings
from controller.workloads.reconciling import Reconciler
from kube.cache import Cache
from kube.client import Scope
from kube.resources import PODCLIQUESETS, PODGANGS, PODS

_SETS_AT_ONCE = 8


async def work(around: process.Surroundings) -> None:
    """Follow sets and what they own; act while leading."""
    client, rng = around.client, around.rng
    mine = Scope(labels=f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}")
    sets = Cache(client, PODCLIQUESETS, Custom, rng)
    gangs = Cache(client, PODGANGS, Custom, rng)
    # A selector keeps other people's pods out of memory; whose pod it is, the owner's UID decides.
    pods = Cache(client, PODS, Pod, rng, mine)
    reconciler = Reconciler(client, around.clock, (sets, gangs, pods), around.elector.is_leader)
    async with asyncio.TaskGroup() as group:
        for cache in (sets, gangs, pods):
            group.create_task(cache.run())
        for cache in (sets, gangs, pods):
            await cache.synced()
        await around.elector.acquired()
        # A standby's watch may have stalled unnoticed; what is missing in it would be made anew.
        for cache in (sets, gangs, pods):
            await cache.relist("led")
        await reconciler.queue.run(reconciler.reconcile, _SETS_AT_ONCE)


def main(arguments: Sequence[str]) -> int:
    """Run the process; returns its exit code."""
    parser = settings.parser(
        "controller.workloads",
        "Turns PodCliqueSets into PodGangs and pods. It cannot release the pods it makes.",
        "--kubeconfig workloads.kubeconfig",
    )
    component = process.Component(
        "workloads", names.WORKLOADS_LEASE, (PODCLIQUESETS, PODGANGS, PODS), work
    )
    return process.main(component, settings.parse(parser, arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
