"""What `workloads` counts and times, for Prometheus."""

from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Gauge, Histogram

from controller.exposing import Metrics
from kube.clock import Clock
from kube.objects import Key
from kube.workqueue import Workqueue

_PREFIX: Final = "penstock_workloads_"
_LOOKS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def timed(
    metrics: Metrics, clock: Clock, queue: Workqueue[Key], look: Callable[[Key], Awaitable[None]]
) -> Callable[[Key], Awaitable[None]]:
    """Give the same look at a set, counted and timed; show also how many sets wait for one."""
    registry = metrics.registry
    depth = Gauge(f"{_PREFIX}queue_depth", "Sets that wait to be looked at", registry=registry)
    metrics.refresh.append(lambda: depth.set(len(queue)))
    looks = Histogram(
        f"{_PREFIX}look_seconds",
        "How long it took to look at a set and do what was due",
        buckets=_LOOKS,
        registry=registry,
    )

    async def watched(key: Key) -> None:
        begun = clock.monotonic()
        try:
            await look(key)
        finally:
            looks.observe(clock.monotonic() - begun)

    return watched
