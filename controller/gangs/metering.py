"""What `gangs` counts and times, for Prometheus. Only a leader's counters grow."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client import Counter, Gauge, Histogram
from typing_extensions import override

from api import names
from api.objects import condition_of
from api.podgang import Phase
from api.streams import Custom
from controller.exposing import Metrics
from controller.gangs.accounting import Bound, Ledger, RolledBack, Spent
from controller.gangs.views import Reservation
from controller.podgang import Gang
from kube.cache import Change, Deleted
from kube.clock import Clock
from kube.objects import Key

OURS: Final = "penstock_gangs_"
# Asked for under these names by who has dashboards for Grove.
GROVE: Final = "grove_"
_INSTANTS: Final = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WAITS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_SCORES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# What a rollback is put down to, told by what is said of it.
_CAUSES: Final = (
    ("its gang timeout", "timeout"),
    ("there is no other", "no_other_place"),
    ("its base gang was rolled back", "base_rolled_back"),
    ("other gates are on its pods", "foreign_gates"),
)


@dataclass(frozen=True)
class Known:
    """What is looked up: gangs and reservations, and how many wait to be looked at, or placed.

    Of all gangs `stages` tells the phase, and the reason of those that are not scheduled.
    """

    stages: Callable[[], Iterable[tuple[str, str]]]
    gang: Callable[[Key], Gang | None]
    reservation: Callable[[Key], Reservation | None]
    queues: Callable[[], tuple[int, int]]


def stage(gang: Gang) -> tuple[str, str]:
    """Give the phase that a gang says it is in, and why it is not scheduled, if so."""
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    waits = said is not None and said.status != "True"
    return gang.status.phase.value, said.reason if said is not None and waits else ""


class Unmetered:
    """What the placer tells of its work, told to nobody."""

    def asked(self, key: Key) -> None:
        """A gang asks for room; that counts from the first time."""

    def decided(self, key: Key, answer: str) -> None:
        """The engine has answered: `placed` or `refused`."""

    def planned(self, seconds: float) -> None:
        """The engine has worked for so long on one plan."""

    def forget(self, key: Key) -> None:
        """A gang asks for nothing any more."""


class Meters(Unmetered):
    """All of them. `leads` tells whether what happens is this replica's doing."""

    def __init__(
        self, metrics: Metrics, clock: Clock, leads: Callable[[], bool], known: Known
    ) -> None:
        self._clock = clock
        self._leads = leads
        self._known = known
        self._ledger = Ledger()
        self._asked: dict[Key, float] = {}
        registry = metrics.registry
        self._phases = Gauge(
            f"{GROVE}gangs", "Gangs, by how far they are", ("phase",), registry=registry
        )
        self._waiting = Gauge(
            f"{OURS}waiting", "Gangs that are not scheduled, by reason", ("reason",),
            registry=registry,
        )  # fmt: skip
        self._decisions = Histogram(
            f"{GROVE}gang_decision_seconds",
            "From when a gang asked for room until the engine had decided",
            buckets=_INSTANTS, registry=registry,
        )  # fmt: skip
        self._waits = Histogram(
            f"{GROVE}gang_wait_seconds",
            "From a gang's making until all of its minimum was bound for the first time",
            buckets=_WAITS, registry=registry,
        )  # fmt: skip
        self._scores = Histogram(
            f"{GROVE}gang_placement_score", "How near together gangs are that were bound",
            buckets=_SCORES, registry=registry,
        )  # fmt: skip
        self._depth = Gauge(
            f"{OURS}queue_depth", "Gangs that wait to be looked at, or for the engine", ("queue",),
            registry=registry,
        )  # fmt: skip
        self._plans = Histogram(
            f"{OURS}plan_seconds", "How long the engine worked on one plan", buckets=_INSTANTS,
            registry=registry,
        )  # fmt: skip
        self._answers = Counter(
            f"{OURS}decisions", "What the engine answered", ("answer",), registry=registry
        )
        self._binding = Histogram(
            f"{OURS}reserve_to_bound_seconds",
            "From a gang's reservation until all of its minimum was bound", buckets=_WAITS,
            registry=registry,
        )  # fmt: skip
        self._rollbacks = Counter(
            f"{OURS}rollbacks", "Gangs that were taken back", ("cause",), registry=registry
        )
        self._held = Counter(
            f"{OURS}held_gpu_seconds",
            "Devices that were reserved for gangs that were not bound yet, by the second",
            ("resource",), registry=registry,
        )  # fmt: skip
        self._wasted = Counter(
            f"{OURS}wasted_gpu_seconds", "The same, for gangs that were not bound after all",
            ("resource",), registry=registry,
        )  # fmt: skip
        metrics.refresh += [self._settle, self._look]

    @override
    def asked(self, key: Key) -> None:
        """A gang asks for room; that counts from the first time."""
        self._asked.setdefault(key, self._clock.monotonic())

    @override
    def decided(self, key: Key, answer: str) -> None:
        """The engine has answered: `placed` or `refused`."""
        begun = self._asked.pop(key, None)
        if begun is not None:
            self._decisions.observe(self._clock.monotonic() - begun)
        self._answers.labels(answer).inc()

    @override
    def planned(self, seconds: float) -> None:
        """The engine has worked for so long on one plan."""
        self._plans.observe(seconds)

    @override
    def forget(self, key: Key) -> None:
        """A gang asks for nothing any more."""
        self._asked.pop(key, None)

    def on_reservation(self, change: Change[Custom]) -> None:
        """A reservation has changed."""
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = meta.namespace, meta.name
        there = self._known.reservation(key)
        if there is not None and not there.ours:
            there = None  # room that a person keeps
        spent, news = self._ledger.see(key, there, self._clock.monotonic())
        if not self._leads():
            return
        self._spend(spent)
        match news:
            case Bound():
                self._bound(news)
            case RolledBack(_, message):
                cause = next((cause for words, cause in _CAUSES if words in message), "not_bound")
                self._rollbacks.labels(cause).inc()
            case None:
                pass

    def _bound(self, news: Bound) -> None:
        self._binding.observe(news.seconds)
        if news.score is not None:
            self._scores.observe(news.score)
        gang = self._known.gang(news.key)
        born = gang.metadata.creation_timestamp if gang else None
        if born is not None:
            self._waits.observe(max(0.0, (self._clock.now() - born).total_seconds()))

    def _spend(self, spent: Spent) -> None:
        for resource, seconds in spent.held.items():
            self._held.labels(resource).inc(seconds)
        for resource, seconds in spent.wasted.items():
            self._wasted.labels(resource).inc(seconds)

    def _settle(self) -> None:
        for spent in self._ledger.settle(self._clock.monotonic()):
            if self._leads():
                self._spend(spent)

    def _look(self) -> None:
        phases: Tally[str] = Tally()
        reasons: Tally[str] = Tally()
        for phase, reason in self._known.stages():
            phases[phase] += 1
            if reason:
                reasons[reason] += 1
        for each in Phase:
            self._phases.labels(each.value).set(phases[each.value])
        self._waiting.clear()  # reasons that nobody has any more
        for reason, count in reasons.items():
            self._waiting.labels(reason).set(count)
        for name, depth in zip(("look", "place"), self._known.queues(), strict=True):
            self._depth.labels(name).set(depth)
