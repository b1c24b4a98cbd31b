"""For how long devices are kept for gangs that do not run yet, and for nothing."""

from dataclasses import replace

import pytest

from api.reservation import State
from controller.gangs.accounting import Bound, Ledger, RolledBack, Spent, devices_of
from controller.gangs.views import Reservation
from tests.support.sets import reservation

KEY = ("default", "demo-0")
GPU = "nvidia.com/gpu"
PAIR = {("a", 0): "n0", ("a", 1): "n1"}


def booked(state: State, attempt: int = 0, message: str = "") -> Reservation:
    made = reservation(PAIR, state)
    return replace(
        made,
        spec=made.spec.model_copy(update={"attempt": attempt, "score": 0.5}),
        status=made.status.model_copy(update={"attempt": attempt, "message": message}),
    )


def test_devices_are_what_some_driver_offers() -> None:
    assert devices_of(booked(State.HELD)) == {GPU: 2}


def test_what_is_held_until_the_gang_is_bound_counts() -> None:
    ledger = Ledger()
    assert ledger.see(KEY, booked(State.HELD), 100.0) == (Spent(), None)
    spent, news = ledger.see(KEY, booked(State.LIFTING), 103.0)
    assert (spent, news) == (Spent({GPU: 6.0}), None)
    spent, news = ledger.see(KEY, booked(State.BOUND), 105.0)
    assert (spent, news) == (Spent({GPU: 4.0}), Bound(KEY, 5.0, 0.5))
    assert ledger.see(KEY, None, 900.0) == (Spent(), None)


def test_what_was_held_for_a_gang_that_is_rolled_back_was_wasted() -> None:
    ledger = Ledger()
    ledger.see(KEY, booked(State.HELD), 0.0)
    ledger.see(KEY, booked(State.LIFTING), 1.0)
    spent, news = ledger.see(KEY, booked(State.ROLLED_BACK, message="why"), 3.0)
    assert (spent, news) == (Spent({GPU: 4.0}, {GPU: 6.0}), RolledBack(KEY, "why"))
    assert ledger.see(KEY, booked(State.HELD, 1), 50.0) == (Spent(), None)
    spent, news = ledger.see(KEY, booked(State.BOUND, 1), 52.0)
    assert (spent, news) == (Spent({GPU: 4.0}), Bound(KEY, 2.0, 0.5))


@pytest.mark.parametrize("state", [State.HELD, State.LIFTING])
def test_what_was_held_by_a_reservation_that_goes_before_it_is_bound_was_wasted(
    state: State,
) -> None:
    ledger = Ledger()
    ledger.see(KEY, booked(state), 0.0)
    assert list(ledger.settle(2.0)) == [Spent({GPU: 4.0})]
    assert ledger.see(KEY, None, 3.0) == (Spent({GPU: 2.0}, {GPU: 6.0}), None)
    assert list(ledger.settle(9.0)) == []


def test_looking_often_counts_nothing_twice() -> None:
    ledger = Ledger()
    ledger.see(KEY, booked(State.HELD), 0.0)
    seen = [spent.held[GPU] for at in (1.0, 1.0, 4.0) for spent in ledger.settle(at)]
    assert seen == [2.0, 0.0, 6.0]


def test_a_gang_that_grows_after_it_was_bound_holds_nothing_for_long() -> None:
    ledger = Ledger()
    ledger.see(KEY, booked(State.BOUND), 0.0)
    assert ledger.see(KEY, booked(State.BOUND), 50.0) == (Spent(), None)


def test_a_reservation_that_is_seen_again_says_nothing_new() -> None:
    """As when everything is listed anew."""
    ledger = Ledger()
    ledger.see(KEY, booked(State.ROLLED_BACK), 0.0)
    assert ledger.see(KEY, booked(State.ROLLED_BACK), 1.0) == (Spent(), None)
