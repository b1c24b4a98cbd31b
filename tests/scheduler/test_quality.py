"""A slice of `make bench-quality`: what the exact model finds, the engine finds."""

import pytest

from tests.bench import quality_drawing, quality_engine, quality_trials
from tests.bench.quality_trials import Trial

SEED = 7
CASES = 20


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return [quality_trials.tried(SEED, number, limit=0.5) for number in range(CASES)]


@pytest.mark.no_cover
def test_no_plan_is_invalid_or_better_than_the_best_there_is(trials: list[Trial]) -> None:
    wrong = {"invalid", "impossible", "better-than-best"}
    assert [(t.number, t.failures, t.ours) for t in trials if wrong & set(t.failures)] == []


def test_what_can_be_placed_is_placed_unless_the_budget_was_exhausted(trials: list[Trial]) -> None:
    possible = [trial for trial in trials if trial.possible]
    assert len(possible) > CASES / 2
    assert [t.number for t in possible if not t.ours.placed and not t.ours.exhausted] == []
    assert sum(t.ours.placed for t in possible) >= len(possible) - 1


def test_whatever_first_fit_places_the_engine_places(trials: list[Trial]) -> None:
    assert [t.number for t in trials if t.peer.placed and not t.ours.placed] == []
    assert any(t.ours.placed and not t.peer.placed for t in trials)


def test_pods_are_as_near_one_another_as_they_can_be_within_three_percent(
    trials: list[Trial],
) -> None:
    closed = [trial for trial in trials if trial.closed and trial.ours.placed]
    assert sum(t.ours.score for t in closed) >= 0.97 * sum(t.best for t in closed)


def test_more_room_never_makes_a_gang_unplaceable(trials: list[Trial]) -> None:
    assert [trial.number for trial in trials if "lost-by-room" in trial.failures] == []


@pytest.mark.parametrize("number", [252, 1172, 1248])
def test_siblings_are_placed_that_fit_only_in_few_of_all_orders(number: int) -> None:
    # Filling cells from the widest down finds none of these, and first fit finds the last.
    assert quality_engine.ask(quality_drawing.draw(1, number)).placed
