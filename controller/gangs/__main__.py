"""The `gangs` process: `python -m controller.gangs --help`."""

import asyncio
import socket
import sys
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from api import names
from api.streams import Custom, Node, Pod, PodClique
from controller import process, settings
from controller.gangs import options, owners
from controller.gangs.capacity import CapacityReporter
from controller.gangs.options import Certificates
from controller.gangs.plain_acting import PlainMaker
from controller.gangs.reconciling import Reconciler
from controller.gangs.recording import Recorder
from controller.gangs.rotating import Rotator
from controller.gangs.supplies import Sources
from controller.gangs.world import Caches
from kube.cache import Cache
from kube.client import Scope
from kube.resources import (
    NODES,
    PODCLIQUES,
    PODGANGS,
    PODS,
    RESERVATIONS,
    SCALING_GROUPS,
)

_GANGS_AT_ONCE = 8


async def work(
    certificates: Certificates,
    schedulers: Collection[str],
    records: Path | None,
    around: process.Surroundings,
) -> None:
    """Follow nodes, pods, gangs, reservations and what bears on them; act while leading."""
    client, rng, elector = around.client, around.rng, around.elector
    nodes = Cache(client, NODES, Node, rng)
    pods = Cache(client, PODS, Pod, rng)
    gangs = Cache(client, PODGANGS, Custom, rng)
    reservations = Cache(client, RESERVATIONS, Custom, rng)
    cliques = Cache(client, PODCLIQUES, PodClique, rng)
    groups = Cache(client, SCALING_GROUPS, Custom, rng, Scope(metadata_only=True))
    sources = Sources.of(client, rng)

    def fenced() -> int | None:
        return elector.generation if elector.is_leader() else None

    caches = Caches(nodes, pods, gangs, reservations, cliques, groups)
    reconciler = Reconciler(client, around.clock, caches, fenced, socket.gethostname())
    reconciler.world.follow(sources)
    reconciler.placer.recorder = Recorder(records, around.clock) if records else None
    plain = PlainMaker(client, around.clock, caches, sources.bindings, fenced, schedulers)
    capacity = CapacityReporter(client, around.clock, around.settings.namespace, fenced)
    capacity.follow(nodes, sources.bindings)
    async with asyncio.TaskGroup() as group:
        for run in (nodes.run, pods.run, gangs.run, reservations.run):
            group.create_task(run())
        group.create_task(sources.run(client))
        group.create_task(owners.follow(client, PODCLIQUES, cliques.run))
        group.create_task(owners.follow(client, SCALING_GROUPS, groups.run))
        synced = [nodes.synced, pods.synced, gangs.synced, reservations.synced]
        if await owners.served(client, PODCLIQUES) and await owners.served(client, SCALING_GROUPS):
            synced += [cliques.synced, groups.synced]
        for settled in synced:
            await settled()
        await sources.settled(client)
        await elector.acquired()
        # A standby's watch may have stalled unnoticed. What is planned from must not be older than
        # the last write of the leader before us.
        for followed in (nodes, pods, gangs, reservations, cliques, groups):
            if followed.is_synced:
                await followed.relist("led")
        await sources.relist("led")
        if isinstance(certificates, options.Keep):
            rotator = Rotator(client, around.clock, certificates.care_with(client), fenced)
            group.create_task(rotator.run())
            group.create_task(rotator.follow(rng))
        group.create_task(capacity.run())
        group.create_task(plain.run())
        reconciler.take_over()
        await reconciler.run(_GANGS_AT_ONCE)


def main(arguments: Sequence[str]) -> int:
    """Run the process; returns its exit code."""
    parser = settings.parser(
        "controller.gangs",
        "Places, reserves, pins and lifts gangs, keeps the webhook's certificate, and tells it how "
        "much the cluster holds. "
        "It cannot create a pod.",
        "--kubeconfig gangs.kubeconfig --webhook-host 127.0.0.1",
    )
    options.add(parser)
    told = parser.parse_args(arguments)
    component = process.Component(
        "gangs",
        names.GANGS_LEASE,
        (NODES, PODS, PODGANGS, RESERVATIONS),
        partial(work, options.read(told), options.schedulers(told), options.records(told)),
    )
    return process.main(component, settings.read(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
