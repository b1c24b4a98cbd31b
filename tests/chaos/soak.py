"""`make soak`: a big cluster, many sets at once, then arrivals and deletions for long.

Prints a table and writes build/bench/soak.json: the memory of each process from the first minute to
the last, how long a gang waits for its decision and for its pods to be bound, and whether any gang
was left partly bound. It exits 0 also when a budget is missed.
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import psutil

from api import names
from api.jsons import JsonObject
from api.streams import Custom, Pod
from controller import pace
from kube.cache import Added, Cache, Change, Deleted
from kube.client import Client, Scope
from kube.errors import NotFound
from kube.resources import PODCLIQUESETS, PODS, RESERVATIONS
from penstock.lab import cluster, daemons
from penstock.lab.folders import Folder
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.installation import Installation
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.bench.gangs_runs import family
from tests.bench.harness import Budget, Row, report
from tests.chaos import audit_final
from tests.chaos.stage import lists
from tests.support.chance import dice
from tests.support.living import connect, engine_set, namespace

PODS_A_SET: Final = 9
GPUS_A_POD: Final = 4
IN_A_RACK: Final = 10
AT_ONCE: Final = 32
SAMPLE_SECONDS: Final = 15.0
PARTLY_SECONDS: Final = 60.0
PATIENCE: Final = 1800.0
FLAT: Final = 1.2  # times as much in the end as when the churn began
# Kubelets renew a lease every ten seconds. The one process that does it for all nodes here comes
# late with a thousand a second, lets go of nodes, and never ends what was deleted there meanwhile.
LEASES: Final = (
    Setting("kwok-controller", "node-lease-duration-seconds", "160"),
    Setting("kube-controller-manager", "node-monitor-grace-period", "300s"),
)
OURS: Final = ("gangs", "workloads", "webhook-0", "webhook-1")


@dataclass
class Life:
    """When what became of a set's gang was first seen; seconds of one clock."""

    asked: float
    made: float = 0.0  # its last pod
    decided: float = 0.0
    bound: float = 0.0  # its last pod
    begun: float = 0.0  # its first pod was bound


@dataclass
class Watcher:
    """Follows a namespace's pods and Reservations, set by set."""

    lives: dict[str, Life] = field(default_factory=dict)
    longest_partly: float = 0.0
    _pods: dict[str, dict[str, bool]] = field(default_factory=dict)

    def on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        name = pod.metadata.labels.get(names.PART_OF_LABEL, "")
        life = self.lives.get(name)
        if life is None:
            return
        now, pods = time.perf_counter(), self._pods.setdefault(name, {})
        pods[pod.metadata.name] = bool(pod.spec.node_name)
        if isinstance(change, Added):
            life.made = now
        bound = sum(pods.values())
        if bound and not life.begun:
            life.begun = now
        if bound == PODS_A_SET and not life.bound:
            life.bound = now
            self.longest_partly = max(self.longest_partly, now - life.begun)

    def on_reservation(self, change: Change[Custom]) -> None:
        if isinstance(change, Added):
            life = self.lives.get(change.new.metadata.name.rpartition("-")[0])
            if life is not None and not life.decided:
                life.decided = time.perf_counter()

    def forget(self, name: str) -> Life:
        self._pods.pop(name, None)
        return self.lives.pop(name)

    @property
    def waiting(self) -> int:
        return sum(not life.bound for life in self.lives.values())


@dataclass
class Soak:
    """One lab under load."""

    client: Client
    space: str
    watcher: Watcher
    chance: random.Random
    done: list[Life] = field(default_factory=list)
    _made: int = 0

    async def make(self) -> None:
        name = f"s{self._made}"
        self._made += 1
        self.watcher.lives[name] = Life(time.perf_counter())
        body = engine_set(name, pods=PODS_A_SET, gpus=GPUS_A_POD)
        await self.client.create(PODCLIQUESETS, body, self.space)

    async def fill(self, sets: int) -> float:
        """Make so many at once; gives the seconds until all are bound."""
        begun = time.perf_counter()
        for error in await pace.all_of([self.make] * sets, AT_ONCE):
            raise error
        await self.bound()
        return time.perf_counter() - begun

    async def bound(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.watcher.waiting:
                await asyncio.sleep(0.1)

    async def churn(self, seconds: float, rate: float) -> None:
        """Replace a set by a new one, again and again."""
        begun, next_at = time.perf_counter(), 0.0
        while (gone := time.perf_counter() - begun) < seconds:
            await asyncio.sleep(max(0.0, next_at - gone))
            next_at += self.chance.expovariate(rate)
            settled = [name for name, life in self.watcher.lives.items() if life.bound]
            if settled:
                name = self.chance.choice(settled)
                self.done.append(self.watcher.forget(name))
                with suppress(NotFound):
                    await self.client.delete(PODCLIQUESETS, name, self.space)
            await self.make()


@dataclass
class Memory:
    """MiB of each process, at intervals; one that was started again goes on under its name."""

    pids: Callable[[], Mapping[str, int]]
    samples: dict[str, list[float]] = field(default_factory=dict)

    def take(self) -> None:
        for name, pid in self.pids().items():
            with suppress(psutil.NoSuchProcess):
                used = sum(p.memory_full_info().pss for p in family(pid)) / (1 << 20)
                if used:
                    self.samples.setdefault(name, []).append(used)

    def begin(self) -> dict[str, float]:
        """Begin anew; gives the most that each process has taken until now."""
        peaks = {name: max(taken) for name, taken in self.samples.items() if taken}
        self.samples.clear()
        return peaks

    async def follow(self, soak: Soak) -> None:
        while True:
            await asyncio.to_thread(self.take)
            last = {name: taken[-1] for name, taken in self.samples.items() if taken}
            told = " ".join(f"{name} {last.get(name, 0):.0f}" for name in OURS)
            _say(f"{soak.watcher.waiting} of {len(soak.watcher.lives)} sets wait; MiB: {told}")
            await asyncio.sleep(SAMPLE_SECONDS)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - somebody waits for minutes


@asynccontextmanager
async def hall(nodes: int) -> AsyncIterator[tuple[Lab, Installation]]:
    """Bring up a lab with Penstock in it."""
    racks = max(1, nodes // IN_A_RACK // 10)
    spec = LabSpec(
        f"soak-{os.getpid()}-{secrets.token_hex(3)}",
        nodes=nodes, topology=f"zone=2,block=5,rack={racks}", scheduler_qps=1000, settings=LEASES,
    )  # fmt: skip
    lab = await cluster.up(spec, cluster.screen())
    try:
        helm = lab.binaries["helm"]
        made = await install(lab.directory, lab.kubeconfig, helm, InstallOptions(), _say)
        yield lab, made
    finally:
        stop(lab.directory)
        await cluster.down(spec.name, Silence())


@asynccontextmanager
async def watching(client: Client, space: str) -> AsyncIterator[Watcher]:
    watcher, scope = Watcher(), Scope(namespace=space)
    pods = Cache(client, PODS, Pod, dice(), scope)
    reservations = Cache(client, RESERVATIONS, Custom, dice(), scope)
    pods.subscribe(watcher.on_pod)
    reservations.subscribe(watcher.on_reservation)
    async with AsyncExitStack() as stack:
        for cache in (pods, reservations):
            task = asyncio.create_task(cache.run())
            stack.callback(task.cancel)
        await pods.synced()
        await reservations.synced()
        yield watcher


async def measure(options: argparse.Namespace) -> list[Row]:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with (
        hall(options.nodes) as (lab, made),
        connect(lab.kubeconfig, "soak") as client,
        namespace(client, "soak") as space,
        watching(client, space) as watcher,
    ):
        running = partial(_pids, lab, made)
        begun = running()
        memory = Memory(running)
        soak = Soak(client, space, watcher, dice(options.seed))
        following = asyncio.create_task(memory.follow(soak))
        try:
            filled = await soak.fill(options.sets)
            first = list(watcher.lives.values())
            peaks = memory.begin()  # flat means: from when all is there
            await asyncio.to_thread(memory.take)
            await soak.churn(options.minutes * 60, options.rate)
            await soak.bound()
            await asyncio.sleep(SAMPLE_SECONDS)
        finally:
            following.cancel()
        state = audit_final.within(await lists(client, space), [space])
        wrong = [*audit_final.settled(state, 0.0), *audit_final.complete(state, 0.0)]
        for finding in wrong[:10]:
            _say(f"{finding.what}: {finding.why}")
        ended = sum(running().get(name) != begun.get(name) for name in OURS)
    known = set(map(id, first))
    later = [each for each in (*soak.done, *watcher.lives.values()) if id(each) not in known]
    return [
        Row(f"{options.sets} sets at once, all bound", filled, "s"),
        *_latencies(f"{options.sets} sets at once", first),
        *_latencies(f"churn of {len(later)} sets", later, judged=True),
        Row("longest time that a gang was partly bound", watcher.longest_partly, "s", None,
            Budget(PARTLY_SECONDS)),
        Row("objects not as they should be in the end", len(wrong), "", None, Budget(0)),
        Row("processes of ours that were started again", ended, "", None, Budget(0)),
        Row("gangs whose decision nobody saw", sum(not each.decided for each in (*first, *later)),
            "", None, Budget(0)),
        *_memories(memory, peaks),
    ]  # fmt: skip


def _pids(lab: Lab, made: Installation) -> dict[str, int]:
    records = daemons.started(Folder(lab.name, lab.directory))
    ours = {name: made.pid(name) for name in OURS if made.running(name)}
    return {**{name: record.pid for name, record in records.items()}, **ours}


def _latencies(what: str, lives: Sequence[Life], *, judged: bool = False) -> list[Row]:
    parts = {
        "last pod made to decided": [life.decided - life.made for life in lives if life.decided],
        "asked to decided": [life.decided - life.asked for life in lives if life.decided],
        "asked to all bound": [life.bound - life.asked for life in lives if life.bound],
    }
    rows = []
    for part, taken in parts.items():
        ordered = sorted(taken) or [0.0]
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            at = ordered[min(len(ordered) - 1, int(len(ordered) * share))]
            limit = judged and part.endswith("decided") and name == "p99"
            rows.append(
                Row(f"{what}, {part}, {name}", max(0.0, at), "s", None,
                    Budget(1.0) if limit else None)
            )  # fmt: skip
    return rows


def _memories(memory: Memory, peaks: Mapping[str, float]) -> list[Row]:
    rows = []
    for name, samples in sorted(memory.samples.items()):
        most = Budget(500.0) if name == "gangs" else None
        flat = Budget(FLAT, of_ratio=True) if name == "gangs" else None
        if name in peaks:
            rows.append(Row(f"memory of {name}, most until all were bound", peaks[name], "MiB",
                            None, most))  # fmt: skip
        rows.append(Row(f"memory of {name}, most in the churn", max(samples), "MiB", None, most))
        if name in OURS:
            rows.append(Row(f"memory of {name}, last", samples[-1], "MiB", samples[0], flat))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make soak", description=__doc__,
        epilog='example: make soak MINUTES=2 NODES=1000 SETS=100 ARGS="--rate 1"',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--nodes", type=int, default=10_000, help="of 8 GPUs (default: 10000)")
    parser.add_argument("--sets", type=int, default=1000, help="of nine pods (default: 1000)")
    parser.add_argument("--minutes", type=float, default=30.0, help="of churn (default: 30)")
    parser.add_argument("--rate", type=float, default=1.0, help="sets replaced a second")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.sets * PODS_A_SET * GPUS_A_POD > options.nodes * 8:
        parser.error(f"--sets {options.sets} ask for more GPUs than --nodes {options.nodes} have")
    rows = asyncio.run(measure(options))
    settings: JsonObject = {**vars(options)}
    report("soak", rows, settings)


if __name__ == "__main__":
    main()
