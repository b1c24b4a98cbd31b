import asyncio
import logging
import threading

import pytest

from webhook.background import Background


def test_duties_run_beside_the_caller_until_it_is_told_to_stop() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def duty() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    background = Background([duty, duty])
    background.start()
    assert begun.wait(10)
    assert not ended.is_set()
    background.stop()
    assert ended.is_set()
    assert not background._thread.is_alive()


def test_a_fault_in_one_duty_is_logged_and_leaves_the_others_at_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps: list[int] = []
    enough = threading.Event()

    async def broken() -> None:
        raise ZeroDivisionError

    async def steady() -> None:
        while True:
            steps.append(1)
            if "ZeroDivisionError" in caplog.text and len(steps) > 3:
                enough.set()
            await asyncio.sleep(0.001)

    with caplog.at_level(logging.ERROR):
        background = Background([broken, steady])
        background.start()
        assert enough.wait(10)
        background.stop()


def test_stopping_what_has_nothing_to_do_is_quick() -> None:
    background = Background([])
    background.start()
    background.stop()
    assert not background._thread.is_alive()
