import threading

import pytest

from kube.clock import SystemClock
from webhook import deadlines
from webhook.turnstile import MOST_WAITING, SMALL, Turnstile

GREAT = SMALL + 1


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("timeout=5s", 4.0),
        ("timeout=30s", 29.0),
        ("a=b&timeout=3s", 2.0),
        ("timeout=3s&a=b", 2.0),
        ("timeout=2.5s", 1.5),
        ("timeout=1s", 0.5),
        ("timeout=0s", 0.5),
        ("timeout=99999s", 29.0),
        ("", 9.0),
        ("timeout=", 9.0),
        ("timeout=5", 9.0),
        ("timeout=5ms", 9.0),
        ("timeout=-5s", 9.0),
        ("timeout=\u0665s", 9.0),
        ("timeout=nans", 9.0),
        ("mytimeout=3s", 9.0),
    ],
)
def test_the_deadline_leaves_a_second_for_the_way(query: str, seconds: float) -> None:
    assert deadlines.seconds(query) == seconds


def clock() -> float:
    return SystemClock().monotonic()


def test_only_so_many_are_let_in_at_once() -> None:
    gate = Turnstile(clock, at_once=2)
    assert gate.enter(clock() + 10, GREAT)
    assert gate.enter(clock() + 10, GREAT)
    assert not gate.enter(clock() + 0.01, GREAT)
    gate.leave(GREAT)
    assert gate.enter(clock() + 10, GREAT)


def test_who_waits_is_let_in_when_somebody_leaves() -> None:
    gate = Turnstile(clock, at_once=1)
    assert gate.enter(clock() + 10, GREAT)
    entered = threading.Event()

    def wait() -> None:
        if gate.enter(clock() + 10, GREAT):
            entered.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not entered.wait(0.02)
    gate.leave(GREAT)
    assert entered.wait(10)
    waiting.join()


def test_whose_time_is_over_is_not_let_in_though_there_is_room() -> None:
    gate = Turnstile(clock, at_once=1)
    assert not gate.enter(clock(), GREAT)
    assert gate.enter(clock() + 10, GREAT)


def test_small_ones_go_past_great_ones_while_there_is_time() -> None:
    gate = Turnstile(clock, at_once=1)
    assert gate.enter(clock() + 10, GREAT)
    for _ in range(MOST_WAITING):
        assert gate.enter(clock() + 10, SMALL)
    assert not gate.enter(clock(), SMALL)
    for _ in range(MOST_WAITING):
        gate.leave(SMALL)
    # None of them has given a place away that it never had.
    assert not gate.enter(clock() + 0.01, GREAT)


def test_the_line_has_an_end() -> None:
    gate = Turnstile(clock, at_once=1)
    assert gate.enter(clock() + 10, GREAT)
    threads = [
        threading.Thread(target=lambda: gate.enter(clock() + 10, GREAT))
        for _ in range(MOST_WAITING)
    ]
    for thread in threads:
        thread.start()
    end = clock() + 10
    # The last in the line turn away at once, whatever their time.
    while gate._waiting < MOST_WAITING:
        assert clock() < end
        threading.Event().wait(0.001)
    before = clock()
    assert not gate.enter(before + 30, GREAT)
    assert clock() - before < 10
    for _ in threads:
        gate.leave(GREAT)
    for thread in threads:
        thread.join()
