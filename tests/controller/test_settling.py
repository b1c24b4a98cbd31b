"""What still changes is said when it has stood for a moment, and never later than it may be."""

from collections.abc import Mapping

import pytest

from controller.workloads.acting import ident
from controller.workloads.settling import EACH, STOOD, Settling
from controller.workloads.stepping import Say
from kube.resources import PODCLIQUES

KEY = ("space", "demo")


@pytest.fixture
def settling() -> Settling:
    return Settling()


def words(ready: int, patience: float = 10.0, name: str = "demo-0-a") -> Say:
    told: Mapping[str, object] = {"readyReplicas": ready}
    return Say(PODCLIQUES, name, f"uid-{name}", {"readyReplicas": ready}, told, patience)


def test_words_are_said_once_they_have_stood_for_a_moment(settling: Settling) -> None:
    assert settling.left(KEY, words(1), 10.0) == STOOD
    assert settling.left(KEY, words(1), 10.25) == STOOD - 0.25
    assert settling.left(KEY, words(2), 10.5) == STOOD
    assert settling.left(KEY, words(2), 10.5 + STOOD) == 0.0


def test_words_that_change_all_the_time_wait_for_as_long_as_they_may(settling: Settling) -> None:
    waits = [settling.left(KEY, words(second), float(second)) for second in range(11)]
    assert waits == [STOOD] * 10 + [0.0]


def test_pressing_words_wait_for_nothing(settling: Settling) -> None:
    assert settling.left(KEY, words(1), 10.0) == STOOD
    assert settling.left(KEY, words(2, 0.0), 10.0) == 0.0


def test_what_is_said_next_waits_anew(settling: Settling) -> None:
    settling.left(KEY, words(1), 0.0)
    settling.said(KEY, words(1))
    assert settling.left(KEY, words(2), 9.5) == STOOD
    assert settling.left(KEY, words(3), 10.0) == STOOD


def test_what_is_to_be_said_no_more_is_forgotten_and_the_rest_is_not(settling: Settling) -> None:
    other = words(1, name="demo-0-b")
    settling.left(KEY, words(1), 0.0)
    settling.left(KEY, other, 0.0)
    settling.keep(KEY, {ident(other)})
    assert settling.left(KEY, words(1), STOOD) == STOOD
    assert settling.left(KEY, other, STOOD) == 0.0
    settling.keep(KEY, set())
    assert settling.left(KEY, other, STOOD) == STOOD


def test_what_waited_for_others_for_long_is_not_kept_waiting_again(settling: Settling) -> None:
    settling.stood(KEY)
    assert settling.left(KEY, words(1), 10.0) == 0.0
    settling.keep(KEY, {ident(words(1))})
    assert settling.left(KEY, words(2), 10.0) == STOOD


def test_the_more_sets_have_something_to_say_the_longer_it_must_have_stood(
    settling: Settling,
) -> None:
    for number in range(10):
        settling.left(("space", f"other-{number}"), words(1), 0.0)
    assert settling.left(KEY, words(1), 0.0) == STOOD + 10 * EACH
    for number in range(10):
        settling.forget(("space", f"other-{number}"))
    assert settling.left(KEY, words(1), 0.0) == STOOD
