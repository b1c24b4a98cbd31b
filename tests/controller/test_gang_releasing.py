"""So many pods are under way as are bound in a few seconds, one gang after the other."""

from contextlib import suppress

from controller.gangs.releasing import AT_LEAST, SECONDS, Window
from tests.support.manualclock import ManualClock

ONE, TWO = ("default", "one"), ("default", "two")


class Hall:
    """A window, and whom it has woken."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.woken: list[tuple[str, str]] = []
        self.window = Window(self.clock, self.woken.append)

    def lift(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.window.lifted(f"pod-{number}")

    def bind(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.window.settled(f"pod-{number}", bound=True)


def test_no_more_are_lifted_than_the_window_holds() -> None:
    hall = Hall()
    assert hall.window.grant(ONE, AT_LEAST + 40) == AT_LEAST
    hall.lift(0, AT_LEAST)
    assert hall.window.grant(ONE, 40) == 0
    hall.clock.skip(SECONDS * 2)
    hall.window.settled("pod-0", bound=False)
    assert hall.woken == [ONE]
    assert hall.window.grant(ONE, 40) == 1


def test_who_stands_in_line_goes_first() -> None:
    hall = Hall()
    assert hall.window.grant(ONE, AT_LEAST + 1) == AT_LEAST
    hall.lift(0, AT_LEAST)
    assert hall.window.grant(TWO, 1) == 0
    hall.bind(0, 10)
    assert set(hall.woken) == {ONE}
    assert hall.window.grant(TWO, 1) == 0, "though there is room, it is not its turn"
    assert hall.window.grant(ONE, 1) == 1
    assert hall.woken[-1] == TWO
    assert hall.window.grant(TWO, 1) == 1


def test_a_gang_that_has_nothing_to_lift_any_more_lets_the_next_go() -> None:
    hall = Hall()
    hall.window.grant(ONE, AT_LEAST + 1)
    hall.lift(0, AT_LEAST - 1)
    assert hall.window.grant(TWO, 1) == 0
    hall.window.leave(ONE)
    assert hall.woken == [TWO]
    assert hall.window.grant(TWO, 1) == 1


def test_a_gang_whose_turn_ends_in_an_error_lets_the_next_go() -> None:
    hall = Hall()
    hall.window.grant(ONE, AT_LEAST + 1)
    hall.lift(0, AT_LEAST - 1)
    with suppress(OSError), hall.window.turn(ONE):
        raise OSError
    assert hall.window.grant(TWO, 1) == 1
    hall.window.grant(TWO, AT_LEAST)
    with hall.window.turn(TWO):
        pass
    assert hall.window.grant(ONE, 1) == 0, "who only waits keeps its place"


def test_a_fast_kube_scheduler_gets_more_at_a_time() -> None:
    hall = Hall()
    for start in range(0, 4 * AT_LEAST, AT_LEAST):
        hall.lift(start, AT_LEAST)
        hall.bind(start, AT_LEAST)
        hall.clock.skip(0.2)
    assert hall.window.grant(ONE, 10_000) == 4 * AT_LEAST
    hall.clock.skip(SECONDS)
    assert hall.window.grant(ONE, 10_000) == AT_LEAST


def test_the_estimate_grows_with_what_is_under_way() -> None:
    hall = Hall()
    slow = hall.window.seconds(100)
    hall.lift(0, 100)
    assert hall.window.seconds(100) == 2 * slow
    assert hall.window.seconds(0) == slow


def test_pods_that_were_lifted_by_others_do_not_count_unless_taken_over() -> None:
    hall = Hall()
    hall.window.settled("stranger", bound=True)
    assert hall.woken == []
    hall.window.inherit(["pod-0"])
    assert hall.window.grant(ONE, AT_LEAST) == AT_LEAST - 1
