"""Patterns in which `*` stands for any text, as people write them in the policy."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

LONGEST: Final = 512
_KEPT: Final = 4096


def matches(pattern: str, text: str) -> bool:
    """Tell whether the pattern stands for all of the text."""
    if "*" not in pattern:
        return pattern == text
    return pattern == "*" or _compiled(pattern).fullmatch(text) is not None


def any_matches(patterns: Iterable[str], text: str) -> bool:
    """Tell whether one of the patterns does."""
    for pattern in patterns:  # noqa: SIM110 - `any` costs more, and this is asked for every rule
        if pattern == "*" or matches(pattern, text):
            return True
    return False


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Possessive in effect: each piece is found as early as it can be, and never looked for again,
    # so that no text makes a pattern of many stars slow.
    first, *rest = (re.escape(piece) for piece in pattern.split("*"))
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}" if rest else first, re.DOTALL)
