"""One load on one lab: from the first request to the last bound pod, and what that cost."""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import psutil

from api.streams import Pod
from kube.cache import Cache, Change, Deleted
from kube.client import Client, Scope
from kube.errors import NotFound
from kube.resources import NAMESPACES, PODS
from tests.bench.gangs_loads import Load, gang_of
from tests.support.chance import dice
from tests.support.living import namespace

PATIENCE: Final = 900.0
SETTLED_SECONDS: Final = 3.0
READS: Final = {"GET", "LIST", "WATCH"}

Make: TypeAlias = Callable[[Client, Load, str], Awaitable[None]]


@dataclass(frozen=True)
class Run:
    """What a load took: seconds until all was bound, and until each gang was."""

    seconds: float
    gangs: list[float]
    pod_writes: int
    other_writes: int
    cpu: Mapping[str, float]  # seconds, by process
    memory: Mapping[str, float]  # MiB, by process


@dataclass
class Bound:
    """When each pod was first seen bound."""

    at: dict[str, float] = field(default_factory=dict)  # by UID
    last_of: dict[str, float] = field(default_factory=dict)  # by gang

    def on_change(self, change: Change[Pod]) -> None:
        if isinstance(change, Deleted) or not change.new.spec.node_name:
            return
        meta = change.new.metadata
        if meta.uid not in self.at:
            self.at[meta.uid] = self.last_of[gang_of(meta.labels)] = time.perf_counter()


@dataclass(frozen=True)
class Site:
    """A lab, and the processes in it that work: their pids by name."""

    client: Client
    processes: Callable[[], Mapping[str, int]]

    async def run(self, load: Load, make: Make) -> Run:
        """Ask for a load in a namespace of its own, and take it away again."""
        async with self._space() as space, self._watching(space) as bound:
            before, spent = await self._settled(), self._cpu()
            begun = time.perf_counter()
            await make(self.client, load, space)
            async with asyncio.timeout(PATIENCE):
                while len(bound.at) < load.pods:
                    await asyncio.sleep(0.02)
            seconds = max(bound.at.values()) - begun
            cpu = {name: used - spent.get(name, 0.0) for name, used in self._cpu().items()}
            after = await self._settled()
            pods = sum(n - before.get(key, 0) for key, n in after.items() if key[0] == "pods")
            every = sum(n - before.get(key, 0) for key, n in after.items())
            latencies = sorted(at - begun for at in bound.last_of.values())
            return Run(seconds, latencies, pods, every - pods, cpu, self._memory())

    @asynccontextmanager
    async def _space(self) -> AsyncIterator[str]:
        async with namespace(self.client, f"bench-{secrets.token_hex(3)}") as space:
            yield space
        async with asyncio.timeout(PATIENCE):
            while await self._is_there(space):
                await asyncio.sleep(0.2)

    async def _is_there(self, space: str) -> bool:
        try:
            await self.client.raw_get(f"{NAMESPACES.path()}/{space}")
        except NotFound:
            return False
        return True

    @asynccontextmanager
    async def _watching(self, space: str) -> AsyncIterator[Bound]:
        bound = Bound()
        cache = Cache(self.client, PODS, Pod, dice(), Scope(namespace=space))
        cache.subscribe(bound.on_change)
        running = asyncio.create_task(cache.run())
        try:
            await cache.synced()
            yield bound
        finally:
            running.cancel()

    async def _settled(self) -> dict[tuple[str, str], int]:
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
        return {name: sum(map(_used, _family(pid))) for name, pid in self.processes().items()}

    def _memory(self) -> dict[str, float]:
        return {
            name: sum(p.memory_full_info().pss for p in _family(pid)) / (1 << 20)
            for name, pid in self.processes().items()
        }


IDLE: Final = {
    "", "leases", "events", "nodes", "namespaces", "serviceaccounts", "configmaps", "secrets",
    "subjectaccessreviews", "tokenreviews", "endpoints", "endpointslices", "selfsubjectreviews",
}  # fmt: skip


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
