"""Who makes way for whom, of the requests of all sets: so many are under way at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

_AHEAD: Final = 4  # requests that go on while others come first, so that none waits for ever


class Lane:
    """Lets `most` requests be under way at once, in the order they came, and few meanwhile."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way = 0
        self._first = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Have all but a few of this lane wait meanwhile."""
        self._first += 1
        try:
            yield
        finally:
            self._first -= 1
            self._let_in()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it meanwhile."""
        mine = asyncio.get_running_loop().create_future()
        self._line.append(mine)
        self._let_in()
        try:
            await mine
            yield
        finally:
            if mine.cancelled():
                with suppress(ValueError):
                    self._line.remove(mine)
            else:
                self._under_way -= 1
                self._let_in()

    def _let_in(self) -> None:
        most = min(_AHEAD, self._most) if self._first else self._most
        while self._line and self._under_way < most:
            first = self._line.popleft()
            if not first.cancelled():
                self._under_way += 1
                first.set_result(None)
