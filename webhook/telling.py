"""Events about refusals, in the namespace they concern: for people who wonder what became of a set.

They are a hint and not the record: few are written, and none is missed.
"""

import hashlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.access import Credentials
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.resources import EVENTS
from policies import audit_records
from policies.audit_bounds import Bounds, Pace, Sort
from policies.audit_records import Record
from webhook.audit_metrics import AuditMetrics

LOG: Final = logging.getLogger(__name__)

MOST_WAITING: Final = 100
LONGEST_NOTE: Final = 1024
POLL_SECONDS: Final = 0.5
REASON: Final = "Refused"
EACH_NAMESPACE: Final = Pace(5.0, 1 / 30)
ALL_NAMESPACES: Final = Pace(50.0, 1.0)

Write = Callable[[JsonObject, str], Awaitable[object]]
"""Writes an Event into a namespace."""


class Herald:
    """Tells of refusals by Events, as far as there are few enough."""

    def __init__(self, metrics: AuditMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._bounds = Bounds(EACH_NAMESPACE, ALL_NAMESPACES)
        # Safe to add to from another thread.
        self._waiting: deque[Record] = deque(maxlen=MOST_WAITING)

    def __call__(self, record: Record) -> None:
        """Have an Event written about a refusal. A dry run leaves no trace in the cluster."""
        if record.decision not in (audit_records.DENY, audit_records.ERROR):
            return
        if record.dry_run or not record.ns:
            return
        now = self._clock.monotonic()
        if self._bounds.take(Sort(record.ns, "", ""), now) is None:
            self._metrics.events.labels("suppressed").inc()
            return
        self._waiting.append(record)

    async def run(self, credentials: Credentials) -> None:
        """Write what waits, for ever."""
        async with Client(credentials, "webhook", self._clock, tally=self._metrics.calls) as client:
            while True:
                await self.write_waiting(
                    lambda body, namespace: client.create(EVENTS, body, namespace)
                )
                await self._clock.sleep(POLL_SECONDS)

    async def write_waiting(self, write: Write) -> None:
        """Write what waits now."""
        while self._waiting:
            record = self._waiting.popleft()
            try:
                await write(event(record), record.ns)
                self._metrics.events.labels("written").inc()
            except ApiError as error:
                # The namespace may be gone, or full; the record has it all.
                self._metrics.events.labels("failed").inc()
                LOG.info("no Event about a refusal in %s: %s", record.ns, error.message)


def event(record: Record) -> JsonObject:
    """Write the Event about a refusal; it says no more than its record."""
    name = record.name or record.generate_name
    kind = record.gvk.rpartition("/")[2]
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": _name_of(record), "namespace": record.ns},
        "eventTime": record.ts,
        "reportingController": f"{names.GROUP}/webhook",
        "reportingInstance": record.pod[:128],
        "action": "Refuse",
        "reason": REASON,
        "regarding": {
            "apiVersion": record.gvk.rpartition("/")[0],
            "kind": kind,
            "name": record.name,
            "namespace": record.ns,
        },
        "note": _note(record, f"{kind} {name}".strip())[:LONGEST_NOTE],
        "type": "Warning",
    }


def _note(record: Record, what: str) -> str:
    broken = [each for each in record.violations if each.mode == "enforce"]
    rules = ", ".join(sorted({each.rule for each in broken}))
    said = "; ".join(f"{each.path}: {each.message}".removeprefix(": ") for each in broken)
    return (
        f"{record.op.lower()} of {what} by {record.user.name} was refused by {rules} "
        f"(record {record.audit_id}): {said}"
    )


def _name_of(record: Record) -> str:
    return f"penstock-refused.{hashlib.sha256(record.audit_id.encode()).hexdigest()[:16]}"
