"""Running other programs so that none of them outlives its purpose."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

STOP_SECONDS: Final = 3.0
PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Finished:
    """A program that ended: its exit code and what it wrote, both streams as one text."""

    code: int
    output: str

    def last_lines(self, count: int) -> str:
        """Return the end of what it wrote, on one line."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return " | ".join(lines[-count:])


@dataclass(frozen=True)
class Command:
    """A program to run: its arguments, additions to the environment, and where."""

    arguments: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None


class Run(Protocol):
    """Runs a command to its end."""

    async def __call__(self, command: Command) -> Finished:
        """Return when it has ended; if cancelled, end it and everything it started first."""
        ...


async def run(command: Command) -> Finished:
    """Run a command in a process group of its own, which is killed whole on cancellation."""
    process = await asyncio.create_subprocess_exec(
        *command.arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **command.environ},
        cwd=command.cwd,
        start_new_session=True,
        preexec_fn=_die_with_us() if sys.platform == "linux" else None,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        await asyncio.shield(_end_group(process))
        raise
    return Finished(process.returncode or 0, output.decode(errors="replace"))


async def _end_group(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            # Not `communicate`: a grandchild may hold the pipe open.
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what its leader left behind


def _die_with_us() -> Callable[[], None]:
    """Return what the child does first: ask for SIGTERM when we die, even by SIGKILL."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # we died before the line above
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
