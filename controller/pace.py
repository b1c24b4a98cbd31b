"""Many requests at once, but not too many: the API server should see a stream, not a burst."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kube.errors import ApiError


async def all_of(requests: Iterable[Callable[[], Awaitable[None]]], at_once: int) -> list[ApiError]:
    """Make every request, `at_once` at a time; return what the API server refused.

    A refusal does not stop the others: each request must be right by itself. Any other failure
    cancels the rest and is raised.
    """
    todo = list(requests)
    if not todo:
        return []
    room = asyncio.Semaphore(at_once)
    refused: list[ApiError] = []

    async def one(request: Callable[[], Awaitable[None]]) -> None:
        async with room:
            try:
                await request()
            except ApiError as error:
                refused.append(error)

    async with asyncio.TaskGroup() as group:
        for request in todo:
            group.create_task(one(request))
    return refused
