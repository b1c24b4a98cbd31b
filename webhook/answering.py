"""From the bytes of a review to the bytes of its answer, whatever happens on the way."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from kube import logs
from policies.admission import Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import Known
from policies.policy import Policy
from policies.switching import ALL_ON, Switches, judge_of
from webhook import faults, review
from webhook.heard import Hear, Heard
from webhook.metrics import Decision, Metrics
from webhook.review import Opened, Unanswerable, Unfit
from webhook.routes import Route
from webhook.shadowing import Shadow
from webhook.turnstile import Turnstile

LOG: Final = logging.getLogger(__name__)


class Reply(msgspec.Struct, frozen=True):
    """An HTTP reply."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class Span(msgspec.Struct, frozen=True):
    """When the first bytes of a review were there, and by when it must be answered."""

    begun: float
    until: float


class Answering:
    """Answers reviews by a policy and what is known. Safe to ask from many threads.

    A fault of ours is answered as a refusal, never as an HTTP error: what a failed call means is
    up to the webhook configuration, and a pod that slipped through unseen may start half a gang.
    """

    def __init__(
        self,
        policy: Callable[[], Policy],
        known: Known,
        metrics: Metrics,
        clock: Callable[[], float],
        now: Callable[[], datetime] | None = None,
        switches: Switches = ALL_ON,
    ) -> None:
        self._policy = policy
        self._switches = switches
        self._known = known
        self._metrics = metrics
        self._turnstile = Turnstile(clock)
        self._now = now
        self._shadow: Shadow | None = None
        self._hear: Hear = _hear_nothing
        self.clock: Final = clock

    def try_beside(self, shadow: Shadow) -> None:
        """Have a candidate for the policy tried on what is answered."""
        self._shadow = shadow

    def tell(self, hear: Hear) -> None:
        """Have somebody told of every answer to a review, right before it is given."""
        self._hear = hear

    def rejected(self, route: Route, reply: Reply) -> Reply:
        """Count a reply to what never came to be read as a review, and give it back."""
        self._metrics.of(route.path).reject(reply.status)
        return reply

    def answer(self, route: Route, body: bytes, span: Span) -> Reply:
        """Answer the review in `body`: a well-formed review, or 400 where none can be answered."""
        meters = self._metrics.of(route.path)
        meters.in_flight.inc()
        try:
            opened = review.opened(body)
            if isinstance(opened, Unanswerable):
                meters.count("", Decision.MALFORMED, dry_run=False)
                return Reply(400, opened.message.encode(errors="replace"))
            asked = opened.review
            logs.about(asked.asked.kind.kind, asked.asked.namespace or "", asked.asked.name or "")
            # Asked for once: a review is judged by one policy, whatever becomes of it meanwhile.
            policy = self._policy()
            answer, decision = self._judged_in_time(route, opened, span.until, policy, len(body))
            written = review.write(asked.uid, answer)
            meters.count(asked.asked.operation, decision, dry_run=asked.dry_run)
            now = self.clock()
            self._hear(
                Heard(
                    route.path,
                    asked,
                    answer,
                    decision,
                    policy,
                    now - span.begun,
                    len(body),
                    is_late=now > span.until,
                    is_judged_again=route.is_judged_again,
                )
            )
            return Reply(200, written, "application/json")
        finally:
            logs.about_nothing()
            now = self.clock()
            if now > span.until:
                meters.late.inc()
            meters.duration.observe(now - span.begun)
            meters.in_flight.dec()

    def _judged_in_time(
        self, route: Route, opened: Opened, until: float, policy: Policy, size: int
    ) -> tuple[Answer, Decision]:
        meters = self._metrics.of(route.path)
        if not self._turnstile.enter(until, size):
            meters.shed.inc()
            return route.crowded, Decision.SHED
        try:
            request = opened.request(self._now() if self._now is not None else None)
            if isinstance(request, Unfit):
                return Refuse(Code.INVALID, request.message), Decision.REFUSE
            return self._judged(route, request, policy)
        except Exception as error:  # noqa: BLE001 - the edge: the API server gets an answer
            asked = opened.review.asked
            operation, kind = asked.operation, asked.kind.kind
            LOG.error(  # noqa: TRY400 - the words of an error may be somebody's secret
                "judging a %s of kind %s failed: %s", operation, kind, faults.traced(error)
            )
            meters.faults.inc()
            message = (
                f"Penstock failed to judge this {kind or 'object'}: a fault of its own, "
                "written to the webhook's log"
            )
            return Refuse(Code.INTERNAL, message), Decision.FAULT
        finally:
            self._turnstile.leave(size)

    def _judged(self, route: Route, request: Request, policy: Policy) -> tuple[Answer, Decision]:
        if not route.concerns(request):
            self._metrics.of(route.path).strays.inc()
        judge = judge_of(route.judge, self._switches)
        answer = judge(policy, self._known, request)
        if self._shadow is not None and route.patches:
            # Of the two calls about a set this is the one with all of it.
            self._shadow.note(judge, request, answer)
        if isinstance(answer, Refuse):
            return answer, Decision.REFUSE
        if answer.patch and not route.patches:
            # What it would write is of no use here: it was written before, or it never is.
            answer = Allow((), answer.warnings, answer.findings)
        return answer, Decision.ALLOW


def _hear_nothing(_heard: Heard) -> None:
    return
