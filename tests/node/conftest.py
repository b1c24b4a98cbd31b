"""A lab with a real node for all of these tests; where none can be had, they say why."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from kube.clock import SystemClock
from penstock.lab import cluster as labs
from penstock.lab.progress import Screen
from penstock.lab.realnode import wanting
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.support.leftovers import fresh_name


@pytest.fixture(scope="session", autouse=True)
def possible() -> None:
    """Skip everything here, with the reason, where no real node can be had."""
    if (obstacle := wanting.obstacle()) is not None:
        pytest.skip(obstacle)


@pytest.fixture(scope="session")
def lab(possible: None) -> Iterator[Lab]:
    """A lab of one real node and a few pretend ones."""
    spec = LabSpec(fresh_name(), nodes=4, topology="rack=2", real_node=True)
    yield from while_up(spec)


@pytest.fixture
def another(possible: None) -> Iterator[Lab]:
    """A second such lab, for a test that breaks it."""
    yield from while_up(LabSpec(fresh_name(), nodes=1, topology="rack=1", real_node=True))


def while_up(spec: LabSpec) -> Iterator[Lab]:
    screen = Screen(sys.stderr, SystemClock(), live=False)
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))
