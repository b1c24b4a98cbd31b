"""An expression at work: its variables, and how much work is left to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# For one rule over one set, a few thousandths of a second. A rule that goes once through all
# containers of the largest set takes a tenth of it.
MOST_STEPS: Final = 50_000

HIGHEST: Final = 2**63 - 1
LOWEST: Final = -(2**63)


class ExpressionError(Exception):
    """The expression has no value for what it looks at; the message says why."""


class TooMuchWorkError(Exception):
    """The expression would take longer than anybody may wait."""


class Meter:
    """Counts steps down, so that the same input always ends in the same place."""

    __slots__ = ("left",)

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = most

    def charge(self, steps: int) -> None:
        """Take steps; raises TooMuchWorkError when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWorkError


@dataclass(slots=True)
class Frame:
    """The variables in their slots, and the meter."""

    slots: list[object]
    meter: Meter


Run = Callable[[Frame], object]


def whole(number: int) -> int:
    """Give a number that fits into 64 bits, as CEL's do."""
    if LOWEST <= number <= HIGHEST:
        return number
    raise ExpressionError("a number does not fit into 64 bits")
