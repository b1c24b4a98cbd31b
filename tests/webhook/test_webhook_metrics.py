"""The webhook's metrics at a port of their own, without TLS, and as they are listed."""

import re
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

from api import exits
from tests.support import families
from tests.webhook.running import (
    HOST,
    JSON,
    REVIEW,
    VALIDATE,
    Files,
    files_in,
    serving,
    started,
    until,
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def fetched(url: str) -> str:
    with urlopen(url, timeout=10.0) as answer:  # noqa: S310 - our own, at a loopback address
        text: str = answer.read().decode()
    return text


def test_what_it_shows_is_what_is_listed(files: Files, log: Path, tmp_path: Path) -> None:
    flags = ("--metrics-address", f"{HOST}:0", "--audit-dir", str(tmp_path / "audit"))
    with serving(files, log, *flags) as running:
        form = re.compile(rf"metrics are served at (http://{HOST}:\d+/metrics)")
        until(lambda: bool(form.search(running.written())), "the port is named")
        found = form.search(running.written())
        assert found
        connection = running.connect()
        connection.request("POST", VALIDATE, REVIEW, JSON)
        assert connection.getresponse().read()
        connection.close()
        text = fetched(found[1])
    assert (
        families.differences(families.listed("Webhook", families.EVERY), families.shown(text)) == []
    )
    counted = (
        'penstock_webhook_requests_total{decision="allow",dry_run="false",operation="DELETE",'
        f'path="{VALIDATE}"}}'
    )
    assert families.values(text)[counted] == 1


def test_a_taken_port_ends_it_with_the_flag_named(files: Files, log: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with started(files, log, "--port", "0", "--metrics-address", f"{HOST}:{port}") as running:
            assert running.ended() == exits.PORT_TAKEN
    assert f"--metrics-address: another process has {HOST}:{port}" in log.read_text()


def test_a_difference_from_the_list_is_found() -> None:
    text = '# TYPE a_total counter\na_total{x="1"} 1\n# TYPE b gauge\nb 1\n'
    there = families.shown(text)
    plain, by_x = families.Family("gauge", frozenset()), families.Family("counter", frozenset("x"))
    assert families.differences({"a_total": by_x, "b": plain}, there) == []
    other = families.Family("counter", frozenset("y"))
    assert families.differences({"a_total": other, "c": plain}, there) == [
        "a_total has the labels ['x']",
        "b is not listed",
        "c is not shown",
    ]
