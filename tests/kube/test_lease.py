import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from kube.errors import AlreadyExists, Conflict, Unreachable
from kube.lease import (
    Acquire,
    Claim,
    Elector,
    LeaseRecord,
    LeaseSettings,
    LostLease,
    Renew,
    Wait,
    decide,
)
from tests.support.chance import dice
from tests.support.manualclock import ManualClock, settle

SETTINGS = LeaseSettings()


def record(holder: str = "other", lease: float = 15.0, transitions: int = 4) -> LeaseRecord:
    return LeaseRecord(holder, lease, transitions, "7")


@pytest.mark.parametrize(
    ("held", "age", "decision"),
    [
        pytest.param(None, 0, Acquire(0), id="no lease yet"),
        pytest.param(record("me"), 0, Renew(4), id="ours"),
        pytest.param(record("me"), 99, Renew(4), id="ours, and nobody took it while we slept"),
        pytest.param(record(""), 0, Acquire(5), id="given back"),
        pytest.param(record(), 0, Wait(15), id="just changed"),
        pytest.param(record(), 14.5, Wait(0.5), id="not yet run out"),
        pytest.param(record(), 15, Acquire(5), id="run out"),
        pytest.param(record(lease=60), 30, Wait(30), id="the holder's own duration counts"),
        pytest.param(record(lease=0), 14, Wait(1), id="ours where it has none"),
    ],
)
def test_decision(held: LeaseRecord | None, age: float, decision: Acquire | Renew | Wait) -> None:
    assert decide(held, 1000.0, 1000.0 + age, "me", SETTINGS) == decision


@pytest.mark.parametrize(
    "numbers", [(10.0, 10.0, 2.0), (15.0, 10.0, 9.0), (15.0, 10.0, 0.0), (2.0, 10.0, 1.0)]
)
def test_settings_that_could_make_two_leaders_or_none_are_refused(
    numbers: tuple[float, float, float],
) -> None:
    with pytest.raises(ValueError, match="a lease needs"):
        LeaseSettings(*numbers)


@dataclass
class MemoryLease:
    """A tiny API server: one record, optimistic concurrency, and faults on demand."""

    held: LeaseRecord | None = None
    version: int = 0
    down: set[str] = field(default_factory=set)
    mute: set[str] = field(default_factory=set)
    history: list[tuple[str, int]] = field(default_factory=list)

    def write(self, claim: Claim) -> LeaseRecord:
        self.version += 1
        self.held = LeaseRecord(
            claim.holder, claim.lease_seconds, claim.transitions, str(self.version)
        )
        self.history.append((claim.holder, claim.transitions))
        return self.held


@dataclass
class Door:
    """One candidate's way to the record, which can be shut for it alone."""

    lease: MemoryLease
    who: str

    async def read(self) -> LeaseRecord | None:
        await self._pass()
        return self.lease.held

    async def create(self, claim: Claim) -> LeaseRecord:
        await self._pass()
        if self.lease.held is not None:
            raise AlreadyExists(409, "AlreadyExists", "taken")
        return self._answer(self.lease.write(claim))

    async def update(self, claim: Claim, resource_version: str) -> LeaseRecord:
        await self._pass()
        if self.lease.held is None or self.lease.held.resource_version != resource_version:
            raise Conflict(409, "Conflict", "changed")
        return self._answer(self.lease.write(claim))

    async def _pass(self) -> None:
        await asyncio.sleep(0)
        if self.who in self.lease.down:
            raise Unreachable("no way")

    def _answer(self, written: LeaseRecord) -> LeaseRecord:
        if self.who in self.lease.mute:
            raise Unreachable("the answer was lost")
        return written


@dataclass
class SlowDoor(Door):
    """A way on which answers take their time."""

    clock: ManualClock
    seconds: float = 0.0

    @override
    async def update(self, claim: Claim, resource_version: str) -> LeaseRecord:
        written = await super().update(claim, resource_version)
        await self.clock.sleep(self.seconds)
        return written


class Candidate:
    """An elector that stands again whenever it has lost, as a restarted process would."""

    def __init__(self, lease: MemoryLease, who: str, clock: ManualClock, seed: int) -> None:
        self.who = who
        self.lost = 0
        self._door = Door(lease, who)
        self._clock = clock
        self._seed = seed
        self.elector = self._fresh()
        self.task = asyncio.create_task(self._stand())

    def _fresh(self) -> Elector:
        return Elector(self._door, self.who, SETTINGS, self._clock, dice(self._seed))

    async def _stand(self) -> None:
        while True:
            try:
                await self.elector.run()
            except LostLease:
                self.lost += 1
                self.elector = self._fresh()

    async def stop(self) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


async def test_the_first_candidate_leads_and_the_second_waits() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one, two = Candidate(lease, "one", clock, 1), Candidate(lease, "two", clock, 2)
    await clock.advance(0.1)
    assert one.elector.is_leader()
    await one.elector.acquired()
    assert one.elector.generation == 0
    await clock.advance(300)
    assert one.elector.is_leader()
    assert not two.elector.is_leader()
    assert two.elector.generation == -1
    assert {holder for holder, _ in lease.history} == {"one"}
    await one.stop()
    await two.stop()


async def test_a_dead_leader_is_followed_within_lease_and_one_retry() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one, two = Candidate(lease, "one", clock, 1), Candidate(lease, "two", clock, 2)
    await clock.advance(60)
    await one.stop()
    await clock.advance(15 + 2.4)
    assert two.elector.is_leader()
    assert two.elector.generation == one.elector.generation + 1
    await two.stop()


async def test_a_released_lease_is_taken_within_one_retry() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one, two = Candidate(lease, "one", clock, 1), Candidate(lease, "two", clock, 2)
    await clock.advance(60)
    await one.stop()
    await one.elector.release()
    assert not one.elector.is_leader()
    assert lease.held is not None
    assert lease.held.holder == ""
    await clock.advance(2.4)
    assert two.elector.is_leader()
    assert two.elector.generation == 1
    await two.stop()


async def test_a_leader_cut_off_stops_by_itself_before_anybody_follows() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one, two = Candidate(lease, "one", clock, 1), Candidate(lease, "two", clock, 2)
    await clock.advance(60)
    lease.down.add("one")
    for _ in range(300):
        await clock.advance(0.1)
        assert not (one.elector.is_leader() and two.elector.is_leader())
    assert two.elector.is_leader()
    assert one.lost == 1
    await one.stop()
    await two.stop()


async def test_a_leader_that_was_asleep_knows_at_once_that_it_no_longer_leads() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one = Candidate(lease, "one", clock, 1)
    await clock.advance(5)
    assert one.elector.is_leader()
    clock.skip(10)  # nothing else got to run: only the clock can tell
    assert not one.elector.is_leader()
    await one.stop()


async def test_a_renewal_that_is_answered_after_the_deadline_comes_too_late() -> None:
    clock, lease = ManualClock(), MemoryLease()
    door = SlowDoor(lease, "one", clock)
    elector = Elector(door, "one", SETTINGS, clock, dice())
    running = asyncio.create_task(elector.run())
    await clock.advance(1)
    door.seconds = SETTINGS.renew_deadline
    await clock.advance(SETTINGS.renew_deadline)
    assert not elector.is_leader()
    door.seconds = 0.0
    await clock.advance(SETTINGS.retry_seconds * 2)
    assert running.done()
    with pytest.raises(LostLease, match="within 10 s"):
        await running


async def test_a_renewal_whose_answer_was_lost_is_made_up_for_at_the_next_attempt() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one = Candidate(lease, "one", clock, 1)
    await clock.advance(5)
    lease.mute.add("one")
    while len(lease.history) < 4:  # written, but the writer does not know
        await clock.advance(0.1)
    lease.mute.clear()
    await clock.advance(2.4)
    assert len(lease.history) == 5
    assert one.elector.is_leader()
    assert one.elector.generation == 0
    assert one.lost == 0
    await one.stop()


@pytest.mark.parametrize("edited", [0, -1, 1])
async def test_a_foreign_write_does_not_cost_the_lead(edited: int) -> None:
    clock, lease = ManualClock(), MemoryLease()
    one = Candidate(lease, "one", clock, 1)
    await clock.advance(5)
    assert lease.held is not None
    lease.version += 1
    lease.held = LeaseRecord("one", 15.0, lease.held.transitions + edited, str(lease.version))
    led = one.elector.generation
    await clock.advance(30)
    assert one.elector.is_leader()
    assert one.elector.generation == led, "what it has written so far stays its own"
    assert one.lost == 0
    await one.stop()


@pytest.mark.parametrize(
    "usurped", [LeaseRecord("thief", 15.0, 9, "99"), None], ids=["taken", "deleted"]
)
async def test_a_lead_taken_by_force_is_lost(usurped: LeaseRecord | None) -> None:
    clock, lease = ManualClock(), MemoryLease()
    elector = Elector(Door(lease, "one"), "one", SETTINGS, clock, dice())
    running = asyncio.create_task(elector.run())
    await clock.advance(5)
    lease.held = usurped
    await clock.advance(5)
    assert not elector.is_leader()
    with pytest.raises(LostLease, match=r"now held by (thief|nobody)"):
        await running


async def test_two_candidates_for_a_new_lease_make_one_leader() -> None:
    clock, lease = ManualClock(), MemoryLease()
    candidates = [Candidate(lease, f"c{n}", clock, n) for n in range(5)]
    await clock.advance(1)
    assert sum(c.elector.is_leader() for c in candidates) == 1
    assert len(lease.history) == 1
    for candidate in candidates:
        await candidate.stop()


async def test_a_release_that_fails_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock, lease = ManualClock(), MemoryLease()
    elector = Elector(Door(lease, "one"), "one", SETTINGS, clock, dice())
    running = asyncio.create_task(elector.run())
    await settle()
    assert elector.is_leader()
    running.cancel()
    lease.down.add("one")
    await elector.release()
    assert not elector.is_leader()
    assert "no way" in caplog.text


async def test_a_stop_in_the_middle_of_a_renewal_still_gives_the_lease_back() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one = Candidate(lease, "one", clock, 1)
    await clock.advance(5)
    await one.stop()
    lease.write(Claim("one", 15.0, 0, clock.now(), None))  # the write whose answer nobody read
    await one.elector.release()
    assert lease.held is not None
    assert lease.held.holder == ""


async def test_a_release_never_takes_the_lease_from_somebody_else() -> None:
    clock, lease = ManualClock(), MemoryLease()
    one = Candidate(lease, "one", clock, 1)
    await clock.advance(5)
    await one.stop()
    lease.write(Claim("two", 15.0, 1, clock.now(), None))
    await one.elector.release()
    assert lease.held is not None
    assert lease.held.holder == "two"


async def test_releasing_what_was_never_held_writes_nothing() -> None:
    lease = MemoryLease()
    await Elector(Door(lease, "one"), "one", SETTINGS, ManualClock(), dice()).release()
    assert lease.history == []


faults = st.lists(
    st.tuples(
        st.sampled_from(["down", "mute", "pause"]),
        st.sampled_from(["one", "two", "three"]),
        st.floats(0.1, 30),
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=30)
@given(faults=faults, seed=st.integers(0, 1000))
async def test_whatever_fails_two_never_lead_at_once_and_generations_only_grow(
    faults: list[tuple[str, str, float]], seed: int
) -> None:
    clock, lease = ManualClock(), MemoryLease()
    candidates = [
        Candidate(lease, who, clock, seed + n) for n, who in enumerate(("one", "two", "three"))
    ]
    led: dict[int, str] = {}

    async def watch_over(seconds: float) -> None:
        for _ in range(int(seconds) + 1):
            await clock.advance(1.0)
            leaders = [c for c in candidates if c.elector.is_leader()]
            assert len(leaders) <= 1
            for leader in leaders:
                generation = leader.elector.generation
                assert led.setdefault(generation, leader.who) == leader.who
                assert generation == max(led)

    for kind, who, seconds in faults:
        if kind == "pause":
            clock.skip(seconds)
            await watch_over(0)
            continue
        where = lease.down if kind == "down" else lease.mute
        where.add(who)
        await watch_over(seconds)
        where.discard(who)
    await watch_over(40)
    assert sum(c.elector.is_leader() for c in candidates) == 1
    for candidate in candidates:
        await candidate.stop()
