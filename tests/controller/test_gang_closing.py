"""The ledger of a gang that has arrived is closed at once, and in a crowd when that is over."""

import pytest

from api import names
from api.reservation import State
from controller.gangs.closing import CROWD, LATEST, PAUSE, Closings
from controller.gangs.deciding import Begin, Close, Evict, Lift, Step, Wait, has_started, next_step
from controller.gangs.reconciling import Reconciler
from tests.controller.test_gang_moving import booked, see
from tests.support import fakeapi
from tests.support.gangscene import KEY, bare, scene
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, gang, member, reservation, view

THERE = reservation({("a", 0): "n1"}, State.LIFTING)
BEGIN, CLOSE = Begin(THERE), Close(THERE)
ME = ("space", "me")
OTHERS = [("space", f"g{number}") for number in range(CROWD)]


def crowded(clock: LeapingClock, step: Step = BEGIN) -> Closings:
    closings = Closings(clock)
    for other in OTHERS:
        assert not closings.put_off(other, step)
    return closings


def test_it_is_closed_at_once_while_few_are_on_their_way() -> None:
    closings = crowded(LeapingClock())
    assert closings.put_off(ME, CLOSE) == PAUSE
    closings.forget(OTHERS[0])
    assert not closings.put_off(ME, CLOSE)


def test_in_a_crowd_it_is_put_off_and_no_longer_than_that() -> None:
    clock = LeapingClock()
    closings = crowded(clock)
    put_off = 0.0
    while wait := closings.put_off(ME, CLOSE):
        clock.skip(wait)
        put_off += wait
    assert put_off == LATEST


def test_the_time_counts_from_when_it_could_be_closed_last() -> None:
    """One that has lost a pod meanwhile arrives anew."""
    clock = LeapingClock()
    closings = crowded(clock)
    assert closings.put_off(ME, CLOSE)
    clock.skip(LATEST)
    closings.put_off(ME, Wait(names.REASON_WAITING_FOR_PODS))
    assert closings.put_off(ME, CLOSE) == PAUSE


@pytest.mark.parametrize(
    ("step", "crowd"),
    [
        (Lift(()), True),
        (Wait(names.REASON_LIFTING), True),
        (Wait(names.REASON_INSUFFICIENT), False),
        (Evict(()), False),
        (CLOSE, False),
    ],
)
def test_who_is_on_its_way(step: Step, *, crowd: bool) -> None:
    closings = crowded(LeapingClock())
    for other in OTHERS:
        closings.put_off(other, step)
    assert bool(closings.put_off(ME, CLOSE)) is crowd


def test_who_comes_after_a_gang_does_not_wait_until_its_ledger_is_closed() -> None:
    base = view(gang({"a": (1, 1)}), [member("a", 0, gated=False, node="n1")], THERE)
    assert isinstance(next_step(base, NOW), Close)
    assert has_started(base)


async def test_in_a_crowd_nothing_is_written_of_it_until_then() -> None:
    async with scene() as (s, api, client):
        clock = LeapingClock()
        reconciler = Reconciler(client, clock, s.caches, lambda: 1)
        for other in OTHERS:
            reconciler.closings.put_off(other, BEGIN)
        see(s, member("a", 0, gated=False, node="n1"), booked("n1", "1", State.LIFTING, 4))
        api.answers.append(fakeapi.json(bare("Reservation", "demo-0", 9)))
        await reconciler.reconcile(KEY)
        assert [seen.path for seen in api.seen if "/reservations/" in seen.path] == []
        clock.skip(LATEST)
        await reconciler.reconcile(KEY)
        assert "/reservations/demo-0/status" in api.seen[-1].path
