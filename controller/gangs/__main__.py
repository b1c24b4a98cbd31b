"""The `gangs` process: `python -m controller.gangs --help`."""

import asyncio
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from api import names
from controller import process, settings
from controller.gangs import options, owners, patience, scan_metering
from controller.gangs.caches import Caches
from controller.gangs.capacity import CapacityReporter
from controller.gangs.keeps.keeper import Keeper
from controller.gangs.modes import Mode
from controller.gangs.options import Certificates
from controller.gangs.plain_acting import PlainMaker
from controller.gangs.policy_keeping import PolicyKeeper
from controller.gangs.reconciling import Reconciler
from controller.gangs.recording import Recorder
from controller.gangs.rotating import Rotator
from controller.gangs.scanning import Scanner
from controller.gangs.standing_aside import Aside, StandingAside
from controller.gangs.supplies import Following, Sources
from kube.client import Client
from kube.resources import (
    NODES,
    PODCLIQUES,
    PODGANGS,
    PODS,
    RESERVATIONS,
    SCALING_GROUPS,
)
from policies.policy import Policy

_GANGS_AT_ONCE = 32  # most of them wait for the API server


@dataclass(frozen=True)
class Told:
    """What the flags say."""

    certificates: Certificates
    schedulers: Collection[str]
    records: Path | None
    companion: bool
    gang_timeout: timedelta


async def work(told: Told, around: process.Surroundings) -> None:
    """Follow nodes, pods, gangs, reservations and what bears on them; act while leading."""
    client, rng, elector = around.client, around.rng, around.elector
    features = around.settings.features
    caches = Caches.spare(client, rng, Mode(told.companion, features.sets))
    sources = Sources.of(client, rng)

    def fenced() -> int | None:
        return elector.generation if elector.is_leader() else None

    reconciler = Reconciler(client, around.clock, caches, fenced, socket.gethostname())
    reconciler.world.follow(sources)
    reconciler.placer.recorder = Recorder(told.records, around.clock) if told.records else None
    keeper = Keeper(client, around.clock, caches, reconciler.world, reconciler.placer, fenced)
    plain = PlainMaker(client, around.clock, caches, sources.bindings, fenced, told.schedulers)
    reconciler.count(around.metrics, around.record)
    around.metrics.queues.show({"plaingang": plain.queue, "reservation": keeper.queue})
    scans = scan_metering.Meters(around.metrics.registry)
    reconciler.give_time(told.gang_timeout)
    capacity = CapacityReporter(client, around.clock, around.settings.namespace, fenced)
    capacity.follow(caches.nodes, sources.bindings)
    async with asyncio.TaskGroup() as group:
        for run in (cache.run for cache in _needed(caches)):
            group.create_task(run())
        group.create_task(sources.run(client))
        group.create_task(owners.follow(client, PODCLIQUES, caches.cliques.run))
        group.create_task(owners.follow(client, SCALING_GROUPS, caches.scaling_groups.run))
        await _settled(client, caches)
        await sources.settled(client)
        await elector.acquired()
        await _up_to_date(caches, sources)
        if isinstance(told.certificates, options.Keep):
            rotator = Rotator(client, around.clock, told.certificates.care_with(client), fenced)
            group.create_task(rotator.run())
            group.create_task(rotator.follow(rng))
        group.create_task(capacity.run())
        group.create_task(_policy(told, around, fenced, reconciler, scans))
        if not features.sets:
            aside = StandingAside(client, around.clock, caches, Aside(features), fenced)
            group.create_task(aside.run())
        if not features.gang_scheduling:
            return  # what was begun so far goes on
        group.create_task(plain.run())
        group.create_task(keeper.run())
        await reconciler.take_over()
        await reconciler.run(_GANGS_AT_ONCE)


async def _policy(
    told: Told,
    around: process.Surroundings,
    fenced: Callable[[], int | None],
    reconciler: Reconciler,
    scans: scan_metering.Meters,
) -> None:
    """Keep the policy, and hold what is there against it."""
    namespace = around.settings.namespace
    # A companion's sets are another's to judge.
    sets = around.settings.features.sets and not told.companion
    scanner = Scanner(around.client, namespace, fenced, sets=sets)
    scanner.meter = scans
    voice = reconciler.announcer.voice
    keeper = PolicyKeeper(around.client, namespace, fenced, voice, scanner.wake)

    def go_by(policy: Policy) -> None:
        reconciler.give_time(patience.of_policy(policy, told.gang_timeout))

    keeper.goes_by = go_by
    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.run(around.rng))
        group.create_task(scanner.run(around.rng))


async def _up_to_date(caches: Caches, sources: Sources) -> None:
    """Return once nothing that is planned from is older than the last write of a leader before us.

    A standby's watch may have stalled unnoticed.
    """
    for followed in (*_needed(caches), caches.cliques, caches.scaling_groups):
        if followed.is_synced:
            await followed.relist("led")
    await sources.relist("led")


def _needed(caches: Caches) -> tuple[Following, ...]:
    """List those without which nothing can be decided."""
    return caches.nodes, caches.pods, caches.gangs, caches.reservations


async def _settled(client: Client, caches: Caches) -> None:
    """Return once all that is served has been listed."""
    for cache in _needed(caches):
        await cache.synced()
    if await owners.served(client, PODCLIQUES) and await owners.served(client, SCALING_GROUPS):
        await caches.cliques.synced()
        await caches.scaling_groups.synced()


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
    flags = Told(
        options.read(told),
        options.schedulers(told),
        options.records(told),
        options.companion(told),
        options.gang_timeout(told),
    )
    component = process.Component(
        "gangs",
        names.GANGS_LEASE,
        (NODES, PODS, PODGANGS, RESERVATIONS),
        partial(work, flags),
    )
    return process.main(component, settings.read(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
