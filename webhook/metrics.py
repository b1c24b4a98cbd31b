"""What is counted and timed, for Prometheus."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from kube.families import Calls

PREFIX: Final = "penstock_webhook_"
BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Decision(StrEnum):
    """What became of a review."""

    ALLOW = "allow"
    REFUSE = "refuse"
    SHED = "shed"
    FAULT = "fault"
    MALFORMED = "malformed"


class PathMetrics:
    """The series of one path, looked up once."""

    def __init__(self, metrics: "Metrics", path: str) -> None:
        self._path = path
        self._requests = metrics.requests
        self._seen: dict[tuple[str, Decision, bool], Counter] = {}
        self.duration: Final = metrics.duration.labels(path)
        self.in_flight: Final = metrics.in_flight.labels(path)
        self.shed: Final = metrics.shed.labels(path)
        self.late: Final = metrics.late.labels(path)
        self.faults: Final = metrics.faults.labels(path)
        self.strays: Final = metrics.strays.labels(path)
        self._rejected = metrics.rejected

    def reject(self, code: int) -> None:
        """Count a request that was answered with this HTTP status in place of a review."""
        self._rejected.labels(self._path, str(code)).inc()

    def count(self, operation: str, decision: Decision, *, dry_run: bool) -> None:
        """Count a review."""
        key = (operation, decision, dry_run)
        series = self._seen.get(key)
        if series is None:
            labels = (self._path, operation, decision.value, "true" if dry_run else "false")
            series = self._seen[key] = self._requests.labels(*labels)
        series.inc()


class Metrics:
    """All of them, in a registry of their own."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.registry: Final = CollectorRegistry()
        self.calls: Final = Calls()
        registry = self.registry
        registry.register(self.calls)
        ProcessCollector(registry=registry)
        self.requests: Final = Counter(
            f"{PREFIX}requests",
            "Reviews, by what became of them",
            ("path", "operation", "decision", "dry_run"),
            registry=registry,
        )
        self.duration: Final = Histogram(
            f"{PREFIX}duration_seconds",
            "From the first bytes of a review to its answer",
            ("path",),
            buckets=BUCKETS,
            registry=registry,
        )
        self.in_flight: Final = Gauge(
            f"{PREFIX}in_flight", "Reviews being answered", ("path",), registry=registry
        )

        def counter(name: str, about: str) -> Counter:
            return Counter(f"{PREFIX}{name}", about, ("path",), registry=registry)

        self.shed: Final = counter("shed", "Reviews that nobody got to in time")
        self.late: Final = counter("deadline_exceeded", "Reviews answered past their deadline")
        self.faults: Final = counter("faults", "Reviews refused for a fault of ours")
        self.strays: Final = counter(
            "stray_reviews", "Reviews that a webhook configuration should not have sent here"
        )
        self.rejected: Final = Counter(
            f"{PREFIX}rejected",
            "Requests turned away before there was a review to answer",
            ("path", "code"),
            registry=registry,
        )
        self.handshake_failures: Final = Counter(
            f"{PREFIX}tls_handshake_failures", "TLS handshakes that failed", registry=registry
        )
        self.certificate_expiry: Final = Gauge(
            f"{PREFIX}certificate_expiry_timestamp_seconds",
            "When the certificate that is shown ends",
            registry=registry,
        )
        self.synced: Final = Gauge(
            f"{PREFIX}caches_synced", "Whether the first lists have arrived", registry=registry
        )
        self.policy: Final = Gauge(
            f"{PREFIX}policy_info",
            "The policy gone by, and where it is from",
            ("revision", "source"),
            registry=registry,
        )
        self.policy_is_good: Final = Gauge(
            f"{PREFIX}policy_valid",
            "Whether what the policy's ConfigMap says is what is gone by",
            registry=registry,
        )
        self.policy_faults: Final = Counter(
            f"{PREFIX}policy_faults", "Policies that could not be gone by", registry=registry
        )
        self.candidate: Final = Gauge(
            f"{PREFIX}candidate_info",
            "The candidate that is tried beside the policy",
            ("revision",),
            registry=registry,
        )
        self.candidate_is_good: Final = Gauge(
            f"{PREFIX}candidate_valid",
            "Whether the candidate can be gone by, or there is none",
            registry=registry,
        )
        self.candidate_compared: Final = Counter(
            f"{PREFIX}candidate_compared", "Reviews the candidate was tried on", registry=registry
        )
        self.candidate_skipped: Final = Counter(
            f"{PREFIX}candidate_skipped",
            "Reviews the candidate could have been tried on",
            registry=registry,
        )
        self.candidate_differences: Final = Counter(
            f"{PREFIX}candidate_differences",
            "Reviews that the candidate would answer otherwise, by rule",
            ("rule", "from", "to"),
            registry=registry,
        )
        self._paths = {path: PathMetrics(self, path) for path in paths}

    def of(self, path: str) -> PathMetrics:
        """Give the series of one path."""
        return self._paths[path]

    def written(self) -> bytes:
        """Write all of them in Prometheus' text format."""
        return prometheus_client.generate_latest(self.registry)
