"""`make bench-lab`: how long a lab takes to be there, beside one that has a single node."""

import argparse
import asyncio
import os
import secrets
from collections.abc import Awaitable
from time import perf_counter

from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.bench.harness import Budget, Row, report


async def seconds(work: Awaitable[object]) -> float:
    begun = perf_counter()
    await work
    return perf_counter() - begun


async def with_nodes(count: int) -> float:
    """Bring a lab up and take it down; returns how long the first took."""
    spec = LabSpec(f"bench-{os.getpid()}-{secrets.token_hex(3)}", nodes=count)
    try:
        return await seconds(cluster.up(spec, Silence()))
    finally:
        await cluster.down(spec.name, Silence())


async def installed() -> tuple[float, float, float]:
    """Install Penstock into a lab twice; returns seconds for the lab and for each."""
    spec = LabSpec(f"bench-{os.getpid()}-{secrets.token_hex(3)}", nodes=40)
    try:
        up = await seconds(cluster.up(spec, Silence()))
        lab = cluster.lookup(spec.name)
        return up, await seconds(_install(lab)), await seconds(_install(lab))
    finally:
        await cluster.down(spec.name, Silence())


async def _install(lab: Lab) -> None:
    helm = lab.binaries["helm"]
    await install(lab.directory, lab.kubeconfig, helm, InstallOptions(), lambda _: None)


async def measure(nodes: int) -> list[Row]:
    floor = await with_nodes(1)
    many = await with_nodes(nodes)
    up, first, again = await installed()
    return [
        Row(f"lab with {nodes} nodes up and Ready", many, "s", floor, Budget(30)),
        Row("lab with 40 nodes up and Ready", up, "s", floor),
        Row("Penstock installed into it and proved to work", first, "s"),
        Row("lab and install together", up + first, "s", floor, Budget(60)),
        Row("install again, nothing changed", again, "s", first),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    nodes: int = options.nodes
    report("lab", asyncio.run(measure(nodes)), {"nodes": nodes})


if __name__ == "__main__":
    main()
