import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.workqueue import Workqueue
from tests.support.manualclock import ManualClock, settle
from tests.support.quiet import quietly

Worker = Callable[[str], Awaitable[None]]


class Bench:
    """A worker whose jobs last until the test ends them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.running: dict[str, asyncio.Future[None]] = {}

    async def work(self, key: str) -> None:
        assert key not in self.running, f"{key} is worked on twice at once"
        self.begun.append(key)
        self.running[key] = asyncio.get_running_loop().create_future()
        try:
            await self.running[key]
        finally:
            del self.running[key]

    async def finish(self, key: str, error: Exception | None = None) -> None:
        if error:
            self.running[key].set_exception(error)
        else:
            self.running[key].set_result(None)
        await settle()


@asynccontextmanager
async def working(
    queue: Workqueue[str], worker: Worker, concurrency: int = 1
) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(worker, concurrency))
    await settle()
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_key_waiting_twice_is_worked_on_once() -> None:
    queue, bench = Workqueue[str](ManualClock()), Bench()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert len(queue) == 2
    async with working(queue, bench.work):
        await bench.finish("a")
        await bench.finish("b")
        assert bench.begun == ["a", "b"]
        assert len(queue) == 0


async def test_a_key_added_while_worked_on_runs_once_more_afterwards_and_not_beside() -> None:
    queue, bench = Workqueue[str](ManualClock()), Bench()
    async with working(queue, bench.work, concurrency=3):
        queue.add("a")
        await settle()
        queue.add("a")
        queue.add("a")
        await settle()
        assert bench.begun == ["a"]
        await bench.finish("a")
        assert bench.begun == ["a", "a"]
        await bench.finish("a")
        assert bench.begun == ["a", "a"]


async def test_different_keys_run_side_by_side_up_to_the_limit() -> None:
    queue, bench = Workqueue[str](ManualClock()), Bench()
    async with working(queue, bench.work, concurrency=2):
        for key in "abc":
            queue.add(key)
        await settle()
        assert bench.begun == ["a", "b"]
        await bench.finish("b")
        assert bench.begun == ["a", "b", "c"]


async def test_a_long_line_of_quick_work_leaves_others_their_turn() -> None:
    queue: Workqueue[str] = Workqueue(ManualClock())
    done: list[str] = []
    turns: list[int] = []

    async def work(key: str) -> None:
        done.append(key)

    async def turn() -> None:
        while len(done) < 1_000:
            turns.append(len(done))
            await asyncio.sleep(0)

    for number in range(1_000):
        queue.add(str(number))
    running = asyncio.create_task(queue.run(work, 4))
    await turn()
    running.cancel()
    assert len(turns) > 100


async def test_delayed_keys_wait_and_of_two_wishes_the_earlier_counts() -> None:
    clock, seen = ManualClock(), list[str]()
    queue = Workqueue[str](clock)

    async def work(key: str) -> None:
        seen.append(key)

    async with working(queue, work):
        queue.add_after("a", 10)
        queue.add_after("a", 3)
        queue.add_after("a", 5)
        queue.add_after("b", 4)
        queue.add_after("now", 0)
        await clock.advance(2.9)
        assert seen == ["now"]
        await clock.advance(0.2)
        assert seen == ["now", "a"]
        await clock.advance(100)
        assert seen == ["now", "a", "b"]


async def test_keys_delayed_before_the_run_are_not_lost() -> None:
    clock, bench = ManualClock(), Bench()
    queue = Workqueue[str](clock)
    queue.add_after("a", 5)
    async with working(queue, bench.work):
        await clock.advance(5)
        assert bench.begun == ["a"]


async def test_a_failing_worker_is_logged_and_retried_ever_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, at = ManualClock(), list[float]()
    queue, start = Workqueue[str](clock), clock.monotonic()

    async def work(_: str) -> None:
        at.append(round(clock.monotonic() - start, 3))
        raise ValueError("broken on purpose")

    async with working(queue, work):
        queue.add("a")
        await clock.advance(0.1)
    assert at == [0, 0.005, 0.015, 0.035, 0.075]
    assert "work on a failed" in caplog.text
    assert "broken on purpose" in caplog.text
    assert "Traceback" in caplog.text


def test_waits_double_up_to_a_limit_until_forgotten() -> None:
    queue = Workqueue[str](ManualClock())
    waits = [queue.retry("a") for _ in range(2000)]
    assert waits[:3] == [0.005, 0.01, 0.02]
    assert waits[15] == pytest.approx(163.84)
    assert waits[16:] == [300.0] * 1984
    queue.forget("a")
    assert queue.retry("a") == 0.005


async def test_success_makes_the_next_retry_quick_again() -> None:
    clock = ManualClock()
    queue = Workqueue[str](clock)
    fail = [True, True, False]

    async def work(_: str) -> None:
        if fail.pop(0):
            raise ValueError

    async with working(queue, work):
        queue.add("a")
        await clock.advance(1)
    assert fail == []
    assert queue.retry("a") == 0.005


async def test_a_worker_that_asks_for_a_retry_keeps_its_growing_waits() -> None:
    clock, waits = ManualClock(), list[float]()
    queue = Workqueue[str](clock)

    async def work(key: str) -> None:
        waits.append(queue.retry(key))

    async with working(queue, work):
        queue.add("a")
        await clock.advance(0.03)
    assert waits[:3] == [0.005, 0.01, 0.02]


async def test_a_key_whose_worker_is_cancelled_is_there_for_the_next_run() -> None:
    queue, bench = Workqueue[str](ManualClock()), Bench()
    async with working(queue, bench.work):
        queue.add("a")
        await settle()
        assert bench.begun == ["a"]
    assert len(queue) == 1
    async with working(queue, bench.work):
        await bench.finish("a")
    assert bench.begun == ["a", "a"]
    assert len(queue) == 0


async def test_a_cancellation_inside_the_worker_does_not_shrink_the_pool() -> None:
    clock, seen = ManualClock(), list[str]()
    queue = Workqueue[str](clock)

    async def work(key: str) -> None:
        seen.append(key)
        if seen == ["a"]:
            inner = asyncio.get_running_loop().create_future()
            inner.cancel()
            await inner

    async with working(queue, work):
        queue.add("a")
        await clock.advance(0.01)
        queue.add("b")
        await settle()
    assert seen == ["a", "a", "b"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc")),
        st.tuples(st.just("later"), st.sampled_from("abc")),
        st.tuples(st.just("finish"), st.sampled_from("abc")),
        st.tuples(st.just("fail"), st.sampled_from("abc")),
        st.tuples(st.just("tick"), st.just("")),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(steps=steps, concurrency=st.integers(1, 3))
async def test_no_key_is_lost_or_doubled_whatever_happens(
    steps: list[tuple[str, str]], concurrency: int
) -> None:
    """Bench refuses doubles; here: every wish is followed by a beginning of work on its key."""
    clock, bench = ManualClock(), Bench()
    queue = Workqueue[str](clock)
    owed: dict[str, int] = {}  # how much work on the key had begun when it was last wished for
    async with quietly(), working(queue, bench.work, concurrency):
        for what, key in steps:
            count = Counter(bench.begun)[key]
            if what == "add":
                queue.add(key)
                owed[key] = count
            elif what == "later":
                queue.add_after(key, 1.0)
                owed[key] = count
            elif what == "finish" and key in bench.running:
                await bench.finish(key)
            elif what == "fail" and key in bench.running:
                await bench.finish(key, ValueError("no"))
                owed[key] = max(count, owed.get(key, 0))
            else:
                await clock.advance(0.4)
            await settle()
        for _ in range(40):
            await clock.advance(50)
            for key in list(bench.running):
                await bench.finish(key)
        begun = Counter(bench.begun)
        assert all(begun[key] > count for key, count in owed.items())
        assert bench.running == {}
        assert len(queue) == 0
