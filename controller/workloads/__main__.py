"""The `workloads` process: `python -m controller.workloads --help`."""

import asyncio
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from api import names
from controller import process, settings
from controller.workloads import options, serving
from controller.workloads.caches import NEEDED, OPTIONAL, Caches, caches
from controller.workloads.letting_go import FOLLOWED, LettingGo
from controller.workloads.metering import timed
from controller.workloads.policy_following import Following
from controller.workloads.reconciling import Reconciler
from controller.workloads.tracing import Tracing
from controller.workloads.views import Choices
from kube import logs
from kube.resources import PODCLIQUESETS, PODGANGS

_SETS_AT_ONCE: Final = 128  # most of them wait for the API server


async def work(choices: Choices, around: process.Surroundings) -> None:
    """Follow sets and what they own; act while leading."""
    client, elector = around.client, around.elector
    known = caches(client, around.rng)
    if not around.settings.features.grove_integration:
        await _let_go(known, around)
        return
    choices = replace(choices, gates=around.settings.features.gang_scheduling)
    reconciler = Reconciler(
        client, around.clock, known, elector.is_leader, choices, socket.gethostname()
    )
    if around.record is not None:
        tracing = Tracing(around.clock, elector.is_leader, around.record)
        tracing.follow(known.customs[PODCLIQUESETS], known.customs[PODGANGS])
    around.metrics.queues.show({"podcliqueset": reconciler.queue})
    look = timed(around.metrics, around.clock, reconciler.queue, reconciler.reconcile)
    async with asyncio.TaskGroup() as group:
        for kind, cache in known.all.items():
            group.create_task(
                serving.follow(client, kind, cache, reconciler.look_at_all)
                if kind in OPTIONAL
                else cache.run()
            )
        there = [known.all[kind] for kind in (*NEEDED, *await serving.served(client, OPTIONAL))]
        for cache in there:
            await cache.synced()
        following = Following(reconciler.go_by)
        group.create_task(following.run(client, around.settings.namespace, around.rng))
        await elector.acquired()
        # A standby's watch may have stalled unnoticed; what is missing in it would be made anew.
        for cache in there:
            await cache.relist("led")
        group.create_task(reconciler.voice.run())
        await reconciler.queue.run(logs.of("PodCliqueSet", look), _SETS_AT_ONCE)


async def _let_go(known: Caches, around: process.Surroundings) -> None:
    """Leave sets to themselves."""
    client, elector = around.client, around.elector
    letting = LettingGo(client, around.clock, known, elector.is_leader)
    kinds = {kind: known.all[kind] for kind in FOLLOWED}
    async with asyncio.TaskGroup() as group:
        for kind, cache in kinds.items():
            group.create_task(
                serving.follow(client, kind, cache, lambda: None)
                if kind in OPTIONAL
                else cache.run()
            )
        for kind, cache in kinds.items():
            if kind not in OPTIONAL:
                await cache.synced()
        await elector.acquired()
        await known.pods.relist("led")
        await letting.run()


def main(arguments: Sequence[str]) -> int:
    """Run the process; returns its exit code."""
    parser = settings.parser(
        "controller.workloads",
        "Turns PodCliqueSets into PodCliques, PodGangs, pods and what these need. "
        "It cannot release the pods it makes.",
        "--kubeconfig workloads.kubeconfig",
    )
    options.add(parser)
    told = parser.parse_args(arguments)
    component = process.Component(
        "workloads",
        names.WORKLOADS_LEASE,
        NEEDED,
        partial(work, options.read(told)),
    )
    return process.main(component, settings.read(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
