"""The `gangs` process: `python -m controller.gangs --help`."""

import asyncio
import sys
from collections.abc import Sequence

from api import names
from api.streams import Custom, Node, Pod
from controller import process, settings
from controller.gangs.reconciling import Reconciler
from controller.gangs.rotating import Rotator
from kube.cache import Cache
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS

_GANGS_AT_ONCE = 8


async def work(around: process.Surroundings) -> None:
    """Follow nodes, pods, gangs and reservations; act while leading."""
    client, rng, elector = around.client, around.rng, around.elector
    nodes = Cache(client, NODES, Node, rng)
    pods = Cache(client, PODS, Pod, rng)
    gangs = Cache(client, PODGANGS, Custom, rng)
    reservations = Cache(client, RESERVATIONS, Custom, rng)

    def fenced() -> int | None:
        return elector.generation if elector.is_leader() else None

    caches = (nodes, pods, gangs, reservations)
    reconciler = Reconciler(client, around.clock, caches, fenced)
    told = around.settings
    rotator = Rotator(client, around.clock, told.namespace, told.webhook_hosts, fenced)
    async with asyncio.TaskGroup() as group:
        for run in (nodes.run, pods.run, gangs.run, reservations.run):
            group.create_task(run())
        for synced in (nodes.synced, pods.synced, gangs.synced, reservations.synced):
            await synced()
        await elector.acquired()
        # A standby's watch may have stalled unnoticed. What is planned from must not be older than
        # the last write of the leader before us.
        for relist in (nodes.relist, pods.relist, gangs.relist, reservations.relist):
            await relist("led")
        group.create_task(rotator.run())
        group.create_task(reconciler.placer.run())
        await reconciler.queue.run(reconciler.reconcile, _GANGS_AT_ONCE)


def main(arguments: Sequence[str]) -> int:
    """Run the process; returns its exit code."""
    parser = settings.parser(
        "controller.gangs",
        "Places, reserves, pins and lifts gangs, and keeps the webhook's certificate. "
        "It cannot create a pod.",
        "--kubeconfig gangs.kubeconfig --webhook-host 127.0.0.1",
    )
    parser.add_argument(
        "--webhook-host",
        type=settings.host,
        action="append",
        metavar="NAME",
        help="a further name or address the webhook is called by; may be given several times",
    )
    component = process.Component(
        "gangs", names.GANGS_LEASE, (NODES, PODS, PODGANGS, RESERVATIONS), work
    )
    return process.main(component, settings.parse(parser, arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
