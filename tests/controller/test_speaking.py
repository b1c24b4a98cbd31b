"""Words about a set wait for others that are at work, but never for long."""

import pytest

from controller.workloads.speaking import CALM, Speaking

ME = ("space", "me")
OTHER = ("space", "other")


@pytest.fixture
def speaking() -> Speaking:
    return Speaking()


def said(speaking: Speaking, now: float, *, busy: bool = False) -> bool:
    return not speaking.waits(ME, now) and speaking.may(ME, now, busy=busy)


def works(speaking: Speaking, begun: float, ended: float) -> None:
    """Another set is being made meanwhile."""
    with speaking.working(OTHER, busy=True):
        pass
    speaking.worked(OTHER, begun, ended, busy=True)


def test_a_set_that_is_alone_is_spoken_of_at_once(speaking: Speaking) -> None:
    assert said(speaking, 10.0)
    assert said(speaking, 10.001)
    assert not speaking.holds


def test_while_a_set_is_made_it_is_spoken_of_once_a_second(speaking: Speaking) -> None:
    assert not said(speaking, 10.0, busy=True)
    assert not said(speaking, 10.9, busy=True)
    assert said(speaking, 11.0, busy=True)
    assert not said(speaking, 11.1, busy=True)
    assert said(speaking, 11.2)


def test_what_took_long_is_not_spoken_of_again_before_that_long(speaking: Speaking) -> None:
    assert not said(speaking, 10.0, busy=True)
    assert said(speaking, 11.0, busy=True)
    speaking.worked(ME, 11.0, 15.0, busy=True)
    assert not said(speaking, 18.9, busy=True)
    assert said(speaking, 19.0, busy=True)


def test_words_wait_while_another_set_is_being_made(speaking: Speaking) -> None:
    with speaking.working(OTHER, busy=True):
        assert not said(speaking, 10.0)
        assert speaking.let_speak(11.0) == []
    speaking.worked(OTHER, 10.0, 12.0, busy=True)
    assert speaking.let_speak(12.0 + CALM / 2) == []
    assert speaking.let_speak(12.0 + CALM) == [ME]
    assert said(speaking, 12.0 + CALM)
    assert not speaking.holds


def test_what_is_pressing_waits_for_nobody_and_is_asked_only_where_it_would(
    speaking: Speaking,
) -> None:
    asked: list[float] = []

    def pressing() -> bool:
        asked.append(10.0)
        return True

    assert not speaking.waits(ME, 9.0, pressing)
    assert not asked
    with speaking.working(OTHER, busy=True):
        assert speaking.waits(ME, 10.0)
        assert not speaking.waits(ME, 10.0, pressing)
    assert asked
    assert not speaking.holds


def test_what_others_say_holds_nobody_up(speaking: Speaking) -> None:
    with speaking.working(OTHER, busy=False):
        assert said(speaking, 10.0)
    speaking.worked(OTHER, 10.0, 11.0, busy=False)
    assert said(speaking, 11.0)


def test_a_sets_own_work_holds_up_nothing_that_is_said_after_it(speaking: Speaking) -> None:
    speaking.worked(ME, 9.0, 10.0, busy=True)
    assert said(speaking, 10.0)


def test_of_two_that_work_in_turns_each_waits_for_the_other(speaking: Speaking) -> None:
    works(speaking, 9.0, 10.0)
    speaking.worked(ME, 9.0, 10.1, busy=True)
    assert not said(speaking, 10.1)


def test_when_others_work_for_long_one_at_a_time_is_let_speak_in_its_turn(
    speaking: Speaking,
) -> None:
    names = [("space", str(each)) for each in range(4)]
    with speaking.working(OTHER, busy=True):
        for name in names:
            assert speaking.waits(name, 10.0)
        assert speaking.let_speak(19.9) == []
        assert not speaking.is_let(names[0])
        assert speaking.let_speak(20.0) == names[:1]
        assert [speaking.is_let(name) for name in names] == [True, False, False, False]
        assert [speaking.waits(name, 20.0) for name in names] == [False, True, True, True]
        # Who has spoken waits anew, behind the others.
        assert not speaking.is_let(names[0])
        assert speaking.waits(names[0], 20.1)
        assert speaking.let_speak(20.25) == names[1:2]
        assert speaking.let_speak(20.5) == names[1:2]


def test_however_many_wait_and_however_long_others_work_all_are_let_speak_in_the_end(
    speaking: Speaking,
) -> None:
    names = [("space", str(each)) for each in range(100)]
    with speaking.working(OTHER, busy=True):
        for name in names:
            assert speaking.waits(name, 10.0)
        assert len(speaking.let_speak(39.9)) == 1
        assert speaking.let_speak(40.0) == names


def test_a_set_that_is_gone_waits_for_nobody(speaking: Speaking) -> None:
    with speaking.working(OTHER, busy=True):
        assert not said(speaking, 10.0)
    speaking.forget(ME)
    assert not speaking.holds


def test_work_that_fails_holds_nobody_up(speaking: Speaking) -> None:
    with pytest.raises(OSError, match="away"), speaking.working(OTHER, busy=True):
        raise OSError("away")
    assert said(speaking, 10.0)
