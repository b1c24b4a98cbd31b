"""What a controller counts can be fetched, by whoever leads and by those that stand by."""

import argparse
import asyncio

import pytest
from prometheus_client import Counter

from api import exits
from controller import settings
from controller.exposing import Metrics
from kube.exposing import Address, serving
from kube.startup import StartupFailure

HERE = Address("127.0.0.1", 0)


async def fetch(there: Address | None, request: str) -> tuple[str, str]:
    """Give the first line of the answer, and its body."""
    assert there is not None
    reader, writer = await asyncio.open_connection(there.host, there.port)
    writer.write(request.encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head.partition("\r\n")[0], body


async def test_what_was_counted_is_shown_as_it_is_when_somebody_looks() -> None:
    leads = False
    metrics = Metrics("gangs", lambda: leads)
    things = Counter("things", "Things", registry=metrics.registry)
    metrics.refresh.append(things.inc)
    async with serving(HERE, metrics.written) as there:
        for count, leading in ((1, "0.0"), (2, "1.0")):
            line, body = await fetch(there, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line == "HTTP/1.1 200 OK"
            assert f"penstock_gangs_leads {leading}\n" in body
            assert f"things_total {count}.0\n" in body
            assert "process_cpu_seconds_total" in body
            leads = True


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /metrics?name=x HTTP/1.0", "200 OK"),
        ("HEAD /metrics HTTP/1.1", "200 OK"),
        ("GET / HTTP/1.1", "404 Not Found"),
        ("GET /metrics/x HTTP/1.1", "404 Not Found"),
        ("POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        ("nonsense", "405 Method Not Allowed"),
    ],
)
async def test_nothing_else_is_answered(request_line: str, status: str) -> None:
    async with serving(HERE, Metrics("gangs", lambda: True).written) as there:
        line, body = await fetch(there, f"{request_line}\r\n\r\n")
    assert line == f"HTTP/1.1 {status}"
    assert bool(body) != request_line.startswith("HEAD")


async def test_a_request_that_is_too_long_is_cut_off() -> None:
    async with serving(HERE, Metrics("gangs", lambda: True).written) as there:
        line, _ = await fetch(there, f"GET /metrics HTTP/1.1\r\nX: {'x' * 10_000}")
        assert line == ""
        line, _ = await fetch(there, "GET /metrics HTTP/1.1\r\n\r\n")
        assert line == "HTTP/1.1 200 OK"


async def test_without_an_address_nothing_is_served() -> None:
    async with serving(None, Metrics("gangs", lambda: True).written) as there:
        assert there is None


async def test_a_taken_port_ends_the_process_with_the_flag_named() -> None:
    metrics = Metrics("gangs", lambda: True)
    async with serving(HERE, metrics.written) as there:
        assert there is not None
        with pytest.raises(StartupFailure, match="--metrics-address: another process") as failed:
            async with serving(there, metrics.written):
                pass
    assert failed.value.exit_code == exits.PORT_TAKEN
    with pytest.raises(StartupFailure, match="no address of this machine") as failed:
        async with serving(Address("192.0.2.1", 0), metrics.written):
            pass
    assert failed.value.exit_code == exits.BAD_SETTINGS


def test_the_address_is_a_flag_of_both_controllers() -> None:
    made = settings.parser("controller.gangs", "about", "example")
    assert settings.parse(made, []).metrics is None
    for text, address in (
        ("127.0.0.1:9090", Address("127.0.0.1", 9090)),
        ("[::]:0", Address("::", 0)),
    ):
        assert settings.parse(made, ["--metrics-address", text]).metrics == address


@pytest.mark.parametrize("text", ["9090", ":9090", "127.0.0.1:", "127.0.0.1:x", "a:65536", "_:1"])
def test_what_is_no_address_is_refused_before_all_else(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made: argparse.ArgumentParser = settings.parser("controller.gangs", "about", "example")
    with pytest.raises(SystemExit):
        settings.parse(made, ["--metrics-address", text])
    assert "--metrics-address" in capsys.readouterr().err
