"""What every test run does before its first and after its last test."""

import os

import hypothesis
import pytest

from tests.support import leftovers

# What is drawn by chance is drawn often only where there is time for it (make test-long).
# How long it takes to draw an input says more of a machine that others use than of the test.
_CHECKS = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("soon", max_examples=30, suppress_health_check=_CHECKS)
hypothesis.settings.register_profile("long", max_examples=500, suppress_health_check=_CHECKS)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "soon"))


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not is_worker(config):
        os.environ[leftovers.RUN] = str(os.getpid())
        leftovers.sweep()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what waits for a control plane: what only computes fills the gaps at the end."""
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Workers that are stopped in the middle take nothing down, so the run's first process does."""
    if not is_worker(session.config):
        leftovers.sweep(ending=os.getpid())
