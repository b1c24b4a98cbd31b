import asyncio
import io

import pytest

from penstock.lab.progress import Screen, duration, progress_line
from tests.support.manualclock import ManualClock, settle


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (60, "1 min 00 s"), (725, "12 min 05 s")],
)
def test_durations_read_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_estimate_is_shown_if_there_is_one() -> None:
    assert progress_line("Building etcd", 12, 30) == "Building etcd ... 12 s (usually 30 s)"
    assert progress_line("Building etcd", 12, None) == "Building etcd ... 12 s"


async def test_without_a_terminal_a_line_comes_every_fifteen_seconds() -> None:
    clock, stream = ManualClock(), io.StringIO()
    async with Screen(stream, clock, live=False).step("Building", 100):
        await clock.advance(31)
    assert stream.getvalue().splitlines() == [
        "Building ... 0.0 s (usually 1 min 40 s)",
        "Building ... 15 s (usually 1 min 40 s)",
        "Building ... 30 s (usually 1 min 40 s)",
        "Building: done in 31 s",
    ]


async def test_on_a_terminal_one_line_counts_every_second() -> None:
    clock, stream = ManualClock(), io.StringIO()
    async with Screen(stream, clock, live=True).step("Building", None):
        await clock.advance(2.5)
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown == [
        "",
        "Building ... 0.0 s",
        "Building ... 1.0 s",
        "Building ... 2.0 s",
        "Building: done in 2.5 s\n",
    ]


async def test_what_is_stopped_is_not_called_done() -> None:
    clock, stream = ManualClock(), io.StringIO()

    async def work() -> None:
        async with Screen(stream, clock, live=False).step("Building", None):
            await clock.sleep(100)

    task = asyncio.create_task(work())
    await clock.advance(5)
    task.cancel()
    await settle()
    assert stream.getvalue().endswith("Building: stopped after 5.0 s\n")
