"""A candidate for the policy, tried beside the one in force: what it would do otherwise is counted.

It never changes an answer. It is tried in a thread of its own, after the answer, on as many reviews
as a tenth of that thread's time allows; the others are skipped, and counted.
"""

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from api import names
from policies import policy_source, verdicts
from policies.admission import Judge, Request
from policies.answers import Answer
from policies.known import Known
from policies.policy_source import BadPolicyError, Source
from policies.verdicts import Difference
from webhook.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

# What waits is whole objects, so that more would cost memory.
MOST_WAITING: Final = 4
# Of each second of work, nine are rested.
REST: Final = 9.0
LONGEST_REST: Final = 1.0
# One line of the log about the same rule in the same way, and one about anything.
SAME_SECONDS: Final = 60.0
ANY_SECONDS: Final = 1.0
MOST_SERIES: Final = 512
LONGEST_WORD: Final = 63
STOP_SECONDS: Final = 2.0
OTHERS: Final = "others"


@dataclass(frozen=True)
class _Asked:
    judge: Judge
    request: Request
    answer: Answer


class Shadow:
    """Tries the candidate on reviews that were answered. Safe to ask from many threads."""

    def __init__(
        self, known: Known, namespace: str, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self._known = known
        self._origin = f"ConfigMap {namespace}/{names.POLICY_CONFIG} key {names.CANDIDATE_KEY}"
        self._metrics = metrics
        self._clock = clock
        self._candidate: Source | None = None
        self._waiting: queue.Queue[_Asked | None] = queue.Queue(MOST_WAITING)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="shadow", daemon=True)
        self._series: set[Difference] = set()
        self._said: dict[Difference, float] = {}
        self._said_any = float("-inf")
        metrics.candidate_is_good.set(1)

    def take(self, text: str | None) -> None:
        """Try this from now on; nothing is tried where there is none, or none that could be."""
        try:
            found = None if text is None else policy_source.read(self._origin, text)
        except BadPolicyError as error:
            self._go_by(None)
            self._metrics.candidate_is_good.set(0)
            LOG.error("%s; it is not tried", error)  # noqa: TRY400 - the line says it all
            return
        self._metrics.candidate_is_good.set(1)
        if found != self._candidate:
            self._go_by(found)

    def note(self, judge: Judge, request: Request, answer: Answer) -> None:
        """Have a review tried that was answered so, if there is time; returns at once."""
        if self._candidate is None:
            return
        try:
            self._waiting.put_nowait(_Asked(judge, request, answer))
        except queue.Full:
            self._metrics.candidate_skipped.inc()

    def start(self) -> None:
        """Begin to try, in the process that answers."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; what waits is left."""
        self._ended.set()
        with suppress(queue.Full):  # then it looks whether it has ended after the next
            self._waiting.put_nowait(None)
        self._thread.join(STOP_SECONDS)

    def _go_by(self, found: Source | None) -> None:
        self._candidate = found
        # What an earlier one did says nothing of this one.
        self._metrics.candidate.clear()
        self._metrics.candidate_differences.clear()
        self._series = set()
        if found is not None:
            self._metrics.candidate.labels(found.revision).set(1)
            LOG.info("trying the candidate of revision %s beside the policy", found.revision)

    def _work(self) -> None:
        while not self._ended.is_set():
            asked = self._waiting.get()
            if asked is None:
                continue
            begun = self._clock()
            self.try_one(asked.judge, asked.request, asked.answer)
            spent = max(0.0, self._clock() - begun)
            self._ended.wait(min(LONGEST_REST, REST * spent))

    def try_one(self, judge: Judge, request: Request, answer: Answer) -> None:
        """Judge a review by the candidate, and count how it would be answered otherwise."""
        candidate = self._candidate
        if candidate is None:
            return
        try:
            other = judge(candidate.policy, self._known, request)
        except Exception as error:  # noqa: BLE001 - the edge of a thread that must go on
            # Not the traceback: it may hold what people wrote into their objects.
            self._metrics.candidate_skipped.inc()
            LOG.error("trying the candidate failed: %s", type(error).__name__)  # noqa: TRY400 - see above
            return
        self._metrics.candidate_compared.inc()
        for each in verdicts.differences(answer, other):
            self._count(each)
            self._sample(each, request, candidate.revision)

    def _count(self, each: Difference) -> None:
        known = each in self._series or len(self._series) < MOST_SERIES
        if known:
            self._series.add(each)
        rule = each.rule if known else OTHERS
        self._metrics.candidate_differences.labels(rule, each.was, each.now).inc()

    def _sample(self, each: Difference, request: Request, revision: str) -> None:
        """Tell of one in a while, with nothing in it that somebody wrote into the object."""
        now = self._clock()
        if now < self._said_any + ANY_SECONDS:
            return
        if now < self._said.get(each, float("-inf")) + SAME_SECONDS:
            return
        if len(self._said) >= MOST_SERIES:
            self._said.clear()
        self._said[each] = self._said_any = now
        LOG.info(
            "candidate %s: rule %s, %s to %s, for a %s in namespace %s",
            revision,
            each.rule,
            each.was,
            each.now,
            _word(request.kind),
            _word(request.namespace),
        )


def _word(text: str) -> str:
    """Give a name that came with a review as it may be shown."""
    return text if len(text) <= LONGEST_WORD and text.isprintable() else "(odd)"
