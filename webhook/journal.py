"""From answers to lines of the audit log, off the way of those who wait for an answer."""

import logging
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from kube.clock import Clock
from policies import audit_building, audit_records
from policies.answers import Allow, Refuse
from policies.audit_bounds import Bounds, Sort
from policies.audit_building import Terms
from policies.audit_records import Asked, Asker, Line, Outcome, Record, Summary
from webhook import faults
from webhook.audit_ledger import Ledger
from webhook.audit_metrics import AuditMetrics
from webhook.heard import Heard
from webhook.metrics import Decision
from webhook.review import Unfit

LOG: Final = logging.getLogger(__name__)

MOST_WAITING: Final = 1024
MOST_BYTES: Final = 8 * 1024 * 1024
AT_ONCE: Final = 8
# Threads share a core with those that answer: of each second of work, two are rested.
REST: Final = 2.0
LONGEST_REST: Final = 0.5
SUMMARY_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 1.0
# Lines are gathered for a moment, since each write waits for the disk.
GATHER_SECONDS: Final = 0.05

_WORDS: Final = {Decision.SHED: audit_records.SHED, Decision.FAULT: audit_records.ERROR}


class Told(Protocol):
    """Somebody who hears of records as they are written."""

    def __call__(self, record: Record, /) -> None:
        """Take a record in, at once and without raising."""
        ...


@dataclass(frozen=True)
class Choices:
    """What of the log is to be chosen: whether what was let in has records too."""

    pod: str
    key: bytes = field(repr=False)
    admitted: bool = False


@dataclass(frozen=True, slots=True)
class _Waiting:
    heard: Heard
    word: str
    now: datetime
    suppressed: int


class Journal:
    """Takes answers in from many threads, and writes their records in one of its own.

    Who tells it of an answer waits for nothing but a lock: there is a bound on what waits here,
    and what comes on top is counted and gone.
    """

    def __init__(
        self,
        ledger: Ledger,
        choices: Choices,
        metrics: AuditMetrics,
        clock: Clock,
        told: Told | None = None,
    ) -> None:
        self._ledger = ledger
        self._choices = choices
        self._metrics = metrics
        self._clock = clock
        self._told = told
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._bounds = Bounds()
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._dropped: Counter[str] = Counter()
        self._terms: Terms | None = None
        self._ending = threading.Event()
        self._summed_up = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Write what waits, and close the log; gives up after so long."""
        self._ending.set()
        self._news.set()
        self._thread.join(seconds)

    def note(self, heard: Heard) -> None:
        """Take an answer in, if there is anything to tell of it."""
        word = word_for(heard, admitted=self._choices.admitted)
        if word is None:
            return
        sort = _sort(heard)
        with self._lock:
            if self._ending.is_set():
                self._drop("ending")
                return
            if len(self._waiting) >= MOST_WAITING or self._bytes + heard.weight > MOST_BYTES:
                self._drop("queue")
                return
            over = self._bounds.take(sort, self._clock.monotonic())
            if over is None:
                self._metrics.suppressed.inc()
                return
            self._waiting.append(_Waiting(heard, word, self._clock.now(), over))
            self._bytes += heard.weight
        self._news.set()

    def _drop(self, reason: str) -> None:
        self._metrics.dropped.labels(reason).inc()
        self._dropped[reason] += 1

    def _run(self) -> None:
        while True:
            self._news.wait(IDLE_SECONDS)
            self._news.clear()
            ending = self._ending.is_set()
            self._write_all(sum_up=ending or self._is_time_to_sum_up())
            if ending:
                self._ledger.close()
                return
            self._ending.wait(GATHER_SECONDS)

    def _is_time_to_sum_up(self) -> bool:
        return self._clock.monotonic() - self._summed_up >= SUMMARY_SECONDS

    def _write_all(self, *, sum_up: bool) -> None:
        while batch := self._taken():
            begun = self._clock.monotonic()
            self._append([line for each in batch if (line := self._record(each)) is not None])
            # At the end there is no time for it, and nobody is answered any more.
            worked = self._clock.monotonic() - begun
            self._ending.wait(min(REST * worked, LONGEST_REST))
        if sum_up:
            self._summed_up = self._clock.monotonic()
            self._append(self._summaries())

    def _taken(self) -> list[_Waiting]:
        with self._lock:
            count = min(AT_ONCE, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(count)]
            self._bytes -= sum(each.heard.weight for each in batch)
            return batch

    def _append(self, lines: list[Line]) -> None:
        if not lines:
            return
        try:
            missed = self._ledger.append(lines)
        except Exception:  # the worker's edge: the next lines are another chance
            LOG.exception("lines of the audit log could not be written")
            missed = len(lines)
            self._metrics.dropped.labels("fault").inc(missed)
        self._metrics.missed.inc(missed)
        self._metrics.failing.set(self._ledger.is_failing)
        self._metrics.last.set(self._ledger.at.seq)

    def _record(self, waiting: _Waiting) -> Record | None:
        try:
            record = self._built(waiting)
        except Exception as error:  # noqa: BLE001 - the worker's edge: one odd review must not end the log
            LOG.error(  # noqa: TRY400 - written without what people wrote
                "a record of the audit log could not be made: %s", faults.traced(error)
            )
            with self._lock:
                self._drop("fault")
            return None
        self._metrics.records.labels(record.decision).inc()
        if self._told is not None:
            self._told(record)
        return record

    def _built(self, waiting: _Waiting) -> Record:
        heard = waiting.heard
        terms = self._terms
        if terms is None or terms.policy is not heard.policy:
            terms = self._terms = audit_building.terms(self._choices.key, heard.policy)
        outcome = Outcome(
            waiting.word, heard.answer, heard.policy, heard.seconds, waiting.suppressed
        )
        return audit_building.record(_asked(heard), outcome, waiting.now, self._choices.pod, terms)

    def _summaries(self) -> list[Line]:
        with self._lock:
            owed, dropped = self._bounds.owed(), self._dropped
            self._dropped = Counter()
        ts, pod = audit_building.timestamp(self._clock.now()), self._choices.pod
        lines: list[Line] = [
            Summary(
                ts=ts, pod=pod, suppressed=count, ns=sort.namespace, user=sort.user,
                rules=sort.rules, dry_run=sort.dry_run,
            )
            for sort, count in owed
        ]  # fmt: skip
        lines += [Summary(ts=ts, pod=pod, dropped=n, reason=why) for why, n in dropped.items()]
        return lines


def word_for(heard: Heard, *, admitted: bool) -> str | None:
    """Say what became of a review, in the log's words; None if it has no record."""
    if heard.decision in _WORDS:
        return _WORDS[heard.decision]
    if isinstance(heard.answer, Refuse):
        return audit_records.DENY
    if heard.is_late:
        return audit_records.LATE
    # What both of a pair of webhooks say is noted once; a refusal by the first never gets further.
    return None if heard.is_judged_again else _word_for_let_in(heard.answer, admitted=admitted)


def _word_for_let_in(answer: Allow, *, admitted: bool) -> str | None:
    if answer.warnings:
        return audit_records.WARN
    if answer.findings:
        return audit_records.AUDIT
    return audit_records.ALLOW if admitted else None


def _sort(heard: Heard) -> Sort:
    head, answer = heard.asked.asked, heard.answer
    rules = {finding.rule for finding in answer.findings}
    if isinstance(answer, Refuse):
        rules |= {problem.rule for problem in answer.problems if problem.rule}
    named = ",".join(sorted(rules)[:8]) if rules else webhook_of(heard.path)
    return Sort(head.namespace or "", head.user_info.username, named, heard.asked.dry_run)


def webhook_of(path: str) -> str:
    """Give the name of the webhook that answers at a path."""
    return path.strip("/").replace("/", "-")


def _asked(heard: Heard) -> Asked:
    head = heard.asked.asked
    request = heard.asked.request()
    user = head.user_info
    return Asked(
        uid=head.uid,
        webhook=webhook_of(heard.path),
        operation=head.operation,
        group=head.kind.group,
        version=head.kind.version,
        kind=head.kind.kind,
        subresource=head.sub_resource or "",
        namespace=head.namespace or "",
        name=head.name or "",
        user=Asker(user.username, user.uid, user.groups or (), tuple(user.extra or ())),
        dry_run=heard.asked.dry_run,
        object=None if isinstance(request, Unfit) else request.object,
    )
