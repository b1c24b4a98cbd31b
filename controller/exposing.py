"""What one controller counts, as it is shown at /metrics.

What is counted belongs to the event loop, so that nothing is read while it is half written.
"""

from collections.abc import Callable
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from kube.families import Calls, Queues


class Metrics:
    """What one process counts, in a registry of its own. `refresh` runs before each look."""

    def __init__(self, component: str, leads: Callable[[], bool], lease: str = "") -> None:
        self.registry: Final = CollectorRegistry()
        self.refresh: list[Callable[[], None]] = []
        self.queues: Final = Queues()
        self.calls: Final = Calls()
        self.registry.register(self.queues)
        self.registry.register(self.calls)
        ProcessCollector(registry=self.registry)
        leading = Gauge(
            f"penstock_{component}_leads", "Whether this replica leads", registry=self.registry
        )
        # The same, as dashboards for controllers ask for it.
        status = Gauge(
            "leader_election_master_status", "Whether this replica leads, by lease", ("name",),
            registry=self.registry,
        ).labels(lease or component)  # fmt: skip

        def look() -> None:
            leading.set(leads())
            status.set(leads())

        self.refresh.append(look)

    def written(self) -> bytes:
        """Write all of it in Prometheus' text format."""
        for each in self.refresh:
            each()
        return prometheus_client.generate_latest(self.registry)
