"""An answer as those hear of it who write it down."""

from collections.abc import Callable

import msgspec

from policies.answers import Answer
from policies.policy import Policy
from webhook.metrics import Decision
from webhook.review import Review


class Heard(msgspec.Struct, frozen=True):
    """A review with its answer. `weight` is how many bytes it keeps in memory."""

    path: str
    asked: Review
    answer: Answer
    decision: Decision
    policy: Policy
    seconds: float
    weight: int
    is_late: bool = False
    is_judged_again: bool = False


Hear = Callable[[Heard], None]
"""Takes an answer in; it must neither wait nor raise."""
