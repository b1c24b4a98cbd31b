"""A process that holds a cluster and has planned, and tells how much memory that takes.

It is the proportional share of all its memory: interpreter, libraries, objects and arrays. Nodes
and pods are decoded one by one, as from a watch. Pods are let go after that, or kept, as those do
who must know them for other reasons.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from api.streams import Node, Pod
from scheduler import cycle
from tests.bench import engine_clusters as clusters
from tests.bench.engine_clock import collected
from tests.bench.engine_gangs import nested_gangs
from tests.bench.engine_stock import stocked


def pss() -> float:
    """Give the proportional share in MiB."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no Pss in smaps_rollup")


def _nodes(count: int) -> Iterator[Node]:
    for document in clusters.node_documents(count):
        yield msgspec.json.decode(document, type=Node)


def _pods(count: int, full: float, kept: list[Pod] | None) -> Iterator[Pod]:
    for number, tenant in enumerate(clusters.tenants(count, full)):
        pod = msgspec.json.decode(clusters.pod_document(number, tenant), type=Pod)
        if kept is not None:
            kept.append(pod)
        yield pod


def main(nodes: int, full: float, *, keep: bool) -> None:
    kept: list[Pod] | None = [] if keep else None
    with collected():
        stock = stocked(_nodes(nodes), _pods(nodes, full, kept))
        cycle.plan(stock.snapshot(), nested_gangs(3))
    sys.stdout.write(f"{pss():.1f}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), keep=sys.argv[3] == "1")
