"""One component of Penstock as a child process: started, watched, started again after pauses."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from api import exits
from penstock.lab import processes

POLL_SECONDS = 0.1
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0
STEADY_SECONDS = 30.0
STOP_SECONDS = 8.0
PR_SET_PDEATHSIG = 1

MEANINGS: Mapping[int, str] = {
    exits.OK: "it was asked to stop",
    exits.BAD_SETTINGS: "its settings are wrong",
    exits.NO_API_SERVER: "no API server answers",
    exits.BAD_CREDENTIALS: "its credentials or rights are not enough",
    exits.MISSING_KIND: "a CustomResourceDefinition is missing",
    exits.NO_CERTIFICATE: "its TLS files are missing or do not fit",
    exits.LOST_LEASE: "another one leads",
    exits.PORT_TAKEN: "its port is taken",
    exits.BAD_POLICY: "its policy cannot be read",
}


def pause_after(failures: int) -> float:
    """Return how long to wait before the next start, after this many ends in short succession."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 16))


def describe_end(code: int) -> str:
    """Say in words how a process ended."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    meaning = MEANINGS.get(code)
    return f"ended with code {code}" + (f" ({meaning})" if meaning else "")


@dataclass(frozen=True)
class Component:
    """What to run, and where its marks are left."""

    name: str
    command: Callable[[], Sequence[str]]
    """Makes the command line anew for each start, since a webhook moves to a new port each time."""
    log: Path
    record: Path
    hold: Path
    """While this file exists the component is kept stopped."""


@dataclass(frozen=True)
class Events:
    """What the supervisor tells while it works."""

    say: Callable[[str], None]
    ended: Callable[[str, int], None]
    """Told each end: the component's name and exit code (negative: the signal)."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs one of our modules with this Python.

    -P keeps the working directory out of the import path: a folder there could pass for ours.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


async def supervise(component: Component, events: Events) -> None:
    """Run the component until cancelled; when cancelled, end it and return only when it is gone."""
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        await _until(lambda: not component.hold.exists())
        started = loop.time()
        process = await _start(component)
        try:
            await _until_ended_or_held(process, component.hold)
        finally:
            code = await asyncio.shield(_end(process, component))
            events.ended(component.name, code)
        if component.hold.exists():
            events.say(f"{component.name} is held stopped")
            failures = 0
            continue
        failures = failures + 1 if loop.time() - started < STEADY_SECONDS else 1
        pause = pause_after(failures)
        events.say(f"{component.name} {describe_end(code)}; starting it again in {pause:.2g} s")
        await asyncio.sleep(pause)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (what is waited for is a file that others make)
        await asyncio.sleep(POLL_SECONDS)


async def _until_ended_or_held(process: asyncio.subprocess.Process, hold: Path) -> None:
    ended = asyncio.create_task(process.wait())
    held = asyncio.create_task(_until(hold.exists))
    try:
        await asyncio.wait((ended, held), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()
        held.cancel()


async def _start(component: Component) -> asyncio.subprocess.Process:
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def die_with_the_keeper() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGTERM)

    with component.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *component.command(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=component.log.parent,
            start_new_session=True,
            preexec_fn=die_with_the_keeper if sys.platform == "linux" else None,
        )
    record = processes.record_of(process.pid)
    if record is not None:
        processes.write_record(component.record, record)
    return process


async def _end(process: asyncio.subprocess.Process, component: Component) -> int:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    code = await process.wait()
    record = processes.read_record(component.record)
    if record is not None and record.pid == process.pid:
        processes.kill_group(record)
        component.record.unlink(missing_ok=True)
    return code
