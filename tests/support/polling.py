"""Waiting for a condition instead of sleeping long enough."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; fail the test, naming `what`, if it does not."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.005)
