"""`workloads` as it is, in this process, with a memory for its API server and a clock to turn."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from typing_extensions import override

from api.features import Features
from controller.exposing import Metrics
from controller.process import Surroundings
from controller.settings import Settings
from controller.workloads.__main__ import work
from controller.workloads.views import Choices
from kube.client import Client
from kube.errors import ApiError, ServerFault, TooManyRequests, Unreachable
from kube.lease import Elector, LeaseSettings
from kube.transport import Call
from tests.model.memory import Memory, MemoryClient, Wire
from tests.model.player import Player
from tests.support.manualclock import ManualClock, settle

NAMESPACE: Final = "default"
# Longer than any pause between two writes for one purpose.
_QUIET: Final = 12.0
_STEP: Final = 1.0
_PATIENCE: Final = 400  # steps


class Leading(Elector):
    """Has led all along."""

    def __init__(self) -> None:
        """Take part in no election."""

    @override
    def is_leader(self) -> bool:
        return True

    @override
    async def acquired(self) -> None:
        return


@dataclass
class Stage:
    """One `workloads` at work. Faults befall it alone."""

    seed: int = 0
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.memory = Memory(self.clock)
        self.wire = Wire(self.memory)
        self.player = Player(self.memory, NAMESPACE)
        self.chance = random.Random(self.seed)  # noqa: S311
        self._work: asyncio.Task[None] | None = None
        self._client: Client | None = None

    def connect(self) -> Client:
        """Make what the process speaks through."""
        return MemoryClient(self.wire, self.clock)

    async def start(self) -> None:
        """Start a process that knows nothing but what the API server tells it."""
        client = await self.connect().__aenter__()
        self._client = client
        lease = LeaseSettings()
        settings = Settings(Path(), None, NAMESPACE, 0.0, lease, "ERROR", Features())
        around = Surroundings(
            settings, client, self.clock, self.chance, Leading(), Metrics("workloads", lambda: True)
        )
        self._work = asyncio.create_task(work(Choices(), around))
        await settle()

    async def kill(self) -> None:
        """End it wherever it is."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            self._work = None
        if self._client is not None:
            await self._client.__aexit__(None, None, None)
            self._client = None

    async def some_time(self, instants: int) -> None:
        """Let it get a little further, perhaps not to an end."""
        for _ in range(instants):
            await asyncio.sleep(0)

    def trouble(self, share: float) -> None:
        """Have so many of its requests fail, each in a way of its own."""
        self.wire.harm = self._harm(share)
        self.wire.lose = lambda _: self.chance.random() < share / 2

    def heal(self) -> None:
        """Let everything pass again."""
        self.wire.harm = lambda _: None
        self.wire.lose = lambda _: False

    async def quiet(self) -> None:
        """Let time pass until nobody writes any more."""
        still = 0.0
        for _ in range(_PATIENCE):
            assert self._work is None or not self._work.done(), self._work.exception()
            before = self.memory.version
            await self.settle()
            self.player.act()
            await self.clock.advance(_STEP)
            # One that failed again and again is made anew after a while only.
            idle = self.memory.version == before and not self.player.failed()
            still = still + _STEP if idle else 0.0
            if still >= _QUIET:
                return
        raise AssertionError(f"still writing: {self.wire.calls[-5:]}")

    async def settle(self) -> None:
        """Let all that needs no time happen."""
        last = -1
        while last != (now := self.memory.version + len(self.wire.calls)):
            last = now
            await settle()

    def _harm(self, share: float) -> Callable[[Call], ApiError | None]:
        def harm(_: Call) -> ApiError | None:
            if self.chance.random() >= share:
                return None
            return self.chance.choice(
                [
                    ServerFault(500, "InternalError", "the server failed"),
                    Unreachable("the connection was cut"),
                    TooManyRequests("too much at once", None, 1.0),
                ]
            )

        return harm
