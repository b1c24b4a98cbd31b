"""Whatever happens to a set, what there is comes to be what its author asked for."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Life


def live(lives: int, steps: int, *phases: Phase) -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.no_cover
@pytest.mark.timeout(900)  # on cores that others use it takes minutes
def test_ten_lives_of_twenty_steps() -> None:
    """A failure is shown as it was found: to look for a shorter one takes minutes."""
    live(10, 20, Phase.generate)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_three_hundred_lives_of_thirty_steps() -> None:
    live(300, 30, Phase.generate, Phase.shrink)
