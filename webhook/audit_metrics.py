"""What is counted of the audit log."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from kube.tallies import CallTally
from webhook.metrics import PREFIX


class AuditMetrics:
    """All of it, in the webhook's own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls: Final = CallTally()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}audit_{name}", about, labels, registry=registry)

        self.records: Final = counter(
            "records", "Records of the audit log, by what became of the review", "decision"
        )
        self.suppressed: Final = counter(
            "suppressed", "Reviews without a record of their own, for there were too many alike"
        )
        self.dropped: Final = counter(
            "dropped", "Records that were never written, by what was in the way", "reason"
        )
        self.missed: Final = counter("missed_lines", "Lines that the log's files could not take")
        self.events: Final = counter("events", "Events about refusals", "outcome")
        self.failing: Final = Gauge(
            f"{PREFIX}audit_failing", "Whether the log cannot be written", registry=registry
        )
        self.last: Final = Gauge(
            f"{PREFIX}audit_last_line", "The number of the log's last line", registry=registry
        )
