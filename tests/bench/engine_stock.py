"""What it takes to know the cluster: a snapshot from scratch, one pod event, and memory."""

import gc
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from api.streams import Node, Pod
from scheduler import snapshot
from scheduler.snapshot import Snapshot
from scheduler.stock import Stock, hold_of
from tests.bench import engine_clusters as clusters
from tests.bench.engine_clock import Clock, each
from tests.bench.harness import Budget, Row, Timing

SNAPSHOT: Final = "snapshot from scratch, ms"
FIRST: Final = "stock and its first snapshot from scratch, ms"
EVENT: Final = "one pod event, µs"
AFTER: Final = "snapshot after an event, ms"
MEMORY: Final = "memory of a process with stock and snapshot that has planned, MiB"
KEEPING: Final = "the same with every decoded pod kept, MiB"
BUDGETS: Final = {
    SNAPSHOT: Budget(1000.0), FIRST: Budget(1000.0), EVENT: Budget(50.0), MEMORY: Budget(300.0),
}  # fmt: skip
_EVENTS: Final = 1000  # that are taken together to tell what one takes


def built(nodes: Iterable[Node], pods: Iterable[Pod]) -> Snapshot:
    """Take stock at one go."""
    holds = (hold_of(pod) for pod in pods)
    return snapshot.build(nodes, [hold for hold in holds if hold], clusters.LEVELS)


def stocked(nodes: Iterable[Node], pods: Iterable[Pod]) -> Stock:
    """Take stock one by one, as from lists and watches."""
    stock = Stock(clusters.LEVELS)
    for node in nodes:
        stock.put_node(node)
    for pod in pods:
        arrive(stock, pod)
    return stock


def arrive(stock: Stock, pod: Pod) -> None:
    hold = hold_of(pod)
    if hold is not None:
        stock.put((pod.metadata.namespace, pod.metadata.name), hold)


def churn(stock: Stock, pods: Sequence[Pod]) -> None:
    """Two events a pod: it goes, and it comes."""
    for pod in pods:
        stock.drop((pod.metadata.namespace, pod.metadata.name))
        arrive(stock, pod)


def costs(nodes: int, full: float, clock: Clock, times: int) -> dict[str, float]:
    """Medians, by what was measured, for a cluster of decoded nodes and pods."""
    decoded, pods = clusters.nodes(nodes), clusters.pods(clusters.tenants(nodes, full))
    gc.collect()
    scratch = each([lambda: built(decoded, pods)] * times, clock).timing.median
    first = each([lambda: stocked(decoded, pods).snapshot()] * times, clock).timing.median
    stock = stocked(decoded, pods)
    stock.snapshot()
    some = pods[:: max(8, len(pods) // _EVENTS)]
    # A round takes milliseconds, so that a few of them would tell of the machine.
    events = each([lambda: churn(stock, some)] * times * 8, clock).timing.median
    after = Timing.of(_after(stock, pod, clock) for pod in some[: max(times, 10)]).median
    return {
        SNAPSHOT: scratch * 1e3,
        FIRST: first * 1e3,
        EVENT: events / (2 * len(some)) * 1e6,
        AFTER: after * 1e3,
        MEMORY: memory(nodes, full, keep=False),
    }


def _after(stock: Stock, pod: Pod, clock: Clock) -> float:
    """The time that a snapshot takes when a pod has gone and come since the last one."""
    churn(stock, [pod])
    begun = clock()
    stock.snapshot()
    return clock() - begun


def after_events(nodes: int, full: float) -> Iterator[Snapshot]:
    """Snapshots of one stock, each when a pod has gone and another has come since the last."""
    pods = clusters.pods(clusters.tenants(nodes, full))
    stock = stocked(clusters.nodes(nodes), pods)
    away: Pod | None = None
    for pod in itertools.cycle(pods):
        stock.drop((pod.metadata.namespace, pod.metadata.name))
        if away is not None:
            arrive(stock, away)
        away = pod
        yield stock.snapshot()


def rows(nodes: int, full: float, clock: Clock, times: int) -> list[Row]:
    """Rows for a cluster of decoded nodes and pods."""
    least = each([floor(clusters.tenants(nodes, full), nodes)] * times, clock).timing
    floors = {SNAPSHOT: least.median * 1e3, FIRST: least.median * 1e3}
    where = f"{nodes} nodes and {nodes * clusters.PODS_EACH} pods"
    found = []
    measured = costs(nodes, full, clock, times) | {KEEPING: memory(nodes, full, keep=True)}
    for what, cost in measured.items():
        name, unit = what.rsplit(", ", 1)
        found.append(Row(f"{where}: {name}", cost, unit, floors.get(what), BUDGETS.get(what)))
    return found


def floor(there: Sequence[clusters.Tenant], nodes: int) -> Callable[[], object]:
    """Only the sums: what each pod takes is in an array already."""
    rows = np.array([tenant.row for tenant in there])
    needs = np.array([(tenant.gpus, 8000 * tenant.gpus, 48 << 30, 1) for tenant in there])

    def add() -> None:
        free = np.zeros((nodes, 4), dtype=np.int64)
        np.subtract.at(free, rows, needs)

    return add


def memory(nodes: int, full: float, *, keep: bool) -> float:
    """MiB of a fresh process that holds such a cluster and has planned."""
    call = [sys.executable, "-m", "tests.bench.engine_memory", str(nodes), str(full), str(+keep)]
    return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
