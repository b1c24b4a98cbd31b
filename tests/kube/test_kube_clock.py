import asyncio
from datetime import UTC

import pytest

from kube.clock import SystemClock
from tests.support.manualclock import ManualClock


async def test_system_clock_tells_utc_and_never_runs_backwards() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.009


async def test_negative_sleep_is_no_sleep() -> None:
    await SystemClock().sleep(-5)


async def test_manual_clock_wakes_sleepers_in_order_each_at_its_instant() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []
    start = clock.monotonic()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic() - start))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 7))
        group.create_task(sleeper("early", 3))
        await clock.advance(5)
        assert woken == [("early", 3)]
        await clock.advance(5)
    assert woken == [("early", 3), ("late", 7)]
    assert clock.monotonic() - start == pytest.approx(10)
