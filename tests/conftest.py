"""What every test run does before its first and after its last test."""

import gc
import os
from collections.abc import Generator

import hypothesis
import pytest
from typing_extensions import override
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support import leftovers

# These need a second lab. Who runs one of them runs them all, so that there is only one such lab.
IN_THE_OTHER_LAB = tuple(
    f"tests/cluster/test_{name}.py" for name in ("crds", "lab", "process_ends")
)

# What is drawn by chance is drawn often only where there is time for it (make test-long), and only
# there differently each time: a change must not fail for an input that it has nothing to do with.
# How long it takes to draw an input says more of a machine that others use than of the test.
_CHECKS = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "soon", max_examples=30, derandomize=True, suppress_health_check=_CHECKS
)
hypothesis.settings.register_profile("long", max_examples=500, suppress_health_check=_CHECKS)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "soon"))


class ByLab(LoadFileScheduling):  # type: ignore[misc]
    """Leaves the tests of a file together, and those of all files that need the second lab."""

    @override
    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "the other lab" if file in IN_THE_OTHER_LAB else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByLab | None:
    return ByLab(config, log) if config.getvalue("dist") == "loadfile" else None


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not is_worker(config):
        os.environ[leftovers.RUN] = str(os.getpid())
        # Control planes of tests live for minutes: let them take memory rather than collect it.
        os.environ.setdefault("GOGC", "200")
        leftovers.sweep()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what waits for a control plane: what only computes fills the gaps at the end."""
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)
    for item in items:
        if config.getoption("no_cov", default=False):
            # pytest-cov trips over the mark where both --cov and --no-cov are given.
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "no_cover"]
        elif is_repetitive(item):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All that is collected stays to the end: let no collection of garbage look through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def is_repetitive(item: pytest.Item) -> bool:
    """Whether a test runs the same lines over and over, or waits for other processes.

    To trace them more than doubles what they cost, and all they run has tests of its own.
    """
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return drawn or item.get_closest_marker("cluster") is not None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Workers that are stopped in the middle take nothing down, so the run's first process does."""
    if not is_worker(session.config):
        leftovers.sweep(ending=os.getpid())
