"""Everybody who looks is told of the same views. Who is too slow is dropped, and may begin anew.

The cluster is drawn only while somebody looks, and no more often than leaves time for other work.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from kube.clock import Clock
from penstock.dashboard import view as views
from penstock.dashboard.view import EMPTY, Delta, View

_log = logging.getLogger(__name__)

LEAST_REST: Final = 0.25  # seconds between two views
_REST: Final = 4.0  # times as long as the last one took
BEAT: Final = 5.0  # seconds; a page that hears nothing for longer knows that it is cut off
LONGEST_QUEUE: Final = 4 * 1024 * 1024  # bytes that may wait for one viewer
ROWS: Final = 500  # in one message, so that no browser is busy with it for long

_encode: Final = msgspec.json.Encoder().encode


class Viewer:
    """What waits to be sent to one who looks."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._dropped = asyncio.Event()

    @property
    def is_slow(self) -> bool:
        """Whether too much waited."""
        return self._dropped.is_set()

    async def dropped(self) -> None:
        """Return when too much waits."""
        await self._dropped.wait()

    def put(self, message: bytes, *, limit: int = LONGEST_QUEUE) -> None:
        """Have it sent; one for whom too much waits gets nothing any more."""
        if not self.is_slow and self._size + len(message) > limit:
            self._dropped.set()
            self._waiting.clear()
        if not self.is_slow:
            self._waiting.append(message)
            self._size += len(message)
        self._news.set()

    async def next(self) -> bytes | None:
        """Give the next message once there is one; None for one who was too slow."""
        while not self._waiting and not self.is_slow:
            self._news.clear()
            await self._news.wait()
        if self.is_slow:
            return None
        message = self._waiting.popleft()
        self._size -= len(message)
        return message


class Hub:
    """The last view, and who looks at it."""

    def __init__(self, draw: Callable[[], View], news: asyncio.Event, clock: Clock) -> None:
        self._draw = draw
        self._news = news
        self._clock = clock
        self._viewers: set[Viewer] = set()
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._is_stale = True
        self.view = EMPTY

    @property
    def viewers(self) -> int:
        """How many look."""
        return len(self._viewers)

    def join(self) -> Viewer:
        """Let somebody look: all there is first, then what changes.

        What he had before does not matter: another process may have told him of it, or nobody
        remembers it.
        """
        if self._is_stale:
            self.refresh()
        viewer = Viewer()
        # The limit is for what comes after: a large cluster is worth its first message.
        for message in self._beginning():
            viewer.put(message, limit=1 << 62)
        self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Tell him nothing any more."""
        self._viewers.discard(viewer)

    async def run(self) -> None:
        """Draw whenever something has changed and somebody looks, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            group.create_task(self._follow())

    def refresh(self) -> Delta:
        """Draw the cluster now, and tell everybody what has changed."""
        after = self._draw()
        found = views.delta(self.view, after)
        self.view, self._is_stale = after, False
        if not found.is_empty:
            self._number += 1
            self._tell(self._message("delta", found))
        return found

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            begun = self._clock.monotonic()
            self._is_stale = True
            if self._viewers:
                self._try()
            took = self._clock.monotonic() - begun
            await self._clock.sleep(max(LEAST_REST, _REST * took))

    def _try(self) -> None:
        # What cannot be drawn now may be drawn after the next change; the last view stands.
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 - a worker's edge, logged
            _log.exception("the cluster could not be drawn")

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(BEAT)
            self._tell(self._message("beat", {"now": self._clock.now()}))

    def _beginning(self) -> list[bytes]:
        first = self._message("reset", {"now": self._clock.now()})
        rest = [self._message("delta", each) for each in views.pieces(self.view, ROWS)]
        return [first, *rest, self._message("whole", {"now": self._clock.now()})]

    def _message(self, kind: str, body: object) -> bytes:
        name = f"{self._epoch}-{self._number}"
        return b"event: %s\nid: %s\ndata: %s\n\n" % (kind.encode(), name.encode(), _encode(body))

    def _tell(self, message: bytes) -> None:
        for viewer in list(self._viewers):
            viewer.put(message)
