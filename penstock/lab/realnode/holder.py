"""The first process of a real node's namespaces: furnishes them, then keeps the daemons running.

When it ends, the kernel ends every process in its namespace of processes, and with the last of
them go mounts, network devices and packet rules. It is started by the warden and never returns.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from penstock.lab.realnode.places import Places
from penstock.lab.realnode.planning import Daemon, Plan

POLL_SECONDS: Final = 0.1
PAUSE_SECONDS: Final = 1.0


def hold(plan: Plan) -> None:
    """Furnish the namespaces and run the daemons for ever; raises CalledProcessError."""
    for command in plan.furnish:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)  # noqa: S603  from our plan
    Places(Path(plan.root)).ready.touch()
    running: dict[int, Daemon] = {}
    pauses: dict[str, float] = {}
    while True:
        for pid in reaped():
            ended = running.pop(pid, None)
            if ended is not None:
                say(f"{ended.name} ended; starting it again in {PAUSE_SECONDS:.0f} s")
                pauses[ended.name] = PAUSE_SECONDS
        alive = {daemon.name for daemon in running.values()}
        for daemon in plan.daemons:
            pauses[daemon.name] = pauses.get(daemon.name, 0.0) - POLL_SECONDS
            if daemon.name not in alive and pauses[daemon.name] <= 0 and _awaited(daemon):
                running[_start(daemon)] = daemon
        time.sleep(POLL_SECONDS)


def reaped() -> list[int]:
    """Return the children that have ended; orphans of the node become ours, too."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            found.append(pid)
    return found


def say(message: str) -> None:
    """Write a line to the log."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def _awaited(daemon: Daemon) -> bool:
    return Path(daemon.waits_for).exists()


def _start(daemon: Daemon) -> int:
    log = Path(daemon.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"starting {daemon.name}")
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603  from our plan
            daemon.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    process.returncode = 0  # we reap all children ourselves: nobody is to wait for this one
    return process.pid
