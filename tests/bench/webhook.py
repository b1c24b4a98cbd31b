"""`make bench-webhook`: reviews a second, latency and memory of the webhook on one core.

The floor is a WSGI application that lets everything in, on the same server: the same worker, the
same TLS, the same bodies read. The server has a core of its own, and the calls come from another.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import psutil

from api.jsons import JsonObject
from tests.bench.harness import Budget, Row, report
from tests.bench.webhook_audit import added
from tests.bench.webhook_followed import followed
from tests.bench.webhook_load import (
    Connection,
    Measured,
    arrive,
    connections,
    request,
    saturate,
)
from tests.bench.webhook_policy import evaluated
from tests.bench.webhook_reviews import BY_ROUTE, SET_OF_TWENTY, mix
from tests.bench.webhook_worst import worst
from tests.webhook.running import Files, Running, files_in, port_of, ready, started, until
from webhook.routes import ROUTES

CONNECTIONS: Final = 16
RATE: Final = 500.0
TURNS: Final = 4
MIX: Final = [request(path, body) for path, body in mix()]
SPLITS: Final = ((1, 16), (2, 8), (1, 8), (1, 4), (1, 2), (1, 1), (2, 2))
START_SECONDS: Final = 60.0
TWO_FIFTHS: Final = Budget(2.5, of_ratio=True)
OURS: Final = "webhook"
BARE: Final = "tests.bench.webhook_bare"


@dataclass(frozen=True)
class Run:
    """What the calls saw, and the CPU that answering them took."""

    seen: Measured
    cpu: float

    @property
    def cost(self) -> float:
        """Microseconds of the server's CPU for each review."""
        return self.cpu / len(self.seen.latencies) * 1e6

    def and_also(self, other: "Run") -> "Run":
        return Run(self.seen.and_also(other.seen), self.cpu + other.cpu)

    def at(self, share: float) -> float:
        """Milliseconds within which that share of the calls was answered."""
        return self.seen.quantile(share) * 1e3


@dataclass(frozen=True)
class Site:
    """Webhooks under test on the first core; the calls come from the second."""

    files: Files
    running: Sequence[Running]

    def saturated(self, calls: Sequence[bytes], seconds: float, count: int = CONNECTIONS) -> Run:
        """Measure how many calls are answered where each connection asks again at once."""
        with self._lines(count) as lines:
            saturate(lines, calls, seconds / 4)
            before = self.cpu()
            made = _sound(saturate(lines, calls, seconds))
            return Run(made, self.cpu() - before)

    def arriving(self, calls: Sequence[bytes], count: int, gap: Callable[[], float]) -> Run:
        """Measure latencies where calls come one such gap after another."""
        with self._lines(CONNECTIONS) as lines:
            arrive(lines, calls, count // 10, gap)
            before = self.cpu()
            made = _sound(arrive(lines, calls, count, gap))
            return Run(made, self.cpu() - before)

    @contextmanager
    def _lines(self, count: int) -> Iterator[list[Connection]]:
        ports = [each.port for each in self.running]
        with on_core(1), connections(ports, self.files.client(), count) as lines:
            yield lines

    def memory(self) -> float:
        """MiB of all processes, with what they share counted once (PSS)."""
        return sum(_pss(process) for process in self._processes())

    def cpu(self) -> float:
        """Seconds of CPU that all processes took so far."""
        times = [process.cpu_times() for process in self._processes()]
        return sum(float(each.user + each.system) for each in times)

    def _processes(self) -> list[psutil.Process]:
        masters = [psutil.Process(each.process.pid) for each in self.running]
        return [*masters, *(child for each in masters for child in each.children(recursive=True))]


def _sound(run: Measured) -> Measured:
    if run.faults:
        raise SystemExit(f"{len(run.faults)} calls failed, the first with {run.faults[0]!r}")
    return run


def _pss(process: psutil.Process) -> float:
    return float(process.memory_full_info().pss) / (1 << 20)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Pin this process, and what it starts, to one core if there are several."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[core % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def serving(
    module: str, processes: int = 1, threads: int = 16, kubeconfig: Path | None = None
) -> Iterator[Site]:
    """Run so many webhooks on the first core."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = files_in(folder / "tls")
        files.issue()
        flags = ["--port", "0", "--threads", str(threads)]
        if kubeconfig is not None:
            flags += ["--kubeconfig", str(kubeconfig)]
        with on_core(0):
            running = [
                stack.enter_context(started(files, folder / f"log-{i}", *flags, module=module))
                for i in range(processes)
            ]
        for each in running:
            each.port = port_of(each)
            until(partial(ready, each), "ready", START_SECONDS)
        yield Site(files, running)


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    seconds: float
    arrivals: int
    splits: bool
    sets: int
    """Stored in a real cluster, whose webhook's memory is measured; none for no cluster."""


def _at_random() -> Callable[[], float]:
    chance = Random(7)  # noqa: S311 - when calls come is no secret
    return lambda: chance.expovariate(RATE)


def _evenly() -> float:
    return 1 / RATE


@dataclass(frozen=True)
class Pair:
    """Ours and the floor, asked in turn, a slice each, so that they share the weather."""

    ours: Site
    bare: Site
    plan: Plan

    def _in_turn(self, run: Callable[[Site], Run]) -> tuple[Run, Run]:
        ours, bare = run(self.ours), run(self.bare)
        for _ in range(TURNS - 1):
            ours, bare = ours.and_also(run(self.ours)), bare.and_also(run(self.bare))
        return ours, bare

    def saturated(self, what: str, calls: Sequence[bytes]) -> list[Row]:
        ours, bare = self._in_turn(lambda site: site.saturated(calls, self.plan.seconds / TURNS))
        rate, floor = ours.seen.per_second, bare.seen.per_second
        return [
            Row(f"{what} at saturation", rate, "reviews/s", floor),
            # Two fifths of the floor's throughput, said as a time, which a budget can bound.
            Row(f"{what} at saturation, time", 1e6 / rate, "µs", 1e6 / floor, TWO_FIFTHS),
            Row(f"{what} at saturation, the server's CPU", ours.cost, "µs", bare.cost),
            Row(f"{what} at saturation, p50", ours.at(0.5), "ms", bare.at(0.5)),
            Row(f"{what} at saturation, p99", ours.at(0.99), "ms", bare.at(0.99)),
            Row(f"{what} at saturation, core of the calls", ours.seen.busy * 100, "%"),
        ]

    def alone(self, what: str, calls: Sequence[bytes], budget: Budget | None = None) -> list[Row]:
        ours, bare = self._in_turn(lambda site: site.saturated(calls, self.plan.seconds / TURNS, 1))
        return [
            Row(f"{what} alone, p50", ours.at(0.5), "ms", bare.at(0.5)),
            Row(f"{what} alone, p99", ours.at(0.99), "ms", bare.at(0.99), budget),
        ]

    def arriving(self, what: str, calls: Sequence[bytes]) -> list[Row]:
        """Calls at random, as users make them, and evenly, as load generators do."""
        return [
            row
            for pace, gap in (("at random", _at_random()), ("evenly", _evenly))
            for row in self._paced(f"{what} at {RATE:g}/s {pace}", calls, gap)
        ]

    def _paced(self, what: str, calls: Sequence[bytes], gap: Callable[[], float]) -> list[Row]:
        ours, bare = self._in_turn(
            lambda site: site.arriving(calls, self.plan.arrivals // TURNS, gap)
        )
        return [
            Row(f"{what}, p50", ours.at(0.5), "ms", bare.at(0.5)),
            Row(f"{what}, p99", ours.at(0.99), "ms", bare.at(0.99), Budget(5)),
            Row(f"{what}, the server's CPU", ours.cost, "µs", bare.cost),
            Row(f"{what}, core of the calls", ours.seen.busy * 100, "%"),
        ]


def measure(plan: Plan) -> list[Row]:
    rows: list[Row] = []
    with serving(BARE) as bare, serving(OURS) as ours:
        pair = Pair(ours, bare, plan)
        for route in ROUTES:
            calls = [request(route.path, BY_ROUTE[route.path])]
            rows += pair.saturated(route.path, calls)
            rows += pair.alone(route.path, calls)
        rows += pair.saturated("mix", MIX)
        rows += pair.arriving("mix", MIX)
        for path in ("/default/podcliquesets", "/validate/podcliquesets"):
            rows += pair.alone(f"{path}, 20 cliques", [request(path, SET_OF_TWENTY)], Budget(20))
        what = "memory after all of this, master included, no cluster followed"
        rows.append(Row(what, ours.memory(), "MiB", bare.memory(), Budget(90)))
    rows += _memories(plan)
    rows += evaluated()
    rows += worst()
    rows += added()
    for processes, threads in SPLITS if plan.splits else ():
        rows += _split(processes, threads, plan)
    return rows


def _memories(plan: Plan) -> list[Row]:
    """What a webhook has come to when it has answered one route for a while, or the mix."""
    if not plan.sets:
        return _memories_where(plan, "no cluster followed", None)
    with followed(plan.sets) as kubeconfig:
        return _memories_where(plan, f"{plan.sets} sets followed", kubeconfig)


def _memories_where(plan: Plan, where: str, kubeconfig: Path | None) -> list[Row]:
    asked = {path: [request(path, body)] for path, body in BY_ROUTE.items()} | {"mix": MIX}
    rows = []
    for what, calls in asked.items():
        with serving(OURS, kubeconfig=kubeconfig) as ours:
            ours.saturated(calls, plan.seconds / 2)
            name = f"{what}, memory, master included, {where}"
            rows.append(Row(name, ours.memory(), "MiB", None, Budget(90)))
    return rows


def _split(processes: int, threads: int, plan: Plan) -> list[Row]:
    what = f"{processes} × {threads} threads, mix"
    with serving(OURS, processes, threads) as site:
        full = site.saturated(MIX, plan.seconds)
        steady = site.arriving(MIX, plan.arrivals // 2, _at_random())
        return [
            Row(f"{what} at saturation", full.seen.per_second, "reviews/s"),
            Row(f"{what} at saturation, the server's CPU", full.cost, "µs"),
            Row(f"{what} at saturation, p99", full.at(0.99), "ms"),
            Row(f"{what} at {RATE:g}/s, p99", steady.at(0.99), "ms"),
            Row(f"{what}, memory", site.memory(), "MiB"),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--arrivals", type=int, default=10_000, help=f"calls at {RATE:g} a second")
    parser.add_argument("--no-splits", action="store_true", help="only one split of 16 threads")
    parser.add_argument(
        "--sets", type=int, default=1000, help="in the cluster whose webhook's memory is measured"
    )
    parser.add_argument("--no-cluster", action="store_true", help="measure memory without one")
    options = parser.parse_args()
    sets = 0 if options.no_cluster else options.sets
    plan = Plan(options.seconds, options.arrivals, not options.no_splits, sets)
    settings: JsonObject = {
        "seconds": plan.seconds,
        "arrivals": plan.arrivals,
        "connections": CONNECTIONS,
        "sets": plan.sets,
        "cores": min(2, len(os.sched_getaffinity(0))),
    }
    report("webhook", measure(plan), settings)


if __name__ == "__main__":
    main()
