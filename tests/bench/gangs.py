"""`make bench-gangs`: from the first request to the last bound pod, beside the stock scheduler.

The floor is the same pods with no gang at all, on the same control plane in the same run, before
Penstock comes into it. Beside it run kube-scheduler's own gangs, on a lab of their own. Writes a
pod are those of pods and their subresources by anybody; those of all other objects are a row of
their own.
"""

import argparse
import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

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
    make_native,
    make_plain,
    make_sets,
    racks,
    single,
)
from tests.bench.gangs_runs import Make, Run, Site
from tests.bench.harness import Budget, Row, report
from tests.support.living import connect

STOCK_QPS: Final = 50
FAST_QPS: Final = 1000
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

    def site(self) -> Site:
        return Site(self.client, lambda: self.pids)


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


async def runs(site: Site, loads: Mapping[str, Load], make: Make) -> dict[str, Run]:
    await site.run(WARM, make)
    return {what: await site.run(load, make) for what, load in loads.items()}


async def at(qps: int, options: argparse.Namespace) -> list[Row]:
    """Measure everything at one pace of kube-scheduler."""
    gangs: int = options.gangs
    loads = {f"{gangs} sets of 9 pods, a rack each": racks(gangs)}
    if not options.quick:
        loads |= {f"1 gang of {pods} pods": single(pods) for pods in SINGLES}
    plain = {"1000 plain pods": single(100 if options.quick else 1000)}
    async with hall(qps, options.nodes) as there:
        floor = await runs(there.site(), loads | plain, make_plain)
        await with_penstock(there)
        beside = await runs(there.site(), plain, make_plain)
        ours = await runs(there.site(), loads, make_sets)
    native: dict[str, Run] = {}
    if not options.no_native:
        async with hall(qps, options.nodes, native=True) as there:
            native = await runs(there.site(), loads, make_native)
    rows = []
    for what, load in loads.items():
        rows += _rows(f"QPS {qps}: {what}", load, qps, (floor[what], ours[what], native.get(what)))
    (what,) = plain
    slower = Budget(1.1, of_ratio=True)
    rows.append(
        Row(f"QPS {qps}: {what} with Penstock there", beside[what].seconds, "s",
            floor[what].seconds, slower)
    )  # fmt: skip
    return [*rows, *_costs(f"QPS {qps}", ours[next(iter(loads))])]


def _rows(what: str, load: Load, qps: int, found: tuple[Run, Run, Run | None]) -> list[Row]:
    floor, ours, native = found
    if load.racked:
        budget = Budget(1.3 if qps == STOCK_QPS else 2.0, of_ratio=True)
    else:
        budget = Budget(floor.seconds * 1.2 + 0.5)
    rows = [Row(f"{what}, all bound", ours.seconds, "s", floor.seconds, budget)]
    if load.gangs > 1:
        for name, share in (("half of the gangs", 0.5), ("99 of 100 gangs", 0.99)):
            rows.append(
                Row(f"{what}, {name}", _share(ours, share), "s", _share(floor, share))
            )  # fmt: skip
    if native is not None:
        rows.append(Row(f"{what}, native gangs", native.seconds, "s", floor.seconds))
    writes = floor.pod_writes / load.pods
    rows.append(
        Row(f"{what}, writes a pod", ours.pod_writes / load.pods, "writes", writes,
            Budget(round(writes + 1.0, 2)))
    )  # fmt: skip
    if native is not None:
        rows.append(Row(f"{what}, writes a pod, native", native.pod_writes / load.pods, "writes"))
    rows.append(Row(f"{what}, other writes a gang", ours.other_writes / load.gangs, "writes"))
    return rows


def _share(run: Run, share: float) -> float:
    return run.gangs[min(len(run.gangs) - 1, int(len(run.gangs) * share))]


def _costs(what: str, run: Run) -> list[Row]:
    return [
        *(Row(f"{what}: CPU of {name}", used, "s") for name, used in sorted(run.cpu.items())),
        *(Row(f"{what}: memory of {name}", mib, "MiB") for name, mib in sorted(run.memory.items())),
    ]


async def measure(options: argparse.Namespace) -> list[Row]:
    paces = (FAST_QPS,) if options.quick else (STOCK_QPS, FAST_QPS)
    return [row for qps in paces for row in await at(qps, options)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nodes", type=int, default=1000, help="of 8 GPUs each, ten to a rack (default: 1000)"
    )
    parser.add_argument("--gangs", type=int, default=100, help="sets of nine pods (default: 100)")
    parser.add_argument("--no-native", action="store_true", help="leave native gangs out")
    parser.add_argument("--quick", action="store_true", help="a smoke run, at one pace")
    options = parser.parse_args()
    if options.nodes < options.gangs * IN_A_RACK:
        parser.error(f"--gangs {options.gangs} takes a rack each: --nodes must be tenfold")
    rows = asyncio.run(measure(options))
    report("gangs", rows, {"nodes": options.nodes, "gangs": options.gangs})


if __name__ == "__main__":
    main()
