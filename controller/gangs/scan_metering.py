"""What `gangs` counts and times of its scans, for Prometheus."""

from collections import Counter as Counts
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from typing_extensions import override

from controller.gangs.scan_results import Tally

OURS: Final = "penstock_gangs_scan"


class Unmetered:
    """What the scanner tells of its work, told to nobody."""

    def judged(self, kind: str) -> None:
        """One more object was held against the policy."""

    def finished(self, tally: Tally, seconds: float, at: datetime) -> None:
        """A scan came to an end, and what it came to is written."""

    def failed(self) -> None:
        """A scan did not come to its end."""


class Meters(Unmetered):
    """All of it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._judged = Counter(
            f"{OURS}_objects", "Objects that were held against the policy", ("kind",),
            registry=registry,
        )  # fmt: skip
        self._broken = Gauge(
            f"{OURS}_broken", "Objects that broke a rule at the last scan", ("rule", "mode"),
            registry=registry,
        )  # fmt: skip
        self._seconds = Gauge(
            f"{OURS}_seconds", "How long the last scan took, with its rests", registry=registry
        )
        self._last = Gauge(
            f"{OURS}_last_timestamp_seconds", "When the last scan ended", registry=registry
        )
        self._failures = Counter(
            f"{OURS}_failures", "Scans that did not come to their end", registry=registry
        )

    @override
    def judged(self, kind: str) -> None:
        """One more object was held against the policy."""
        self._judged.labels(kind).inc()

    @override
    def finished(self, tally: Tally, seconds: float, at: datetime) -> None:
        """A scan came to an end, and what it came to is written."""
        found = Counts(
            (rule, broken[0].mode.value)
            for looked in tally.broken
            for rule, broken in looked.broken().items()
        )
        self._broken.clear()  # rules that nothing breaks any more
        for (rule, mode), count in found.items():
            self._broken.labels(rule, mode).set(count)
        self._seconds.set(seconds)
        self._last.set(at.timestamp())

    @override
    def failed(self) -> None:
        """A scan did not come to its end."""
        self._failures.inc()
