"""A look that took long is followed by a rest; others come at once."""

from controller.resting import IDLE, LATELY, LONGEST_IN_CROWD, REST, SHORT_LOOK, Rests
from kube.objects import Key
from kube.workqueue import Workqueue
from tests.support.manualclock import ManualClock

KEY = ("default", "demo")
LONG = SHORT_LOOK * 10


def looked(seconds: float) -> tuple[Workqueue[Key], Rests, ManualClock]:
    """Rests of a key that was looked at for so long."""
    clock = ManualClock()
    queue = Workqueue[Key](clock)
    rests = Rests(queue, clock)
    begun = clock.monotonic()
    clock.skip(seconds)
    rests.looked(KEY, begun)
    return queue, rests, clock


def test_a_short_look_is_followed_by_the_next_at_once() -> None:
    queue, rests, _ = looked(SHORT_LOOK / 2)
    rests.wake(KEY)
    assert len(queue) == 1


def test_a_long_look_is_followed_by_a_rest_in_proportion() -> None:
    queue, rests, clock = looked(LONG)
    rests.wake(KEY)
    assert len(queue) == 0, "whoever is told piece by piece waits for more"
    clock.skip(LONG * REST * 1.01)
    rests.wake(KEY)
    assert len(queue) == 1


def test_one_that_found_something_to_do_needs_no_rest() -> None:
    queue, rests, _ = looked(LONG)
    rests.forget(KEY)
    rests.wake(KEY)
    assert len(queue) == 1


def test_other_keys_do_not_rest() -> None:
    queue, rests, _ = looked(LONG)
    rests.wake(("default", "other"))
    assert len(queue) == 1


def crowd(others: int, *, idle: bool = False) -> tuple[Workqueue[Key], Rests, ManualClock]:
    """Rests of a key that was looked at briefly, after so many others."""
    clock = ManualClock()
    queue = Workqueue[Key](clock)
    rests = Rests(queue, clock, 0.01)
    for number in range(others):
        rests.looked(("default", f"other-{number}"), clock.monotonic())
    rests.looked(KEY, clock.monotonic(), idle=idle)
    return queue, rests, clock


def test_in_a_crowd_who_has_nothing_to_do_rests_longer_and_alone_not_at_all() -> None:
    queue, rests, clock = crowd(others=10, idle=True)
    clock.skip(0.101)
    rests.wake(KEY)
    assert len(queue) == 0, "it waits for the last of its pods, and each of them is told of"
    clock.skip(0.1 * (IDLE - 1.0))
    rests.wake(KEY)
    assert len(queue) == 1
    queue, rests, clock = crowd(others=0, idle=True)
    rests.wake(KEY)
    assert len(queue) == 1


def test_in_a_crowd_each_rests_for_the_others() -> None:
    queue, rests, clock = crowd(others=10)
    rests.wake(KEY)
    assert len(queue) == 0, "its pods are told of one by one, and one look does for several"
    clock.skip(0.101)
    rests.wake(KEY)
    assert len(queue) == 1


def test_who_is_alone_rests_for_nobody_and_soon_forgets_the_others() -> None:
    queue, rests, clock = crowd(others=0)
    rests.wake(KEY)
    assert len(queue) == 1
    queue, rests, clock = crowd(others=10)
    clock.skip(LATELY)
    rests.looked(KEY, clock.monotonic())
    rests.wake(KEY)
    assert len(queue) == 1


def test_nobody_rests_for_long_in_the_largest_crowd() -> None:
    for idle, longest in ((False, LONGEST_IN_CROWD), (True, IDLE * LONGEST_IN_CROWD)):
        queue, rests, clock = crowd(others=1000, idle=idle)
        clock.skip(longest * 0.99)
        rests.wake(KEY)
        assert len(queue) == 0
        clock.skip(longest * 0.02)
        rests.wake(KEY)
        assert len(queue) == 1
