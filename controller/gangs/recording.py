"""Keeps what the engine saw when it refused a gang, so that a person can replay it elsewhere."""

import asyncio
import gzip
import logging
from pathlib import Path
from typing import Final

from kube.clock import Clock
from scheduler import saving
from scheduler.saving import Saved

_log = logging.getLogger(__name__)

FILE: Final = "refused.json.gz"
EVERY: Final = 60.0  # seconds; a large cluster takes a while to write


class Recorder:
    """Writes the file in the folder, over the one before; what fails is logged and no more."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._next = clock.monotonic()
        self._missed = False

    def due(self) -> bool:
        """Whether it is time for another one."""
        return self._clock.monotonic() >= self._next

    def ahead(self) -> bool:
        """Whether to copy what the engine is about to see, before anybody is refused.

        So it is once after each refusal that could not be copied: the cluster had moved on.
        """
        ahead, self._missed = self._missed, False
        return ahead

    async def take(self, saved: Saved | None) -> None:
        """Write down what was refused, or miss it."""
        if saved is None:
            self._missed = True
        else:
            await self.write(saved)

    async def write(self, saved: Saved) -> None:
        """Write it, beside all else."""
        self._next = self._clock.monotonic() + EVERY
        try:
            await asyncio.to_thread(_write, self._folder, saved)
        except OSError as error:
            _log.warning("what was refused cannot be written down: %s", error)


def _write(folder: Path, saved: Saved) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{FILE}.unfinished"
    unfinished.write_bytes(gzip.compress(saving.dumps(saved), compresslevel=1))
    unfinished.replace(folder / FILE)
