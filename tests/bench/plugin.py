"""`make bench-plugin`: what the plugin's commands take on a big cluster, beside reading it at all.

A lab with node objects and bound pods that nobody runs, made through the API: the plugin reads them
as it reads any. The floor is a bare client that lists nodes and pods and decodes nothing.
"""

import argparse
import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import perf_counter

import msgspec
import psutil
import yaml

from api.jsons import Json, JsonObject
from controller import pace
from kube.client import EVERYTHING, Client
from kube.resources import NODES, PODCLIQUESETS, PODS
from penstock.lab import cluster
from penstock.lab.folders import Labs
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.bench.harness import Budget, Row, report
from tests.support.living import connect, engine_set

IN_A_RACK, IN_A_BLOCK, IN_A_ZONE = 16, 256, 2560
AT_ONCE = 64
ROUNDS = 2
NAMESPACE = "default"
BUDGET = Budget(3.0, of_ratio=True)
# Nobody reports for these nodes, and nobody is to mind.
UNMINDED = (
    Setting("kube-controller-manager", "node-monitor-grace-period", "24h"),
    Setting("kube-apiserver", "disable-admission-plugins", "TaintNodesByCondition"),
)


def node(index: int) -> JsonObject:
    zone, block, rack = index // IN_A_ZONE, index // IN_A_BLOCK, index // IN_A_RACK
    room: JsonObject = {"cpu": "96", "memory": "768Gi", "pods": "110", "nvidia.com/gpu": "8"}
    name = f"bare-{index:05d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"z{zone}",
                "topology.kubernetes.io/block": f"z{zone}-b{block}",
                "topology.kubernetes.io/rack": f"z{zone}-b{block}-r{rack}",
            },
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(index: int, nodes: int) -> JsonObject:
    request: JsonObject = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
    container: JsonObject = {
        "name": "engine",
        "image": "registry.example/engine:1.0",
        "resources": {"requests": request, "limits": {"nvidia.com/gpu": "2"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"there-{index:05d}", "labels": {"app": f"app-{index % 100}"}},
        "spec": {
            "nodeName": f"bare-{index % nodes:05d}",
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


async def fill(client: Client, nodes: int, pods: int) -> None:
    """Make all of it; in batches, so that not all bodies are there at once."""

    async def some_node(index: int) -> None:
        await client.create(NODES, node(index))

    async def some_pod(index: int) -> None:
        await client.create(PODS, pod(index, nodes), NAMESPACE)

    for make, count in ((some_node, nodes), (some_pod, pods)):
        for start in range(0, count, 1000):
            batch = range(start, min(count, start + 1000))
            await pace.all_of([partial(make, each) for each in batch], AT_ONCE)


async def listed(client: Client) -> float:
    """Give the seconds that it takes to have all nodes and pods come, and to look at none."""
    begun = perf_counter()
    for kind in (NODES, PODS):
        await client.list_with(kind, bytes, EVERYTHING)
    return perf_counter() - begun


def timed(lab: Lab, words: Iterable[str]) -> tuple[float, float]:
    """Run one command; seconds of wall time, and the most memory it had, in MiB."""
    penstock = Path(sys.executable).parent / "penstock"
    command = [str(penstock), *words, "--kubeconfig", str(lab.kubeconfig)]
    begun, most = perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seen = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            most = max(most, seen.memory_info().rss)
        except psutil.Error:
            break
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    _, said = process.communicate()
    took = perf_counter() - begun
    if process.returncode not in (0, 10, 11, 12):  # that somebody waits is an answer
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {said.decode()}")
    return took, most / 2**20


async def asked_for(client: Client, folder: Path) -> dict[str, list[str]]:
    """Have a set that runs and one that waits, and give the commands to try."""
    for name, pods, gpus in (("small", 8, 4), ("wide", 200, 8)):
        await client.create(PODCLIQUESETS, engine_set(name, pods=pods, gpus=gpus), NAMESPACE)
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(engine_set("planned", pods=64, gpus=4)))
    return {
        "status": ["status"],
        "topology": ["topology"],
        "tree": ["tree", "small", "-n", NAMESPACE],
        "explain": ["explain", "wide-0", "-n", NAMESPACE],
        "explain a set": ["explain", "wide", "-n", NAMESPACE],
        "plan": ["plan", "-f", str(file), "-n", NAMESPACE],
        "what-if drain": ["what-if", "drain", "bare-00000", "bare-00001"],
        "what-if add-nodes": ["what-if", "add-nodes", "16", "--like", "bare-00000"],
        "queues": ["queues"],
        "reservations": ["reservations"],
        "policy status": ["policy", "status"],
    }


async def until_placed(client: Client) -> None:
    """Wait until the small set has its pods on nodes."""
    for _ in range(240):
        body: Json = msgspec.json.decode(
            await client.raw_get(
                f"{PODS.path(NAMESPACE)}?labelSelector=app.kubernetes.io/part-of=small"
            )
        )
        items = body.get("items") if isinstance(body, dict) else None
        if (
            isinstance(items, list)
            and len(items) == 8
            and b"nodeName" in msgspec.json.encode(items)
        ):
            return
        await asyncio.sleep(0.5)
    raise RuntimeError("the set was not placed within two minutes")


async def measure(nodes: int, pods: int, folder: Path) -> list[Row]:
    spec = LabSpec(f"bench-{os.getpid()}-{secrets.token_hex(3)}", nodes=4, settings=UNMINDED)
    try:
        lab = await cluster.up(spec, Silence())
        async with connect(lab.kubeconfig) as client:
            begun = perf_counter()
            await fill(client, nodes, pods)
            made = perf_counter() - begun
            await install(
                lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(timeout=300),
                lambda _: None,
            )  # fmt: skip
            commands = await asked_for(client, folder)
            await until_placed(client)
            floors: list[float] = []
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
            # In turn, since what was made keeps the control plane busy for a while.
            for _ in range(ROUNDS):
                floors.append(await listed(client))
                for name, words in commands.items():
                    runs[name].append(await asyncio.to_thread(timed, lab, words))
            floor = min(floors)
            rows = [
                Row(f"{nodes} nodes and {pods} pods made", made, "s"),
                Row("all nodes and pods listed, and not looked at", floor, "s"),
            ]
            for name, told in runs.items():
                rows.append(Row(name, min(took for took, _ in told), "s", floor, BUDGET))
                rows.append(Row(f"{name}: memory", max(most for _, most in told), "MiB"))
            return rows
    finally:
        stop(Labs.of(os.environ).folder(spec.name).root)
        await cluster.down(spec.name, Silence())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=20_000)
    options = parser.parse_args()
    nodes: int = options.nodes
    pods: int = options.pods
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    rows = asyncio.run(measure(nodes, pods, folder))
    report("plugin", rows, {"nodes": nodes, "pods": pods})


if __name__ == "__main__":
    main()
