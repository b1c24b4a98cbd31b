from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from api import exits
from kube.access import Credentials
from kube.client import Client
from kube.resources import LEASES, NODES, PODGANGS, PODS
from kube.startup import StartupFailure, preflight
from kube.tokens import FileToken, FixedHeader, TokenSource
from kube.transport import Patience
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock

NOBODY = FixedHeader()


@asynccontextmanager
async def starting(
    tokens: TokenSource = NOBODY, patience: Patience | None = None
) -> AsyncIterator[tuple[FakeApi, Client]]:
    async with fakeapi.serving(FakeApi()) as api:
        credentials = Credentials(api.url, None, tokens)
        async with Client(credentials, "tester", LeapingClock(), patience) as client:
            yield api, client


async def failure(client: Client, wait: float = 2.0) -> StartupFailure:
    with pytest.raises(StartupFailure) as caught:
        await preflight(client, [PODGANGS], wait)
    assert "\n" not in caught.value.line
    assert str(caught.value) == caught.value.line
    return caught.value


async def test_every_kind_is_tried_with_one_object_where_we_may_look() -> None:
    async with starting() as (api, client):
        await preflight(client, [PODGANGS, PODS, NODES], 5.0, "here")
        assert [seen.path for seen in api.seen] == [
            "/apis/scheduler.grove.io/v1alpha1/namespaces/here/podgangs",
            "/api/v1/namespaces/here/pods",
            "/api/v1/nodes",
        ]
        assert all(seen.query == {"limit": "1"} for seen in api.seen)
        await preflight(client, [PODS], 5.0)
        assert api.seen[-1].path == "/api/v1/pods"


async def test_no_server_is_waited_for_and_then_told_with_its_address() -> None:
    async with starting() as (api, client):
        await api.stop()
        failed = await failure(client)
        assert failed.exit_code == exits.NO_API_SERVER
        assert failed.line.startswith(
            f"no API server at {api.url}: [Errno 111] Connect call failed"
        )
        assert failed.line.endswith("that the address in the kubeconfig is right")
        assert client.clock.monotonic() >= 1001.5


async def test_a_server_that_comes_up_in_time_is_enough() -> None:
    async with starting() as (api, client):
        api.answers.extend([fakeapi.status(503), fakeapi.hang_up, fakeapi.status(429)])
        await preflight(client, [PODGANGS], 30.0)
        assert len(api.seen) >= 4


async def test_a_server_that_never_answers_does_not_outlast_the_wait() -> None:
    async with starting() as (api, client):
        api.answers.extend([fakeapi.say_nothing] * 3)
        failed = await failure(client, 0.0)
        assert failed.exit_code == exits.NO_API_SERVER
        assert "no answer in time" in failed.line


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "does not accept our credentials: who are you"), (403, "a right is missing: who are")],
)
async def test_refused_credentials_are_told_at_once(status: int, words: str) -> None:
    async with starting() as (api, client):
        api.answers.append(fakeapi.status(status, message="who are you"))
        failed = await failure(client)
        assert failed.exit_code == exits.BAD_CREDENTIALS
        assert words in failed.line
        assert len(api.seen) == 1


async def test_a_token_that_is_not_there_is_bad_credentials() -> None:
    tokens = FileToken(Path("/no/such/token"), LeapingClock())
    async with starting(tokens) as (_, client):
        failed = await failure(client)
        assert failed.exit_code == exits.BAD_CREDENTIALS
        assert failed.line == "token file /no/such/token: there is no such file"


async def test_a_missing_kind_is_named_with_the_fix() -> None:
    async with starting() as (api, client):
        api.answers.append(fakeapi.text(404, "404 page not found"))
        failed = await failure(client)
        assert failed.exit_code == exits.MISSING_KIND
        assert "CustomResourceDefinition podgangs.scheduler.grove.io" in failed.line
        assert "install Penstock's Helm chart" in failed.line


async def test_a_missing_kind_of_kubernetes_itself_is_not_the_charts_fault() -> None:
    async with starting() as (api, client):
        api.answers.append(fakeapi.status(404))
        with pytest.raises(StartupFailure, match=r"does not serve leases\.coordination\.k8s\.io"):
            await preflight(client, [LEASES], 1.0)


async def test_any_other_refusal_is_told_as_it_is() -> None:
    async with starting() as (api, client):
        api.answers.append(fakeapi.status(400, message="bad limit"))
        failed = await failure(client)
        assert failed.exit_code == exits.UNEXPECTED
        assert "refuses to list podgangs.scheduler.grove.io: bad limit" in failed.line
