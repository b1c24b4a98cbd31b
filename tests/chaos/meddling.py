"""What stands between controllers and the API server: ambushes on writes, and bad weather."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tests.chaos.actors import Actor
from tests.chaos.proxy import WRITES, Head, Trouble

Act: TypeAlias = Callable[[Actor, bytes], Awaitable[None]]
Kind: TypeAlias = Callable[[Head], bool]


def writes(head: Head) -> bool:
    """Any write that is about gangs; renewing a lease is not."""
    return head.method in WRITES and "/leases" not in head.path and "/events" not in head.path


def lifts(head: Head) -> bool:
    where = head.path
    return head.method == "PATCH" and "/pods/" in where and not where.endswith("/status")


def reserves(head: Head) -> bool:
    where = head.path
    return head.method in ("POST", "PATCH") and "/reservations" in where and "/status" not in where


def begins(head: Head) -> bool:
    where = head.path
    return head.method == "PATCH" and "/reservations/" in where and where.endswith("/status")


KINDS: Final[dict[str, Kind]] = {
    "write": writes,
    "lift": lifts,
    "reserve": reserves,
    "begin": begins,
}


@dataclass
class Ambush:
    """Acts once, on the n-th write of a kind by a component: before it is passed on, or after."""

    component: str
    kind: Kind
    count: int
    act: Act
    early: bool
    met: asyncio.Event = field(default_factory=asyncio.Event)
    """The write has come."""
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    """The act is over."""

    def meets(self, actor: Actor, head: Head, *, early: bool) -> bool:
        """Count a request; whether it is the one."""
        if self.early != early or actor.component != self.component or not self.kind(head):
            return False
        self.count -= 1
        return self.count == 0


@dataclass(eq=False)
class _Weather:
    """A share of requests that go wrong in one of some ways, and how many did so far."""

    share: float
    faults: tuple[Trouble, ...]
    chance: random.Random
    met: Counter[Trouble] = field(default_factory=Counter)

    def draw(self, head: Head) -> Trouble | None:
        if self.chance.random() >= self.share:
            return None
        trouble = self.chance.choice(self.faults)
        # Only a write can be in conflict: a read that drew this is answered as ever.
        self.met[trouble] += trouble is not Trouble.CONFLICT or head.method in WRITES
        return trouble


class Meddler:
    """All ambushes that wait, and how many requests go wrong meanwhile."""

    def __init__(self) -> None:
        self._ambushes: list[Ambush] = []
        self._weathers: list[_Weather] = []

    @contextmanager
    def ambush(self, ambush: Ambush) -> Iterator[Ambush]:
        """Lie in wait for as long as the context lasts."""
        self._ambushes.append(ambush)
        try:
            yield ambush
        finally:
            self._ambushes.remove(ambush)

    @asynccontextmanager
    async def weather(
        self, share: float, faults: tuple[Trouble, ...], chance: random.Random
    ) -> AsyncIterator[Counter[Trouble]]:
        """Have this share of requests go wrong in one of these ways; counts them."""
        weather = _Weather(share, faults, chance)
        self._weathers.append(weather)
        try:
            yield weather.met
        finally:
            self._weathers.remove(weather)

    async def before(self, actor: Actor, head: Head, body: bytes) -> Trouble | None:
        """Spring what lies in wait for this request, and choose what becomes of it."""
        await self._spring(actor, head, body, early=True)
        drawn = (each.draw(head) for each in self._weathers)
        return next((trouble for trouble in drawn if trouble), None)

    async def after(self, actor: Actor, head: Head) -> None:
        """Spring what lies in wait for this write to have happened."""
        await self._spring(actor, head, b"", early=False)

    async def _spring(self, actor: Actor, head: Head, body: bytes, *, early: bool) -> None:
        for each in list(self._ambushes):
            if each.meets(actor, head, early=early):
                each.met.set()
                try:
                    await each.act(actor, body)
                finally:
                    each.sprung.set()
