"""A lab's webhooks restarted one after the other, or all gone at once and back again."""

import asyncio
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from kube.resources import PODCLIQUESETS
from penstock.lab import daemons, processes
from penstock.lab.balancer import https_readyz
from penstock.lab.installation import Installation
from penstock.lab.ports import LOOPBACK
from tests.support.asking import DRY_RUN, Asker, Seen
from tests.support.living import engine_set

READY_SECONDS: Final = 30.0
GANGS_SECONDS: Final = 20.0
RECOVERY_SECONDS: Final = 50.0  # it takes two or three, and the budget is ten


def webhooks(installation: Installation) -> Sequence[str]:
    """Name the components that answer reviews."""
    return [name for name in installation.settings.components() if name.startswith("webhook")]


def roll(installation: Installation) -> None:
    """Restart every webhook once, as a Deployment would."""
    for name in webhooks(installation):
        before = installation.pid(name)
        installation.stop_component(name)
        installation.start_component(name)
        _await_ready(installation, name)
        assert installation.pid(name) != before, f"{name} was not restarted"


def _await_ready(installation: Installation, name: str) -> None:
    """Return as soon as it says that it is ready; whoever balances learns it by itself."""
    end = time.perf_counter() + READY_SECONDS
    while not asyncio.run(https_readyz(LOOPBACK, _port(installation, name))):
        assert time.perf_counter() < end, f"{name} is not ready after {READY_SECONDS:.0f} s"
        time.sleep(0.05)


def _port(installation: Installation, name: str) -> int:
    """Where it listens; 0, where nobody does, while it has not begun."""
    record = processes.read_record(installation.layout.record(name))
    arguments = daemons.command_line(record) if record else []
    return int(arguments[arguments.index("--port") + 1]) if "--port" in arguments else 0


@contextmanager
def stopped(installation: Installation) -> Iterator[None]:
    """Kill every webhook and keep them dead for as long as the context lasts."""
    names = webhooks(installation)
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(installation.kill_component, names))
        try:
            yield
        finally:
            list(pool.map(installation.start_component, names))


def recovered(asker: Asker, space: str) -> float:
    """Wait until a set is admitted; returns how many seconds that took."""
    begun = time.perf_counter()
    while not (seen := ask_for_a_set(asker, space)).done:
        assert time.perf_counter() < begun + RECOVERY_SECONDS, seen.message
        time.sleep(0.05)
    return time.perf_counter() - begun


def ask_for_a_set(asker: Asker, space: str) -> Seen:
    """Create a set; a dry run."""
    body = engine_set("asked", pods=1, gpus=1)
    return asker.ask("POST", PODCLIQUESETS.path(space) + DRY_RUN, body)


@contextmanager
def hasty_gangs(installation: Installation, *flags: str) -> Iterator[None]:
    """Run `gangs` as the lab does, but with further flags, for as long as the context lasts."""
    record = processes.read_record(installation.layout.record("gangs"))
    assert record, "gangs does not run"
    command = daemons.command_line(record)
    installation.stop_component("gangs")
    try:
        with installation.log("gangs").open("ab") as log:
            process = subprocess.Popen([*command, *flags], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(GANGS_SECONDS)
    finally:
        installation.start_component("gangs")
