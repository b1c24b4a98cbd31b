"""What is counted of queues and calls, as series under the names that dashboards expect.

Names and labels are those of controllers made with Kubernetes' own libraries, so that what was
drawn for them works here as well.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

import prometheus_client
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from typing_extensions import override

from kube.tallies import CallTally, QueueTally, Result, Timings

_RECONCILE: Final = "controller_runtime_reconcile"
_QUEUE: Final = "workqueue"
_OF_QUEUE: Final = ("name", "controller")

# When a series began is no use to anybody here, and doubles what is written.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # published untyped


class Queue(Protocol):
    """A queue of keys, and what is counted of it."""

    tally: QueueTally
    concurrency: int

    def __len__(self) -> int:
        """Return how many keys wait for a worker."""
        ...

    def unfinished(self) -> list[float]:
        """Return for how many seconds each key that is worked on now has been."""
        ...


class Queues(Collector):
    """Shows the queues of one process, by the controller that works on each."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}

    def show(self, queues: Mapping[str, Queue]) -> None:
        """Show these too."""
        self._queues.update(queues)

    @override
    def collect(self) -> Iterable[Metric]:
        """Give all series as they are now."""
        yield from _reconciles(self._queues)
        yield from _waiting(self._queues)


def _reconciles(queues: Mapping[str, Queue]) -> Iterator[Metric]:
    total = CounterMetricFamily(
        f"{_RECONCILE}_total",
        "Looks at an object, by how they ended",
        labels=("controller", "result"),
    )
    errors = CounterMetricFamily(
        f"{_RECONCILE}_errors_total", "Looks that failed", labels=("controller",)
    )
    times = HistogramMetricFamily(
        f"{_RECONCILE}_time_seconds", "How long looks took", labels=("controller",)
    )
    most = GaugeMetricFamily(
        "controller_runtime_max_concurrent_reconciles", "How many objects are looked at at once",
        labels=("controller",),
    )  # fmt: skip
    active = GaugeMetricFamily(
        "controller_runtime_active_workers", "How many are looked at now", labels=("controller",)
    )
    for name, queue in queues.items():
        for result, count in queue.tally.results.items():
            total.add_metric((name, result.value), count)
        errors.add_metric((name,), queue.tally.results[Result.ERROR])
        _add(times, (name,), queue.tally.works_closely)
        most.add_metric((name,), queue.concurrency)
        active.add_metric((name,), len(queue.unfinished()))
    return iter((total, errors, times, most, active))


def _waiting(queues: Mapping[str, Queue]) -> Iterator[Metric]:
    def gauge(name: str, about: str, value: Callable[[Queue], float]) -> Metric:
        family = GaugeMetricFamily(f"{_QUEUE}_{name}", about, labels=_OF_QUEUE)
        for each, queue in queues.items():
            family.add_metric((each, each), value(queue))
        return family

    def counter(name: str, about: str, value: Callable[[QueueTally], int]) -> Metric:
        family = CounterMetricFamily(f"{_QUEUE}_{name}", about, labels=_OF_QUEUE)
        for each, queue in queues.items():
            family.add_metric((each, each), value(queue.tally))
        return family

    def timed(name: str, about: str, value: Callable[[QueueTally], Timings]) -> Metric:
        family = HistogramMetricFamily(f"{_QUEUE}_{name}", about, labels=_OF_QUEUE)
        for each, queue in queues.items():
            _add(family, (each, each), value(queue.tally))
        return family

    yield gauge("depth", "Keys that wait for a worker", len)
    yield counter("adds_total", "Keys that were added", lambda tally: tally.added)
    yield counter("retries_total", "Keys put back after a growing wait", lambda t: t.retried)
    yield timed("queue_duration_seconds", "How long keys waited", lambda tally: tally.waits)
    yield timed("work_duration_seconds", "How long work on keys took", lambda tally: tally.works)
    yield gauge(
        "unfinished_work_seconds", "How long work that goes on has taken, summed up",
        lambda queue: sum(queue.unfinished()),
    )  # fmt: skip
    yield gauge(
        "longest_running_processor_seconds", "How long the longest work that goes on has taken",
        lambda queue: max(queue.unfinished(), default=0.0),
    )  # fmt: skip


class Calls(Collector):
    """Shows the requests that one process sent to API servers."""

    def __init__(self) -> None:
        self._tallies: list[CallTally] = []

    def add(self, tally: CallTally) -> None:
        """Show those of one more client."""
        self._tallies.append(tally)

    @override
    def collect(self) -> Iterable[Metric]:
        """Give all series as they are now."""
        family = CounterMetricFamily(
            "rest_client_requests_total",
            "Requests to the API server, by the status they were answered with",
            labels=("host", "method", "code"),
        )
        sums: Counter[tuple[str, str, str]] = Counter()
        for tally in self._tallies:
            sums.update(dict(tally.counts))  # a copy: others may count meanwhile
        for labels, count in sums.items():
            family.add_metric(labels, count)
        yield family


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], timings: Timings) -> None:
    bounds = [*map(floatToGoString, timings.bounds), "+Inf"]
    family.add_metric(labels, [*zip(bounds, timings.up_to(), strict=True)], timings.total)
