"""Many requests at once, but not too many: the API server should see a stream, not a burst."""

import asyncio
from collections.abc import Awaitable, Iterable

from kube.errors import ApiError


async def all_of(requests: Iterable[Awaitable[None]], at_once: int) -> list[ApiError]:
    """Wait for every request, `at_once` at a time; return what the API server refused.

    Failures do not stop the others: each request must be right by itself.
    """
    room = asyncio.Semaphore(at_once)

    async def one(request: Awaitable[None]) -> ApiError | None:
        async with room:
            try:
                await request
            except ApiError as error:
                return error
            return None

    outcomes = await asyncio.gather(*map(one, requests))
    return [outcome for outcome in outcomes if outcome is not None]
