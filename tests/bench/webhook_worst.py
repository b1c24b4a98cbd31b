"""The worst input there is, and how long its answer takes: no review may hold up others."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Final

from policies.known import NOTHING
from policies.policy import BUILT_IN, Policy
from tests.bench.harness import Budget, Row
from tests.support.bad_reviews import Case
from tests.support.bad_routes import GROUPS, STRICT
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS
from webhook.server import YOUNG

LONGEST: Final = Budget(0.1)
TRIES: Final = 3
FOR_EVER: Final = 1e12


def worst(groups: dict[str, Callable[[], Iterator[Case]]] = GROUPS) -> list[Row]:
    """Give the slowest answer of each sort of bad input, in this thread's processor time.

    By the wall the same answers take longer wherever somebody else wants the core. Each is asked
    twice over: of the built-in policy, and of one that looks at pods all over.
    """
    every = [_answering(policy) for policy in (BUILT_IN, STRICT)]
    rows, before = [], gc.get_threshold()
    gc.set_threshold(YOUNG)  # as the server does
    for group, cases in groups.items():
        took, what = max(_slowest(each, case) for case in cases() for each in every)
        rows.append(Row(f"bad input, the worst of {group}: {what}", took, "s", None, LONGEST))
    gc.set_threshold(*before)
    return rows


def _answering(policy: Policy) -> Answering:
    return Answering(lambda: policy, NOTHING, Metrics(PATHS), time.perf_counter)


def _slowest(answering: Answering, case: Case) -> tuple[float, str]:
    return min(_seconds(answering, case) for _ in range(TRIES)), case.what


def _seconds(answering: Answering, case: Case) -> float:
    begun = time.thread_time()
    answering.answer(PATHS[case.path], case.body, Span(0.0, FOR_EVER))
    return time.thread_time() - begun
