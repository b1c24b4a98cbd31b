"""A lab of a test's own, in which nothing of Penstock ever was."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kube.clock import SystemClock
from penstock.lab import cluster
from penstock.lab.install import stop
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.support.leftovers import fresh_name


@contextmanager
def untouched() -> Iterator[Lab]:
    """Bring one up, of eight nodes; in the end nothing of it is left, nor of what was installed."""
    screen = Screen(sys.stderr, SystemClock(), live=False)
    spec = LabSpec(fresh_name(), nodes=8, gpus=8, topology="zone=2,rack=2")
    lab = asyncio.run(cluster.up(spec, screen))
    try:
        yield lab
    finally:
        stop(lab.directory)
        asyncio.run(cluster.down(spec.name, screen))
