"""A client that talks to a fake API server, with a clock that leaps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kube.access import Credentials
from kube.client import Client
from kube.tokens import FixedHeader, TokenSource
from kube.transport import Patience
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock

NOBODY = FixedHeader()


@dataclass
class Fixture:
    api: FakeApi
    client: Client
    clock: LeapingClock


@asynccontextmanager
async def talking(
    tokens: TokenSource = NOBODY, patience: Patience | None = None
) -> AsyncIterator[Fixture]:
    clock = LeapingClock()
    async with fakeapi.serving(FakeApi()) as api:
        credentials = Credentials(api.url, None, tokens)
        async with Client(credentials, "tester", clock, patience) as client:
            yield Fixture(api, client, clock)
