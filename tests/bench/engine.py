"""`make bench-engine`: how long the engine takes to decide, beside the least anybody could do.

The floor is a greedy that gives each pod the first node with enough GPUs: no domains, no filters
but that one, no explanation and no check of the result.
"""

import argparse

import numpy as np

from api import names
from scheduler import cycle, snapshot
from scheduler.requests import GangRequest, Want
from scheduler.topology import Levels
from tests.bench.harness import Budget, Row, report, timed
from tests.support.clusters import racks

LEVELS = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
GPU = "nvidia.com/gpu"


def cluster(nodes: int) -> snapshot.Snapshot:
    """Racks of 20 nodes, blocks of 10 racks, zones of 5 blocks."""
    zones = max(1, nodes // 1000)
    blocks = max(1, nodes // zones // 200)
    each = nodes // zones // blocks // 10
    return snapshot.build(racks(zones, blocks, 10, each), [], LEVELS)


def gang(number: int, pods: int) -> GangRequest:
    need = {GPU: 8, "cpu": 16_000, "memory": 64 << 30, "pods": 1}
    return GangRequest("bench", f"g{number}", tuple(Want("w", i, need) for i in range(pods)))


def greedy(taken: snapshot.Snapshot, pods: int) -> list[int]:
    free = taken.free[:, taken.resources.index(GPU)].copy()
    chosen = []
    for _ in range(pods):
        row = int(np.argmax(free >= 8))
        free[row] -= 8
        chosen.append(row)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=30)
    options = parser.parse_args()
    nodes, times = options.nodes, options.times
    rows = []
    for count in (nodes // 2, nodes):
        taken = cluster(count)
        for pods in (9, 100):
            request = gang(0, pods)
            ours = timed(lambda s=taken, r=request: cycle.plan(s, [r]), times)  # type: ignore[misc]
            least = timed(lambda s=taken, p=pods: greedy(s, p), times)  # type: ignore[misc]
            budget = Budget(10.0) if (count, pods) == (nodes, 100) else None
            what = f"decide one gang of {pods} pods on {len(taken.nodes)} nodes"
            rows.append(Row(f"{what}, p99", ours.p99 * 1e3, "ms", least.p99 * 1e3, budget))
    report("engine", rows, {"nodes": nodes, "times": times})


if __name__ == "__main__":
    main()
