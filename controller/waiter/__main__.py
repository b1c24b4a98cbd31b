"""The init waiter: `python -m controller.waiter --help`. See docs/startup.md for its exit codes."""

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Sequence
from typing import Final

from api import exits
from controller.waiter import settings
from controller.waiter.settings import BadSettingsError, Settings
from controller.waiter.waiting import wait
from kube import logs
from kube.clock import SystemClock

# As a shell tells of a process that SIGTERM ended: its pod must not go on as if all were up.
STOPPED: Final = 128 + signal.SIGTERM


def main(arguments: Sequence[str]) -> int:
    """Wait until all are up; returns the exit code."""
    try:
        told = settings.parse(arguments, os.environ)
    except BadSettingsError as error:
        sys.stderr.write(f"waiter: {error}\n")
        return exits.BAD_SETTINGS
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s")
    logs.configure(told.log_format, "info", "waiter", text)
    logs.about("PodGang", told.namespace, told.gang)
    try:
        asyncio.run(_run(told))
    except asyncio.CancelledError:
        return STOPPED
    logging.getLogger("waiter").info("all are up")
    return exits.OK


async def _run(told: Settings) -> None:
    waiting = asyncio.current_task()
    if waiting is not None:
        # As the first process of a container it would not even hear of it otherwise.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, waiting.cancel)
    await wait(told, SystemClock(), random.Random(), os.environ)  # noqa: S311 - jitter


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
