"""One load on one lab: from the first request to the last bound pod, and what that cost."""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import psutil

from api import names
from api.streams import Pod
from controller import pace
from kube.cache import Added, Cache, Change, Deleted
from kube.client import Client, Scope
from kube.errors import NotFound
from kube.objects import BareObject
from kube.resources import NAMESPACES, PODCLIQUESETS, PODS, RESERVATIONS, Resource
from tests.bench.gangs_loads import AT_ONCE, Load, gang_of
from tests.support.chance import dice
from tests.support.living import namespace

PATIENCE: Final = 900.0
SETTLED_SECONDS: Final = 3.0
READS: Final = {"GET", "LIST", "WATCH"}

Make: TypeAlias = Callable[[Client, Load, str], Awaitable[None]]


@dataclass(frozen=True)
class Run:
    """What a load took: seconds until all was bound, until each gang was, and to decide on each.

    A gang is decided on when its Reservation shows, counted from when its last pod did.
    """

    seconds: float
    gangs: list[float]
    decisions: list[float]
    pod_writes: int
    other_writes: int
    cpu: Mapping[str, float]  # seconds, by process
    memory: Mapping[str, float]  # MiB, by process

    def gang(self, share: float) -> float:
        return _at(self.gangs, share)

    def decision(self, share: float) -> float:
        return _at(self.decisions, share)


@dataclass
class Seen:
    """When pods were first seen, and seen bound, and when each gang's Reservation was."""

    made: dict[str, float] = field(default_factory=dict)  # the last pod of each PodGang
    decided: dict[str, float] = field(default_factory=dict)  # by PodGang
    bound: dict[str, float] = field(default_factory=dict)  # by UID
    last_of: dict[str, float] = field(default_factory=dict)  # by gang

    def on_pod(self, change: Change[Pod]) -> None:
        if isinstance(change, Deleted):
            return
        meta = change.new.metadata
        now = time.perf_counter()
        if isinstance(change, Added) and names.PODGANG_LABEL in meta.labels:
            self.made[meta.labels[names.PODGANG_LABEL]] = now
        if change.new.spec.node_name and meta.uid not in self.bound:
            self.bound[meta.uid] = self.last_of[gang_of(meta.labels)] = now

    def on_reservation(self, change: Change[BareObject]) -> None:
        if isinstance(change, Added):
            self.decided[change.new.metadata.name] = time.perf_counter()

    def decisions(self) -> list[float]:
        return sorted(at - self.made[gang] for gang, at in self.decided.items())


@dataclass(frozen=True)
class Site:
    """A lab, and the processes in it that work: their pids by name."""

    client: Client
    processes: Callable[[], Mapping[str, int]]
    reserves: bool = False  # whether Reservations are served

    async def run(self, load: Load, make: Make) -> Run:
        """Ask for a load in a namespace of its own, and take it away again."""
        async with self.space() as space, self.watching(space) as seen:
            before, spent = await self.settled(), self._cpu()
            begun = await self.begin(load, make, space)
            async with asyncio.timeout(PATIENCE):
                while len(seen.bound) < load.pods:
                    await asyncio.sleep(0.02)
            seconds = max(seen.bound.values()) - begun
            cpu = {name: used - spent.get(name, 0.0) for name, used in self._cpu().items()}
            after = await self.settled()
            pods = sum(n - before.get(key, 0) for key, n in after.items() if key[0] == "pods")
            every = sum(n - before.get(key, 0) for key, n in after.items())
            latencies = sorted(at - begun for at in seen.last_of.values())
            return Run(
                seconds, latencies, seen.decisions(), pods, every - pods, cpu, self._memory()
            )

    async def begin(self, load: Load, make: Make, space: str) -> float:
        """Ask for a load; gives when the first request was made."""
        begun = time.perf_counter()
        await make(self.client, load, space)
        return begun

    @asynccontextmanager
    async def space(self) -> AsyncIterator[str]:
        """Make a namespace for one load; it and all in it are gone in the end."""
        async with namespace(self.client, f"bench-{secrets.token_hex(3)}") as space:
            yield space
            await self._clear(space)
        async with asyncio.timeout(PATIENCE):
            while await self._is_there(space):
                await asyncio.sleep(0.2)

    async def _clear(self, space: str) -> None:
        """Delete what was made, many at a time: a namespace that goes does it one by one."""
        for resource in (PODCLIQUESETS, PODS) if self.reserves else (PODS,):
            found = (await self.client.list_pages(resource, BareObject, space)).items
            deletions = [
                partial(self._delete, resource, thing.metadata.name, space) for thing in found
            ]
            for error in await pace.all_of(deletions, AT_ONCE):
                if not isinstance(error, NotFound):
                    raise error

    async def _delete(self, resource: Resource, name: str, space: str) -> None:
        await self.client.delete(resource, name, space)

    async def _is_there(self, space: str) -> bool:
        try:
            await self.client.raw_get(f"{NAMESPACES.path()}/{space}")
        except NotFound:
            return False
        return True

    @asynccontextmanager
    async def watching(self, space: str) -> AsyncIterator[Seen]:
        """Note meanwhile when things are first seen there."""
        seen, scope = Seen(), Scope(namespace=space)
        pods = Cache(self.client, PODS, Pod, dice(), scope)
        pods.subscribe(seen.on_pod)
        running = [asyncio.create_task(pods.run())]
        if self.reserves:
            reservations = Cache(self.client, RESERVATIONS, BareObject, dice(), scope)
            reservations.subscribe(seen.on_reservation)
            running.append(asyncio.create_task(reservations.run()))
            await reservations.synced()
        try:
            await pods.synced()
            yield seen
        finally:
            for each in running:
                each.cancel()

    async def settled(self) -> dict[tuple[str, str], int]:
        """Wait until nobody writes any more; gives writes by resource and subresource."""
        async with asyncio.timeout(PATIENCE):
            before = await self._writes()
            while True:
                await asyncio.sleep(SETTLED_SECONDS)
                now = await self._writes()
                if now == before:
                    return now
                before = now

    async def _writes(self) -> dict[tuple[str, str], int]:
        """Count writes, but of leases, Events, nodes and namespaces, which come by themselves."""
        found: dict[tuple[str, str], int] = {}
        for line in (await self.client.raw_get("/metrics")).decode().splitlines():
            if not line.startswith("apiserver_request_total{"):
                continue
            said = dict(re.findall(r'(\w+)="([^"]*)"', line))
            key = said["resource"], said["subresource"]
            if said["verb"] not in READS and said.get("dry_run", "") == "" and key[0] not in IDLE:
                found[key] = found.get(key, 0) + int(float(line.rsplit(" ", 1)[1]))
        return found

    def _cpu(self) -> dict[str, float]:
        return {name: sum(map(_used, family(pid))) for name, pid in self.processes().items()}

    def _memory(self) -> dict[str, float]:
        return {
            name: sum(p.memory_full_info().pss for p in family(pid)) / (1 << 20)
            for name, pid in self.processes().items()
        }


IDLE: Final = {
    "", "leases", "events", "nodes", "namespaces", "serviceaccounts", "configmaps", "secrets",
    "subjectaccessreviews", "tokenreviews", "selfsubjectreviews",
}  # fmt: skip


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def family(pid: int) -> list[psutil.Process]:
    """A process and all below it; nothing if it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
