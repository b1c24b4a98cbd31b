"""Kubernetes quantities as whole numbers: CPU in thousandths, everything else in its own unit."""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

CPU: Final = "cpu"
PODS: Final = "pods"
_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"

# As good as endless, and small enough that sums over a node's pods stay within 64 bits.
MOST: Final = 2**50

# For schemas: what the API server takes as an amount that is not negative.
PATTERN: Final = r"^[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$"

_BILLION: Final = 10**9

# No amount takes more to write; endless digits would overflow the arithmetic.
_LONGEST: Final = 1_024
# Longer texts are read each time, so that what is remembered stays small.
_LONGEST_REMEMBERED: Final = 32

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]{1,3})"
)
_FACTORS: Final[Mapping[str, Decimal]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}

Amounts = Mapping[str, int]


class BadQuantityError(ValueError):
    """The text is not a Kubernetes quantity."""


def parse(text: str) -> Decimal:
    """Read a quantity as the API server does; BadQuantityError names what was written."""
    match = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        text = text[:_LONGEST_REMEMBERED]
        raise BadQuantityError(f"{text!r} is not a quantity such as 4, 500m, 1.5 or 16Gi")
    suffix = match["suffix"]
    # `1E` is an exa; `1E3` is an exponent: the pattern leaves digits only for the latter.
    if suffix[1:].lstrip("+-").isdigit():
        return Decimal(match["number"] + suffix)
    return Decimal(match["number"]) * _FACTORS[suffix]


def whole(resource: str, text: str) -> int:
    """Give a resource's amount in the engine's unit, rounded up as Kubernetes rounds.

    CPU counts in thousandths, every other resource in its own unit. What is beyond any machine
    counts as MOST, so that no number somebody writes can overflow the engine.
    """
    if len(text) > _LONGEST_REMEMBERED:
        return _whole(text, 1000 if resource == CPU else 1)
    return _remembered(text, 1000 if resource == CPU else 1)


def _whole(text: str, scale: int) -> int:
    amount = parse(text) * scale
    return MOST if amount >= MOST else int(amount.to_integral_value(ROUND_CEILING))


# A cluster writes the same few amounts over and over.
_remembered: Final = lru_cache(maxsize=4096)(_whole)


def billionths(resource: str, text: str) -> int:
    """Give an amount in billionths of the engine's unit, for sums that are rounded at the end.

    Kubernetes keeps amounts to a billionth, rounded up, so of CPU that is a million such.
    """
    scale = 1000 if resource == CPU else 1
    if len(text) > _LONGEST_REMEMBERED:
        return _billionths(text, scale)
    return _remembered_billionths(text, scale)


def _billionths(text: str, scale: int) -> int:
    amount = parse(text) * _BILLION
    if amount >= MOST * _BILLION:
        return MOST * _BILLION
    return int(amount.to_integral_value(ROUND_CEILING)) * scale


_remembered_billionths: Final = lru_cache(maxsize=4096)(_billionths)


def amounts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Read a resource list."""
    return {resource: whole(resource, text) for resource, text in quantities.items()}


def plus(left: Amounts, right: Amounts) -> dict[str, int]:
    """Add resource by resource; what only one side names is kept."""
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


def larger(left: Amounts, right: Amounts) -> dict[str, int]:
    """Take the larger amount of each resource."""
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()}


def text(resource: str, amount: int) -> str:
    """Write an amount the way people read it: `16`, `500m`, `64Gi`; what is counted, in full."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for suffix in ("Ti", "Gi", "Mi", "Ki") if _in_bytes(resource) else ():
        factor = int(_FACTORS[suffix])
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)


def _in_bytes(resource: str) -> bool:
    """Tell bytes from pods and devices, of which a thousand and twenty-four are no `1Ki`."""
    return resource in _BYTES or resource.startswith(_HUGE_PAGES)
