"""`make bench-replay`: what `gangs` takes with 10,000 nodes and 100,000 pods, from a replay.

The process is the real one, started as it is in a cluster. The API server is not: it lists and
watches what was recorded of one set in a lab, told of as many sets as it takes
(`tests.bench.replay_documents`). Nothing of it is scheduled or run, so that it fits on any machine.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from api.jsons import JsonObject
from kube.resources import PODS
from penstock.lab.supervision import module_command
from tests.bench.gangs_runs import family
from tests.bench.harness import Budget, Row, report
from tests.bench.replay_documents import Fleet, read
from tests.bench.replay_events import Events, ask, refused
from tests.bench.replay_server import ReplayServer

MOST: Final = Budget(500)
PATIENCE: Final = 900.0
IDLE_SHARE: Final = 0.03  # of a core, over a look
IDLE_SECONDS: Final = 2.0
PARTS: Final = ("gangs", "workloads")
# Its certificates are others' to keep here: there are no webhooks to be certified.
GANGS: Final = ("controller.gangs", "--certificates", "cert-manager")
WORKLOADS: Final = ("controller.workloads", "--waiter-image", "penstock.example/waiter:1.0")


@dataclass(frozen=True)
class Process:
    """A process under measurement."""

    pid: int

    def pss(self) -> float:
        """Give the proportional share of it and all below it, in MiB."""
        return sum(each.memory_full_info().pss for each in family(self.pid)) / (1 << 20)

    def peak(self) -> float:
        """Give the most it ever had resident, in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu(self) -> float:
        """Give the seconds of processor time that it has had."""
        try:
            times = psutil.Process(self.pid).cpu_times()
        except psutil.NoSuchProcess:
            raise RuntimeError("the process has ended; what it said last is above") from None
        return float(times.user + times.system)

    async def idle(self) -> None:
        """Return once it does next to nothing."""
        before = float("-inf")
        while (now := self.cpu()) - before > IDLE_SHARE * IDLE_SECONDS:
            before = now
            await asyncio.sleep(IDLE_SECONDS)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once something is so; fail if the process ends before."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.cpu()
                await asyncio.sleep(0.05)


@asynccontextmanager
async def running(command: Sequence[str], kubeconfig: Path) -> AsyncIterator[Process]:
    """Run one of our processes, told what it is told in a cluster; it is ended afterwards."""
    module, *flags = command
    told = ("--kubeconfig", str(kubeconfig), "--metrics-address", "127.0.0.1:0", *flags)
    line = module_command(module, *told)
    process = await asyncio.create_subprocess_exec(*line, stdout=sys.stderr)
    try:
        yield Process(process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def listed(server: ReplayServer, process: Process, times: int) -> list[Row]:
    """Wait until all was listed, so often, and looked at; say what that took."""
    begun = time.perf_counter()
    await process.until(lambda: server.listed[PODS.full_name] >= times)
    await process.until(lambda: server.watched(PODS) > 0)
    await process.idle()
    seconds = time.perf_counter() - begun - IDLE_SECONDS
    return [
        Row("all listed and looked at", seconds, "s"),
        Row("CPU of it", process.cpu(), "s"),
        Row("memory then", process.pss(), "MiB", budget=MOST if times > 1 else None),
        Row("most so far", process.peak(), "MiB"),
    ]


async def gangs(fleet: Fleet, events: int) -> list[Row]:
    """Measure `gangs`: it lists everything again once it leads."""
    server = ReplayServer(fleet)
    async with server.serving() as kubeconfig, running(GANGS, kubeconfig) as process:
        rows = await listed(server, process, 2)
        begun, path = time.perf_counter(), ask(server)
        await process.until(lambda: refused(server, path))
        rows.append(Row("a gang told why it has no room", time.perf_counter() - begun, "s"))
        await process.idle()
        rows += [
            Row("memory then", process.pss(), "MiB", budget=MOST),
            Row("most so far", process.peak(), "MiB"),
        ]
        of_pods = Events(server)
        for what, tell in (
            ("reports of pods", of_pods.report),
            ("deletions and pods made anew", of_pods.replace),
            ("more reports", of_pods.report),
            ("more deletions and pods made anew", of_pods.replace),
        ):
            before = process.cpu()
            await tell(events)
            await process.idle()
            each = (process.cpu() - before) / events
            rows += [
                Row(f"{events:,} {what}: CPU for each", each * 1e6, "µs"),
                Row("memory then", process.pss(), "MiB", budget=MOST),
            ]
        rows.append(Row("most in all", process.peak(), "MiB"))
        sys.stderr.write(f"writes of gangs: {dict(server.writes)}\n")
    return [_of("gangs", row) for row in rows]


async def workloads(fleet: Fleet) -> list[Row]:
    """Measure `workloads`, for which there is no budget."""
    server = ReplayServer(fleet)
    async with server.serving() as kubeconfig, running(WORKLOADS, kubeconfig) as process:
        rows = await listed(server, process, 1)
        sys.stderr.write(f"writes of workloads: {dict(server.writes)}\n")
    return [_of("workloads", row) for row in rows]


def _of(part: str, row: Row) -> Row:
    return Row(f"{part}: {row.what}", row.value, row.unit, row.floor, row.budget)


async def measure(parts: Sequence[str], fleet: Fleet, events: int) -> list[Row]:
    rows: list[Row] = []
    if "gangs" in parts:
        rows += await gangs(fleet, events)
    if "workloads" in parts:
        rows += await workloads(fleet)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--sets", type=int, default=11_111, help="of nine pods each")
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    nodes: int = options.nodes
    sets: int = options.sets
    events: int = options.events
    part: list[str] = options.part
    rows = asyncio.run(measure(part, Fleet(read(), nodes, sets), events))
    told: JsonObject = {"nodes": nodes, "sets": sets, "events": events, "part": [*part]}
    report("replay", rows, told)


if __name__ == "__main__":
    main()
