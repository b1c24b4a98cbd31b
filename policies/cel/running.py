"""An expression at work: its variables, and how much work is left to it."""

from collections.abc import Callable
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


# The meter, and then the variables in their slots: nothing is faster to reach than a list's entry.
Frame = list[object]
Run = Callable[[Frame], object]
FIRST_SLOT: Final = 1


def charge(frame: Frame, steps: int) -> None:
    """Take steps of a frame's meter; raises TooMuchWorkError when there are none left."""
    meter = frame[0]
    if isinstance(meter, Meter):
        meter.left -= steps
        if meter.left < 0:
            raise TooMuchWorkError


def whole(number: int) -> int:
    """Give a number that fits into 64 bits, as CEL's do."""
    if LOWEST <= number <= HIGHEST:
        return number
    raise ExpressionError("a number does not fit into 64 bits")
