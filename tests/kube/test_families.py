"""Queues and calls are shown under the names that dashboards for controllers expect."""

import asyncio

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry

from kube.families import Calls, Queues
from kube.tallies import CallTally, Timings
from kube.workqueue import Workqueue
from tests.support import families
from tests.support.manualclock import ManualClock, settle
from tests.support.quiet import quietly

OF_QUEUE = '{controller="gang",name="gang"}'


def written(*collectors: Queues | Calls) -> str:
    registry = CollectorRegistry()
    for each in collectors:
        registry.register(each)
    return prometheus_client.generate_latest(registry).decode()


class Bench:
    """A queue with two workers who do with a key what its name says, once they are let."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue: Workqueue[str] = Workqueue(self.clock)
        self.go_on = asyncio.Event()
        self.shown = Queues()
        self.shown.show({"gang": self.queue})

    async def work(self, key: str) -> None:
        await self.go_on.wait()
        match key:
            case "raises":
                raise ValueError("a fault")
            case "refused":
                self.queue.blame(key)
                self.queue.retry(key)
            case "overtaken":
                self.queue.retry(key)
            case "later":
                self.queue.add_after(key, 60.0)

    def values(self) -> dict[str, float]:
        return families.values(written(self.shown))

    def results(self) -> dict[str, float]:
        form = 'controller_runtime_reconcile_total{{controller="gang",result="{}"}}'
        values = self.values()
        names = ("success", "error", "requeue", "requeue_after")
        return {name: values[form.format(name)] for name in names}


async def test_work_is_counted_by_how_it_ended() -> None:
    bench = Bench()
    for key in ("raises", "refused", "overtaken", "later", "fine", "fine"):
        bench.queue.add(key)
    bench.go_on.set()
    async with quietly():
        working = asyncio.create_task(bench.queue.run(bench.work, 2))
        await settle()
    assert bench.results() == {"success": 1, "error": 2, "requeue": 1, "requeue_after": 1}
    values = bench.values()
    assert values['controller_runtime_reconcile_errors_total{controller="gang"}'] == 2
    assert values[f"workqueue_adds_total{OF_QUEUE}"] == 5
    assert values[f"workqueue_retries_total{OF_QUEUE}"] == 3
    assert values['controller_runtime_max_concurrent_reconciles{controller="gang"}'] == 2
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_waiting_and_work_that_goes_on_are_timed() -> None:
    bench = Bench()
    for key in "abc":
        bench.queue.add(key)
    await bench.clock.advance(2.0)
    working = asyncio.create_task(bench.queue.run(bench.work, 2))
    await settle()
    await bench.clock.advance(3.0)
    values = bench.values()
    assert values[f"workqueue_depth{OF_QUEUE}"] == 1
    assert values[f"workqueue_unfinished_work_seconds{OF_QUEUE}"] == 6
    assert values[f"workqueue_longest_running_processor_seconds{OF_QUEUE}"] == 3
    assert values['controller_runtime_active_workers{controller="gang"}'] == 2
    bench.go_on.set()
    await settle()
    values = bench.values()
    assert values[f"workqueue_queue_duration_seconds_sum{OF_QUEUE}"] == 2 + 2 + 5
    assert values[f"workqueue_work_duration_seconds_sum{OF_QUEUE}"] == 3 + 3
    assert (
        values['controller_runtime_reconcile_time_seconds_bucket{controller="gang",le="3.0"}'] == 3
    )
    assert values[f"workqueue_unfinished_work_seconds{OF_QUEUE}"] == 0
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


def test_a_bound_takes_in_what_is_as_long_as_it() -> None:
    timings = Timings((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 3.0):
        timings.note(seconds)
    assert timings.up_to() == [2, 3, 4]
    assert timings.total == 6.0


def test_calls_of_all_clients_are_summed_up() -> None:
    calls, one, other = Calls(), CallTally(), CallTally()
    for tally in (one, other):
        tally.answered("10.0.0.1:443", "GET", "200")
        calls.add(tally)
    other.answered("10.0.0.1:443", "PATCH", CallTally.LOST)
    form = 'rest_client_requests_total{{code="{}",host="10.0.0.1:443",method="{}"}}'
    assert families.values(written(calls)) == {
        form.format("200", "GET"): 2,
        form.format("<error>", "PATCH"): 1,
    }
