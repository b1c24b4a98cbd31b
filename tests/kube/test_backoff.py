import itertools

from hypothesis import given
from hypothesis import strategies as st

from kube.backoff import Backoff, BackoffSettings
from tests.support.chance import dice


@given(seed=st.integers(), failures=st.integers(1, 60))
def test_every_wait_lies_between_floor_and_ceiling(seed: int, failures: int) -> None:
    backoff = Backoff(BackoffSettings(), dice(seed))
    waits = [backoff.failed(float(n)) for n in range(failures)]
    assert all(0.5 <= wait <= 30 for wait in waits)
    assert waits[0] <= 1.5
    assert all(after <= 3 * before for before, after in itertools.pairwise(waits))


def test_waits_grow_while_nothing_works() -> None:
    backoff = Backoff(BackoffSettings(), dice(1))
    waits = [backoff.failed(0.0) for _ in range(40)]
    assert max(waits) > 10


def test_only_lasting_health_makes_the_next_wait_short() -> None:
    backoff = Backoff(BackoffSettings(), dice(1))
    for _ in range(40):
        backoff.failed(0.0)
    long = backoff.failed(0.0)
    backoff.succeeded(10.0)
    backoff.succeeded(129.0)  # a later success does not restart the count
    assert backoff.failed(130.0) <= 1.5
    assert long > 1.5


def test_a_short_spell_of_health_changes_nothing() -> None:
    settings = BackoffSettings(floor=1, ceiling=1000, health=120)
    well, never = Backoff(settings, dice(5)), Backoff(settings, dice(5))
    for _ in range(10):
        well.failed(0.0)
        never.failed(0.0)
    well.succeeded(1.0)
    assert well.failed(120.9) == never.failed(120.9)
