"""No log for tests that fail on purpose a thousand times."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@asynccontextmanager
async def quietly() -> AsyncIterator[None]:
    with quiet():
        yield
