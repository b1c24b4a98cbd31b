"""What is counted of scans: what was judged, what is broken now, when that was, what failed."""

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from controller.gangs.scan_metering import Meters
from controller.gangs.scan_results import Looked, Tally
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tally(*broken: tuple[str, Mode]) -> Tally:
    made = Tally("r1")
    for rule, mode in broken:
        findings = (Finding(rule, mode, Problem("spec", "is too much")),) * 2
        made.add(Looked("v1", "Pod", "team", "x", "uid", findings))
    return made


def test_what_is_broken_is_of_the_last_scan_alone() -> None:
    registry = CollectorRegistry()
    meters = Meters(registry)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"penstock_gangs_scan_{name}", labels)

    few, near = ("few", Mode.ENFORCE), ("near", Mode.WARN)
    meters.finished(tally(few, few, near), 2.5, AT)
    assert value("broken", rule="few", mode="enforce") == 2, "objects, not findings"
    assert value("broken", rule="near", mode="warn") == 1
    assert (value("seconds"), value("last_timestamp_seconds")) == (2.5, AT.timestamp())
    meters.finished(tally(near), 1.0, AT)
    assert value("broken", rule="few", mode="enforce") is None
    assert value("broken", rule="near", mode="warn") == 1


def test_objects_and_failures_are_counted_without_end() -> None:
    registry = CollectorRegistry()
    meters = Meters(registry)
    assert registry.get_sample_value("penstock_gangs_scan_failures_total") == 0
    for _ in range(3):
        meters.judged("Pod")
        meters.failed()
    pods = registry.get_sample_value("penstock_gangs_scan_objects_total", {"kind": "Pod"})
    assert (pods, registry.get_sample_value("penstock_gangs_scan_failures_total")) == (3, 3)
