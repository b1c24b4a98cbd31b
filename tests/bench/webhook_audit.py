"""What the audit log adds to a review, in the thread that answers it."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.bench.harness import Budget, Row
from tests.bench.webhook_reviews import pod_clique_set
from tests.support.auditstand import Stand, ledger, review
from webhook.heard import Heard
from webhook.journal import Journal

PATH: Final = "/validate/podcliquesets"
MOST: Final = Budget(50)
CALLS: Final = 1000


class _Timed:
    """Hears answers for a journal, and how long that takes of the thread's processor time."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.took: list[float] = []

    def __call__(self, heard: Heard) -> None:
        begun = time.thread_time_ns()
        self._journal.note(heard)
        self.took.append((time.thread_time_ns() - begun) / 1000)


def added() -> list[Row]:
    """Give microseconds of refusals that have records, of those beyond the bounds, and of others.

    Records are written meanwhile, in the journal's own thread.
    """
    refused = pod_clique_set(5)
    refused["spec"] = {"replicas": -1}
    bodies = {
        "a refusal with a record": (review(PATH, refused), False),
        "a refusal beyond the bounds": (review(PATH, refused), True),
        "what is let in": (review(PATH, pod_clique_set(5)), True),
    }
    rows = []
    for what, (body, bounded) in bodies.items():
        took = _took(body, bounded=bounded)
        p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[-1]
        rows.append(Row(f"what the audit log adds to {what}", p50, "µs", None, MOST))
        rows.append(Row(f"what the audit log adds to {what}, p99", p99, "µs"))
    return rows


def _took(body: bytes, *, bounded: bool) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        stand = Stand(ledger(Path(folder)))
        if not bounded:
            stand.unbounded()
        timed = _Timed(stand.journal)
        stand.answering.tell(timed)
        stand.journal.start()
        try:
            for _ in range(CALLS):
                stand.ask(PATH, body)
        finally:
            stand.journal.stop(60.0)
    return timed.took
