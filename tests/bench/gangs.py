"""`make bench-gangs`: from the first request to the last bound pod, beside the stock scheduler.

The floor is the same pods with no gang at all, on the same control plane in the same run, before
Penstock comes into it. Beside it run kube-scheduler's own gangs, on a lab of their own. All is run
three times, as machines are noisy, and the middling run counts. Writes a pod are those of pods and
their subresources by anybody; those of all other objects are a row of their own.
"""

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from api.jsons import JsonObject
from kube.client import Client
from penstock.lab import cluster, daemons
from penstock.lab.folders import Folder
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.bench.gangs_loads import (
    BINDING,
    BINDINGS,
    Load,
    make_by_hand,
    make_native,
    make_plain,
    make_sets,
    of_set,
    racks,
    single,
)
from tests.bench.gangs_reasons import reasons
from tests.bench.gangs_runs import Make, Run, Site
from tests.bench.gangs_short import outcome
from tests.bench.harness import Budget, Row, report
from tests.support.living import connect

STOCK_QPS: Final = 50
FAST_QPS: Final = 1000
PACES: Final = (STOCK_QPS, FAST_QPS)
PARTS: Final = ("sets", "singles", "plain", "short", "reasons")
FIT: Final = 0.6  # of the gangs find room in the cluster that is too small for all
DECIDED_SECONDS: Final = 0.1
SINGLES: Final = (10, 50, 100, 500)
IN_A_RACK: Final = 10  # nodes
NATIVE_GATES: Final = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
NATIVE_APIS: Final = "scheduling.k8s.io/v1beta1=true"
WARM: Final = single(10)


@dataclass(frozen=True)
class Hall:
    """A lab under measurement, and who works in it."""

    lab: Lab
    client: Client
    pids: dict[str, int] = field(default_factory=dict)

    def site(self, *, reserves: bool = False) -> Site:
        return Site(self.client, lambda: self.pids, reserves)


@asynccontextmanager
async def hall(qps: int, nodes: int, *, native: bool = False) -> AsyncIterator[Hall]:
    spec = LabSpec(
        f"bench-{os.getpid()}-{secrets.token_hex(3)}",
        nodes=nodes,
        topology=f"zone=2,block=5,rack={max(1, nodes // IN_A_RACK // 10)}",
        scheduler_qps=None if qps == STOCK_QPS else qps,
        feature_gates=NATIVE_GATES if native else "",
        runtime_config=NATIVE_APIS if native else "",
    )
    lab = await cluster.up(spec, Silence())
    try:
        records = daemons.started(Folder(lab.name, lab.directory))
        pids = {name: record.pid for name, record in records.items()}
        async with connect(lab.kubeconfig, "bench") as client:
            yield Hall(lab, client, pids)
        stop(lab.directory)
    finally:
        await cluster.down(spec.name, Silence())


async def with_penstock(there: Hall) -> None:
    lab = there.lab
    made = await install(
        lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(), lambda _: None
    )
    for name in ("gangs", "workloads", "webhook-0", "webhook-1"):
        there.pids[name] = made.pid(name)
    await there.client.create(BINDINGS, BINDING)


async def runs(
    who: str, site: Site, loads: Mapping[str, Load], make: Make, times: int
) -> dict[str, Run]:
    """Ask for each load so many times; the run that took the middling time stands for all."""
    if loads:
        await site.run(replace(WARM, bare=any(load.bare for load in loads.values())), make)
    found: dict[str, Run] = {}
    for what, load in loads.items():
        if not load.bare:
            of_set(load)  # not while time is taken
        every = sorted([await site.run(load, make) for _ in range(times)], key=_seconds)
        found[what] = run = every[(times - 1) // 2]
        cpu, took = sum(run.cpu.values()), ", ".join(f"{each.seconds:.2f}" for each in every)
        sys.stderr.write(f"{who}: {what}: {took} s, {cpu:.1f} s of CPU\n")
    return found


def _seconds(run: Run) -> float:
    return run.seconds


async def at(qps: int, options: argparse.Namespace) -> list[Row]:
    """Measure everything at one pace of kube-scheduler."""
    loads = loads_of(options)
    count = 100 if options.quick else 1000
    bare = {f"{count} plain pods": replace(single(count), bare=True)}
    plain, times = bare if "plain" in options.part else {}, options.times
    async with hall(qps, options.nodes) as there:
        floor = await runs("floor", there.site(), loads, make_plain, times)
        by_hand = await runs("by hand", there.site(), loads, make_by_hand, times)
        alone = await runs("alone", there.site(), plain, make_plain, times)
        await with_penstock(there)
        beside = await runs("beside", there.site(), plain, make_plain, times)
        ours = await runs("sets", there.site(reserves=True), loads, make_sets, times)
    native: dict[str, Run] = {}
    if loads and not options.no_native:
        async with hall(qps, options.nodes, native=True) as there:
            native = await runs("native", there.site(), loads, make_native, times)
    rows = []
    for what, load in loads.items():
        found = Found(load, floor[what], by_hand[what], ours[what], native.get(what))
        rows += found.rows(f"QPS {qps}: {what}", qps)
    slower = Budget(1.1, of_ratio=True)
    for what, run in beside.items():
        title = f"QPS {qps}: {what} with Penstock there"
        rows.append(Row(title, run.seconds, "s", alone[what].seconds, slower))
    if "short" in options.part:
        rows += await short(qps, options.gangs)
    if "reasons" in options.part:
        rows += await unroomed(qps, options.gangs)
    return rows


async def unroomed(qps: int, gangs: int) -> Iterable[Row]:
    """See how soon gangs say why they wait, in a cluster without any room."""
    full, load = Load(1, (8,) * gangs * IN_A_RACK, racked=False, bare=True), racks(gangs)
    async with hall(qps, full.pods) as there:
        await with_penstock(there)
        site = there.site(reserves=True)
        await site.run(racks(1), make_sets)
        told = await reasons(site, full, load)
    return told.rows(f"QPS {qps}: {gangs} sets without room at once")


async def short(qps: int, gangs: int) -> Iterable[Row]:
    """See what becomes of gangs that each fill a rack, where there are too few racks."""
    fit, load = int(gangs * FIT), racks(gangs)
    of_set(load)
    async with hall(qps, fit * IN_A_RACK) as there:
        floor = await outcome(there.site(), load, make_plain)
        await with_penstock(there)
        ours = await outcome(there.site(reserves=True), load, make_sets)
    return ours.rows(f"QPS {qps}: room for {fit} of {gangs} sets", fit, load, floor)


def loads_of(options: argparse.Namespace) -> dict[str, Load]:
    gangs: int = options.gangs
    loads: dict[str, Load] = {}
    if "sets" in options.part:
        loads[f"{gangs} sets of 9 pods, a rack each"] = racks(gangs)
    if "singles" in options.part:
        loads |= {f"1 gang of {pods} pods": single(pods) for pods in SINGLES}
    return loads


@dataclass(frozen=True)
class Found:
    """The same pods by themselves, let go by hand, as gangs of ours, and maybe as native ones."""

    load: Load
    floor: Run
    by_hand: Run
    ours: Run
    native: Run | None

    def rows(self, what: str, qps: int) -> list[Row]:
        return [*self._times(what, qps), *self._writes(what), *self._costs(what)]

    def _times(self, what: str, qps: int) -> Iterator[Row]:
        floor, ours, native = self.floor, self.ours, self.native
        if self.load.racked:
            budget = Budget(1.3 if qps == STOCK_QPS else 2.0, of_ratio=True)
        else:
            budget = Budget(round(floor.seconds * 1.2 + 0.5, 2))
        yield Row(f"{what}, all bound", ours.seconds, "s", floor.seconds, budget)
        yield Row(f"{what}, let go by hand", self.by_hand.seconds, "s", floor.seconds)
        if native is not None:
            yield Row(f"{what}, native gangs", native.seconds, "s", floor.seconds)
            ahead = Budget(1.0, of_ratio=True)
            yield Row(f"{what}, beside native", ours.seconds, "s", native.seconds, ahead)
        if self.load.gangs > 1:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                least = floor.gang(share)
                yield Row(f"{what}, {name} of gangs", ours.gang(share), "s", least)
                if native is not None:
                    yield Row(f"{what}, {name} of gangs, native", native.gang(share), "s", least)
                yield Row(f"{what}, {name} of decisions", ours.decision(share), "s")
        else:
            soon = Budget(DECIDED_SECONDS)
            yield Row(f"{what}, decided after its last pod", ours.decision(0.5), "s", None, soon)

    def _writes(self, what: str) -> Iterator[Row]:
        pods, gangs = self.load.pods, self.load.gangs
        least = self.floor.pod_writes / pods
        budget = Budget(round(least + 1.0, 2))
        yield Row(f"{what}, writes a pod", self.ours.pod_writes / pods, "writes", least, budget)
        yield Row(f"{what}, other writes a gang", self.ours.other_writes / gangs, "writes")
        if self.native is not None:
            native = self.native
            yield Row(f"{what}, writes a pod, native", native.pod_writes / pods, "writes", least)
            other = native.other_writes / gangs
            yield Row(f"{what}, other writes a gang, native", other, "writes")

    def _costs(self, what: str) -> Iterator[Row]:
        for whose, run in (("", self.ours), (", native", self.native)):
            if run is None:
                continue
            cpu, floor = run.cpu, self.floor
            spent = sum(floor.cpu.values())
            yield Row(f"{what}, CPU of all{whose}", sum(cpu.values()), "s", spent)
            for name, used in sorted(cpu.items()):
                yield Row(f"{what}, CPU of {name}{whose}", used, "s", floor.cpu.get(name))
            for name, mib in sorted(run.memory.items()):
                yield Row(f"{what}, memory of {name}{whose}", mib, "MiB", floor.memory.get(name))


async def measure(options: argparse.Namespace) -> list[Row]:
    return [row for qps in options.qps for row in await at(qps, options)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nodes", type=int, default=1000, help="of 8 GPUs each, ten to a rack (default: 1000)"
    )
    parser.add_argument("--gangs", type=int, default=100, help="sets of nine pods (default: 100)")
    parser.add_argument(
        "--qps", type=int, nargs="+", choices=PACES, default=PACES, help="paces of kube-scheduler"
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument(
        "--times", type=int, default=3, help="runs of each load, of which the middling counts"
    )
    parser.add_argument("--no-native", action="store_true", help="leave native gangs out")
    parser.add_argument("--quick", action="store_true", help="a smoke run, at one pace")
    options = parser.parse_args()
    if options.quick:
        options.qps, options.part, options.times = (FAST_QPS,), ("sets", "plain"), 1
    if options.times < 1:
        parser.error(f"--times {options.times}: must be at least 1")
    if options.nodes < options.gangs * IN_A_RACK:
        parser.error(f"--gangs {options.gangs} takes a rack each: --nodes must be tenfold")
    rows = asyncio.run(measure(options))
    settings: JsonObject = {
        "nodes": options.nodes,
        "gangs": options.gangs,
        "qps": list(options.qps),
        "parts": list(options.part),
        "times": options.times,
    }
    report("gangs", rows, settings)


if __name__ == "__main__":
    main()
