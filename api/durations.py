"""Durations as Go writes them: `4h`, `1h30m`, `300ms`."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
# Go counts nanoseconds in 64 bits.
MOST: Final = 2**63 - 1
# Longer than any duration that fits.
_LONGEST: Final = 64
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_FORM: Final = re.compile(rf"[+-]?(?:(?:{_PART.pattern})+|0)")


class BadDurationError(ValueError):
    """The text is not a duration."""


# The same few are in all sets of a cluster, and none that can be read is long.
@lru_cache(maxsize=1024)
def nanoseconds(text: str) -> int:
    """Read a duration; BadDurationError names what was written."""
    if len(text) > _LONGEST or not _FORM.fullmatch(text):
        raise BadDurationError(f"{text!r} is not a duration such as 4h, 1h30m or 300ms")
    total = sum(int(Decimal(number) * _UNITS[unit]) for number, unit in _PART.findall(text))
    if total > MOST:
        raise BadDurationError(f"{text!r} is longer than {MOST // _UNITS['h']}h")
    return -total if text[0] == "-" else total


def seconds(text: str) -> float:
    """Read a duration, in seconds."""
    return nanoseconds(text) / 10**9
