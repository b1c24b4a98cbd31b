"""An event loop in a thread of its own, for what goes on beside the answering of reviews."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Final

LOG: Final = logging.getLogger(__name__)

END_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 5.0

Duty = Callable[[], Coroutine[None, None, None]]


class Background:
    """Runs duties, each of which goes on until cancelled, from `start` to `stop`."""

    def __init__(self, duties: Sequence[Duty]) -> None:
        self._duties = duties
        self._loop: asyncio.AbstractEventLoop | None = None
        self._all: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Cancel the duties and wait a moment for them to end."""
        if self._loop is not None and self._all is not None:
            with suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._all.cancel)
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._attend())

    async def _attend(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._all = asyncio.current_task()
        async with asyncio.TaskGroup() as group:
            for duty in self._duties:
                group.create_task(_kept_up(duty))


async def _kept_up(duty: Duty) -> None:
    while True:
        try:
            await duty()
        except Exception:
            # Whoever watches readiness learns of it; reviews are answered meanwhile.
            LOG.exception("a fault beside the answering of reviews")
        await asyncio.sleep(AGAIN_SECONDS)
