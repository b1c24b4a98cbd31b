"""What `workloads` shows to Prometheus."""

import pytest

from controller.exposing import Metrics
from controller.workloads.metering import timed
from kube.objects import Key
from kube.workqueue import Workqueue
from tests.support.manualclock import LeapingClock


async def test_looks_are_timed_also_those_that_fail_and_what_waits_is_counted() -> None:
    clock = LeapingClock()
    queue: Workqueue[Key] = Workqueue(clock)
    metrics = Metrics("workloads", lambda: True)

    async def look(key: Key) -> None:
        await clock.sleep(0.2)
        if key[1] == "bad":
            raise ValueError("a fault")

    watched = timed(metrics, clock, queue, look)
    await watched(("default", "good"))
    with pytest.raises(ValueError, match="a fault"):
        await watched(("default", "bad"))
    queue.add(("default", "waits"))
    shown = metrics.written().decode()
    assert "penstock_workloads_look_seconds_count 2.0\n" in shown
    assert 'penstock_workloads_look_seconds_bucket{le="0.1"} 0.0\n' in shown
    assert "penstock_workloads_queue_depth 1.0\n" in shown
