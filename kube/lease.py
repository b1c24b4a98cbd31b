"""Who leads: one holder of a Lease at a time, judged by our own monotonic clock alone.

Nobody's wall clock is compared with another's. A candidate waits a whole lease duration from the
moment *it* saw the record change; a holder counts itself leader for the shorter renew deadline from
the moment *before* it sent its last successful renewal. As long as clocks run at rates no further
apart than lease over deadline, two never lead at once.
"""

import asyncio
import logging
import math
import random
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias, assert_never

from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseSettings:
    """Seconds. The renew deadline must be shorter than the lease, and retries than the deadline."""

    lease_seconds: float = 15.0
    renew_deadline: float = 10.0
    retry_seconds: float = 2.0
    jitter: float = 0.2  # a wait is up to this part longer

    def __post_init__(self) -> None:
        longest = self.retry_seconds * (1 + self.jitter)
        if not 0 < longest < self.renew_deadline < self.lease_seconds:
            raise ValueError(
                "a lease needs 0 < retry (with jitter) < renew deadline < lease, "
                f"got {longest} < {self.renew_deadline} < {self.lease_seconds}"
            )


@dataclass(frozen=True)
class LeaseRecord:
    """What the Lease object says. `holder` is empty after a release."""

    holder: str
    lease_seconds: float
    transitions: int
    resource_version: str


@dataclass(frozen=True)
class Acquire:
    """The lease is free or has run out: try to take it, as this transition."""

    transitions: int


@dataclass(frozen=True)
class Renew:
    """The lease is ours: write it again."""

    transitions: int


@dataclass(frozen=True)
class Wait:
    """Somebody else holds it for at least so many seconds more, as far as we can tell."""

    seconds: float


Decision: TypeAlias = Acquire | Renew | Wait


def decide(
    record: LeaseRecord | None,
    observed_at: float,
    now: float,
    identity: str,
    settings: LeaseSettings,
) -> Decision:
    """Decide what a candidate does about the record it last saw change at `observed_at`.

    Both times are of the candidate's own monotonic clock. A record's own duration counts, since
    its holder relies on it; ours only where it has none.
    """
    if record is None:
        return Acquire(0)
    if record.holder == identity:
        return Renew(record.transitions)
    if not record.holder:
        return Acquire(record.transitions + 1)
    left = observed_at + (record.lease_seconds or settings.lease_seconds) - now
    return Wait(left) if left > 0 else Acquire(record.transitions + 1)


@dataclass(frozen=True)
class Claim:
    """What is written into the Lease. `acquired` is None where it stays as it is."""

    holder: str
    lease_seconds: float
    transitions: int
    renewed: datetime
    acquired: datetime | None


class LeaseBox(Protocol):
    """Where the record is kept."""

    async def read(self) -> LeaseRecord | None:
        """Return the record, or None if there is none yet."""
        ...

    async def create(self, claim: Claim) -> LeaseRecord:
        """Make the record; raise AlreadyExists if somebody was faster."""
        ...

    async def update(self, claim: Claim, resource_version: str) -> LeaseRecord:
        """Change the record as of this version; raise Conflict if it has another by now."""
        ...


class LostLease(Exception):  # noqa: N818 - a state of affairs, not a mistake
    """We led and can no longer be sure of it; whatever needs the lead must stop now."""


class Elector:
    """Takes part in the election for one Lease, under an identity no other process has.

    Run `run` as a task, wait for `acquired`, and ask `is_leader` before every batch of writes. On a
    clean stop end all work first, then `release`.
    """

    def __init__(
        self,
        box: LeaseBox,
        identity: str,
        settings: LeaseSettings,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._box = box
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._record: LeaseRecord | None = None
        self._observed_at = -math.inf
        self._seen_version = ""
        self._renewed_at = -math.inf
        self._generation = -1
        self._leading = asyncio.Event()

    def is_leader(self) -> bool:
        """Return whether we may write: our last renewal is younger than the renew deadline.

        What it has once denied it never grants again: `run` raises LostLease then.
        """
        return self._clock.monotonic() < self._renewed_at + self._settings.renew_deadline

    @property
    def generation(self) -> int:
        """Return the number of our leadership, higher than that of every leader before us.

        It is the Lease's count of transitions (so it starts anew if somebody deletes the Lease),
        and -1 before we have led.
        """
        return self._generation

    async def acquired(self) -> None:
        """Return once we lead."""
        await self._leading.wait()

    async def run(self) -> None:
        """Stand for election, lead, and raise LostLease when the lead is lost."""
        while not self._leading.is_set():
            wait = await self._attempt()
            if self._leading.is_set():
                break
            await self._clock.sleep(wait)
        _logger.info("%s leads, generation %d", self._identity, self._generation)
        late = f"the lease could not be renewed within {self._settings.renew_deadline:g} s"
        while True:
            # Never past the deadline, so that the loss is noticed before the lease runs out.
            deadline = self._renewed_at + self._settings.renew_deadline
            left = deadline - self._clock.monotonic()
            await self._clock.sleep(min(self._pause(), max(left, 0.0)))
            if not self.is_leader():
                raise LostLease(late)
            await self._attempt()
            # A renewal that came too late is no renewal: what was left undone meanwhile, since we
            # did not lead, nobody would do until something else happens to it.
            if self._clock.monotonic() >= deadline:
                raise LostLease(late)

    async def release(self) -> None:
        """Give the lease back, so that another may lead at once; we do not lead from here on.

        Failing to write is only logged: the lease then runs out by itself.
        """
        self._renewed_at = -math.inf
        if not self._leading.is_set():
            return
        try:
            async with asyncio.timeout(self._settings.retry_seconds):
                try:
                    await self._give_back(self._record)
                except Conflict:
                    # `run` was cancelled in the middle of a renewal that did happen.
                    await self._give_back(None)
        except (ApiError, TimeoutError) as error:
            problem = str(error) or "no answer in time"
            _logger.warning("the lease could not be released and will run out: %s", problem)

    async def _give_back(self, record: LeaseRecord | None) -> None:
        held = record or await self._box.read()
        if held is None or held.holder != self._identity:
            return
        seconds, now = self._settings.lease_seconds, self._clock.now()
        claim = Claim("", seconds, held.transitions, now, None)
        self._record = await self._box.update(claim, held.resource_version)

    async def _attempt(self) -> float:
        """Look and act once; return the seconds to wait before the next attempt."""
        try:
            # A call that hangs must leave time for others before the deadline.
            async with asyncio.timeout(self._settings.renew_deadline / 3):
                return await self._step()
        except (Conflict, AlreadyExists, NotFound):
            self._record = None  # it is not what we thought: read it anew
            return self._pause()
        except (ApiError, TimeoutError) as error:
            _logger.warning(
                "the lease cannot be read or written: %s", str(error) or "no answer in time"
            )
            self._record = None  # the write may have happened
            return self._pause()

    async def _step(self) -> float:
        # A holder renews on what it wrote last; only who waits or is in doubt has to read.
        if self._record is None or self._record.holder != self._identity:
            self._observe(await self._box.read())
        now = self._clock.monotonic()
        decision = decide(self._record, self._observed_at, now, self._identity, self._settings)
        if self._leading.is_set() and not isinstance(decision, Renew):
            self._renewed_at = -math.inf
            holder = self._record.holder if self._record else ""
            raise LostLease(f"the lease is now held by {holder or 'nobody'}")
        match decision:
            case Acquire(transitions):
                await self._write(transitions, now, acquiring=True)
            case Renew(transitions):
                await self._write(transitions, now, acquiring=False)
            case Wait(seconds):
                return min(self._pause(), seconds)
            case _:
                assert_never(decision)
        return self._pause()

    def _observe(self, record: LeaseRecord | None) -> None:
        # Any new version restarts the wait; a foreign edit only costs time, never two leaders.
        if record is None or record.resource_version != self._seen_version:
            self._observed_at = self._clock.monotonic()
        self._seen_version = record.resource_version if record else ""
        self._record = record

    async def _write(self, transitions: int, now: float, *, acquiring: bool) -> None:
        wall = self._clock.now()
        claim = Claim(
            self._identity,
            self._settings.lease_seconds,
            transitions,
            wall,
            wall if acquiring else None,
        )
        held = self._record
        if held is None:
            self._record = await self._box.create(claim)
        else:
            self._record = await self._box.update(claim, held.resource_version)
        # Counted from before the request: others may have seen the record any time after that.
        self._renewed_at = now
        if not self._leading.is_set():
            self._generation = transitions  # for as long as it leads, whoever edits the Lease
        self._leading.set()

    def _pause(self) -> float:
        return self._settings.retry_seconds * (1 + self._rng.random() * self._settings.jitter)
