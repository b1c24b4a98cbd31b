"""Chance that repeats itself."""

import random


def dice(seed: int = 1) -> random.Random:
    """A generator for jitter; the same seed gives the same throws."""
    return random.Random(seed)  # noqa: S311 - spreads waits, guards no secret
