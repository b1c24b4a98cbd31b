"""What it takes to decide: single gangs, batches, large gangs, and gangs that are hopeless."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from scheduler import cycle, explain
from scheduler.answers import Plan
from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot
from tests.bench import engine_floors as floors
from tests.bench import engine_gangs as asking
from tests.bench import engine_hopeless as hopeless
from tests.bench.engine_clock import Clock, Taken, each
from tests.bench.harness import Budget, Row

PLAIN: Final = "gang of 100 pods, no wishes"
NESTED: Final = "gang of 100 pods, 5 groups"
ONE_GANG: Final = Budget(10.0)
A_BATCH: Final = Budget(1000.0)
LARGE: Final = Budget(100.0)
REFUSAL: Final = Budget(10.0)
_WARM: Final = 2


@dataclass(frozen=True)
class Decided:
    """What a series of decisions took beside the floor's, and what became of them."""

    ours: Taken
    floor: Taken
    plans: Sequence[Plan]

    @property
    def summary(self) -> str:
        """How many were placed and how near, or how many refused."""
        scores = [placement.score for plan in self.plans for placement in plan.placements]
        refusals = [refusal for plan in self.plans for refusal in plan.refusals]
        exhausted = sum(refusal.exhausted for refusal in refusals)
        said = []
        if scores:
            said.append(f"{len(scores)} placed with score {sum(scores) / len(scores):.3f}")
        if refusals:
            said.append(f"{len(refusals)} refused")
        if exhausted:
            said.append(f"{exhausted} by budget")
        return ", ".join(said)


def decide(taken: Snapshot, asked: Sequence[Sequence[GangRequest]], clock: Clock) -> Decided:
    """Decide each batch on the same snapshot, with the sentence for each refusal."""
    plans: list[Plan] = []

    def call(batch: Sequence[GangRequest]) -> None:
        plan = cycle.plan(taken, batch)
        for refusal in plan.refusals:
            explain.sentence(refusal)
        plans.append(plan)

    warm = max(0, min(_WARM, len(asked) - 2))
    gc.collect()
    ours = each([partial(call, batch) for batch in asked], clock, warm)
    free = floors.columns(taken)
    pods = [floors.asked(taken, batch) for batch in asked]
    floor = each([partial(floors.greedy, free, some) for some in pods], clock)
    return Decided(ours, floor, plans)


def decide_after(
    taken: Iterator[Snapshot], asked: Sequence[Sequence[GangRequest]], clock: Clock
) -> Decided:
    """Decide each batch on a snapshot of its own, as there is after an event."""
    plans: list[Plan] = []
    seconds = []
    gc.collect()
    for snapshot, batch in zip(taken, asked, strict=False):
        begun = clock()
        plans.append(cycle.plan(snapshot, batch))
        seconds.append(clock() - begun)
    free = floors.columns(snapshot)
    pods = [floors.asked(snapshot, batch) for batch in asked]
    floor = each([partial(floors.greedy, free, some) for some in pods], clock)
    return Decided(Taken(seconds[0], tuple(seconds[1:])), floor, plans)


def rows(what: str, decided: Decided, budget: Budget | None) -> list[Row]:
    """Three rows: the first call on a snapshot, then median and p99 of those after it."""
    ours, floor = decided.ours.timing, decided.floor.timing
    return [
        Row(f"{what}, first call", decided.ours.first * 1e3, "ms"),
        Row(f"{what}, p50", ours.median * 1e3, "ms", floor.median * 1e3),
        Row(f"{what}, p99 ({decided.summary})", ours.p99 * 1e3, "ms", floor.p99 * 1e3, budget),
    ]


def single(gangs: Sequence[GangRequest]) -> list[list[GangRequest]]:
    return [[gang] for gang in gangs]


def batches(times: int, count: int, full: float) -> list[list[GangRequest]]:
    return [asking.small_gangs(count, full, time * count) for time in range(times)]


@dataclass(frozen=True)
class Measure:
    """One thing to decide: on which cluster, what is asked, and what it may take."""

    what: str
    asked: Callable[[], Sequence[Sequence[GangRequest]]]
    budget: Budget | None = None


def measures(nodes: int, full: float, times: int, batch: int) -> list[Measure]:
    """What is decided on a cluster of so many nodes; gangs are such as fit if it is so full."""
    few = max(3, times // 15)
    return [
        Measure(PLAIN, lambda: single(asking.plain_gangs(times)), ONE_GANG),
        Measure(NESTED, lambda: single(asking.nested_gangs(times)), ONE_GANG),
        Measure(f"{batch} gangs of 9 pods", lambda: batches(few, batch, full), A_BATCH),
        Measure("gang of 1000 pods", lambda: single(asking.large_gangs(few, full)), LARGE),
        *overload(batch, full, few),
        *(_refused(kind, make, nodes, times) for kind, make in hopeless.KINDS.items()),
    ]


def overload(batch: int, full: float, times: int) -> list[Measure]:
    """Where little is free, a batch of which most must be refused; nothing is promised for it."""
    what = f"{batch} gangs of 9 pods, larger than there is room for"
    return [Measure(what, lambda: batches(times, batch, 0.0))] if full > 0.9 else []


def hard(nodes: int, full: float, times: int) -> list[tuple[Snapshot, Measure]]:
    """What is refused only after a search, each on a cluster of its own."""
    return [
        (
            hopeless.with_sevens(nodes, full),
            _refused("two cliques fit a rack by sum only", hopeless.fragmented, nodes, times),
        ),
        (
            hopeless.with_seventies(nodes),
            _refused("the same by processors", hopeless.crowded, nodes, times),
        ),
        (
            hopeless.with_one_rack_a_block(nodes),
            _refused("two groups, one free rack a block", hopeless.rivals, nodes, times),
        ),
    ]


def long(nodes: int, times: int) -> tuple[Snapshot, Measure]:
    """What is refused when all steps are spent; nothing but their number is promised for it."""
    taken, request = hopeless.endless(nodes)
    few = max(3, times // 15)
    return taken, Measure("refused when all steps are spent", lambda: single([request] * few))


def _refused(kind: str, make: Callable[[int, int], GangRequest], nodes: int, times: int) -> Measure:
    return Measure(
        f"refused: {kind}", lambda: single([make(n, nodes) for n in range(times)]), REFUSAL
    )
