import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.issue import LEAF_LIFE, Names, issue_leaf
from kube.clock import SystemClock
from tests.support.manualclock import LeapingClock
from tests.webhook.running import HOST, Files, files_in
from webhook.selfcheck import STALE, SelfCheck
from webhook.tls import Contexts


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path / "tls")


@dataclass
class Standing:
    check: SelfCheck
    clock: LeapingClock
    server: asyncio.Server


@asynccontextmanager
async def standing(files: Files, contexts: Contexts | None = None) -> AsyncIterator[Standing]:
    """A server that shows what is in the files, and a check of it."""
    shown = contexts or Contexts(files.folder, ssl.SSLSocket)
    context = shown.current()
    assert isinstance(context, ssl.SSLContext)
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    plain.load_cert_chain(files.folder / "tls.crt", files.folder / "tls.key")

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, HOST, 0, ssl=plain)
    port: int = server.sockets[0].getsockname()[1]
    clock = LeapingClock(SystemClock().now())
    async with server:
        yield Standing(SelfCheck((HOST, port), shown, clock), clock, server)


async def test_it_is_of_use_once_a_dial_was_answered(files: Files) -> None:
    leaf = files.issue()
    async with standing(files) as s:
        assert s.check.reasons() == ("a TLS dial to itself: not dialled yet",)
        await s.check.dial()
        assert s.check.reasons() == ()
        assert s.check.validity is not None
        assert leaf.certificate_pem
        assert s.check.validity.until - s.clock.now() > LEAF_LIFE - timedelta(minutes=1)


async def test_nobody_at_the_address_is_a_reason(files: Files) -> None:
    files.issue()
    async with standing(files) as s:
        s.server.close()
        await s.server.wait_closed()
        await s.check.dial()
        (reason,) = s.check.reasons()
        assert "Connect call failed" in reason


async def test_somebody_else_at_the_address_is_a_reason(files: Files, tmp_path: Path) -> None:
    files.issue()
    other = files_in(tmp_path / "other")
    other.issue()
    async with standing(files, Contexts(other.folder, ssl.SSLSocket)) as s:
        await s.check.dial()
        (reason,) = s.check.reasons()
        assert "certificate verify failed" in reason


async def test_one_failed_dial_is_no_reason_and_a_lasting_failure_is(files: Files) -> None:
    files.issue()
    async with standing(files) as s:
        await s.check.dial()
        s.server.close()
        await s.server.wait_closed()
        s.clock.skip(STALE - 1)
        await s.check.dial()
        assert s.check.reasons() == ()
        s.clock.skip(2)
        (reason,) = s.check.reasons()
        assert reason.startswith("a TLS dial to itself has failed for 15 s")


def issue_at(files: Files, now: datetime) -> None:
    leaf = issue_leaf(files.authority, Names.of(HOST), now)
    files.swap(leaf.certificate_pem, leaf.key_pem)


async def test_a_certificate_that_has_ended_is_a_reason_from_the_start(files: Files) -> None:
    issue_at(files, SystemClock().now() - LEAF_LIFE - timedelta(days=1))
    async with standing(files) as s:
        await s.check.dial()
        (reason,) = s.check.reasons()
        assert reason.startswith("the certificate has ended at 20")


async def test_a_certificate_of_the_future_is_a_reason_until_then(files: Files) -> None:
    issue_at(files, SystemClock().now() + timedelta(days=2))
    async with standing(files) as s:
        await s.check.dial()
        (reason,) = s.check.reasons()
        assert reason.startswith("the certificate is not good before 20")
        s.clock.skip(timedelta(days=2).total_seconds())
        await s.check.dial()
        assert s.check.reasons() == ()


async def test_a_certificate_that_ends_while_it_is_shown_is_a_reason(files: Files) -> None:
    files.issue()
    async with standing(files) as s:
        s.clock.skip(LEAF_LIFE.total_seconds())
        await s.check.dial()
        (reason,) = s.check.reasons()
        assert reason.startswith("the certificate has ended at 20")


async def test_it_dials_again_and_again(files: Files) -> None:
    files.issue()
    async with standing(files) as s:
        running = asyncio.create_task(s.check.run())
        while not (s.clock.slept and s.check.reasons() == ()):
            await asyncio.sleep(0.001)
        while len(s.clock.slept) < 3:
            await asyncio.sleep(0.001)
        running.cancel()


@pytest.mark.parametrize(
    ("bound", "dialled"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1")],  # noqa: S104 - nothing is bound
)
def test_a_wildcard_is_dialled_over_the_loopback(bound: str, dialled: str, files: Files) -> None:
    check = SelfCheck((bound, 1), Contexts(files.folder, ssl.SSLSocket), SystemClock())
    assert check._host == dialled
