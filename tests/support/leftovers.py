"""Labs of test runs that ended without taking them down, and how they are told from others'."""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterable

import psutil

from penstock.lab import cluster
from penstock.lab.errors import LabError
from penstock.lab.folders import Labs
from penstock.lab.progress import Silence

RUN = "PENSTOCK_TEST_RUN"  # the pid of the run's first process, which its workers inherit


def fresh_name() -> str:
    """A name that tells whose run the lab belongs to, and that no person uses."""
    return f"pytest-{os.environ[RUN]}-{secrets.token_hex(3)}"


def left_over(names: Iterable[str], alive: Callable[[int], bool], ending: int | None) -> list[str]:
    """Name the labs of runs that are over: their process is gone, or it is the one that ends."""
    found = []
    for name in names:
        kind, _, rest = name.partition("-")
        pid = rest.partition("-")[0]
        if kind == "pytest" and pid.isdigit() and (int(pid) == ending or not alive(int(pid))):
            found.append(name)
    return found


def sweep(ending: int | None = None) -> None:
    """Take left-over labs down."""
    for name in left_over(Labs.of(os.environ).names(), psutil.pid_exists, ending):
        try:
            asyncio.run(cluster.down(name, Silence()))
        except LabError as error:
            print(f"lab {name} could not be taken down: {error}")  # noqa: T201
