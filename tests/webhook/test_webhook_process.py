"""The webhook as a process: how it starts, serves, and ends."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from api import exits
from tests.webhook.running import (
    HOST,
    JSON,
    REVIEW,
    VALIDATE,
    Files,
    files_in,
    port_of,
    ready,
    review,
    serving,
    started,
    until,
)
from webhook.intake import LARGEST_BODY


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path / "tls")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def last_line(log: Path) -> str:
    written = log.read_text()
    assert "Traceback" not in written
    return written.splitlines()[-1]


def test_reviews_are_answered_over_kept_connections(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running:
        connection = running.connect()
        for _ in range(3):
            reply = review(connection)
            assert reply.getheader("Connection") == "keep-alive"
        connection.close()
        assert running.get("/healthz") == 200
        assert running.get("/nowhere") == 404
    assert "Traceback" not in log.read_text()


def test_a_request_sent_along_with_the_one_before_is_answered(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running, running.secure() as client:
        # So long that it ends in the middle of a TLS record, with the next one behind it.
        client.sendall(posted(16384 + 9000) + posted(1000))
        client.settimeout(10)
        seen = b""
        while seen.count(b"HTTP/1.1 200 ") < 2:
            more = client.recv(65536)
            assert more, seen
            seen += more


def test_no_header_changes_path_or_scheme(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running:
        for header in ("SCRIPT_NAME: /x", "X-Forwarded-Proto: http\r\nX-Forwarded-Ssl: on"):
            with running.secure() as client:
                client.sendall(posted(1000, header))
                assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


def posted(size: int, header: str = "Accept: */*") -> bytes:
    """A review, padded so that head and body have this size together."""
    head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{header}\r\n"
    rest = size - len(head) - len("Content-Length: 12345\r\n\r\n")
    return f"{head}Content-Length: {rest:05}\r\n\r\n".encode() + REVIEW.ljust(rest)


def test_a_refusal_names_the_cycle(files: Files, log: Path) -> None:
    files.issue()
    cliques = [
        {"name": name, "spec": {"startsAfter": [after], "podSpec": {"containers": [{}]}}}
        for name, after in (("prefill", "router"), ("router", "prefill"))
    ]
    request = {
        "uid": "u-2",
        "operation": "CREATE",
        "kind": {"kind": "PodCliqueSet"},
        "object": {"metadata": {"name": "llm"}, "spec": {"template": {"cliques": cliques}}},
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    with serving(files, log) as running:
        connection = running.connect()
        connection.request("POST", VALIDATE + "?timeout=5s", orjson.dumps(body), JSON)
        response = orjson.loads(connection.getresponse().read())["response"]
        connection.close()
    assert not response["allowed"]
    assert "prefill → router → prefill" in response["status"]["message"]


def test_what_is_no_https_or_too_much_harms_nobody_else(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log, "--threads", "2") as running:
        plain = running.plain()
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" not in plain.recv(100)
        plain.close()
        secure = running.secure()
        secure.sendall(b"\x00\x01 nonsense\r\n\r\n")
        assert secure.recv(1000).startswith(b"HTTP/1.1 400")
        secure.close()
        connection = running.connect()
        connection.putrequest("POST", VALIDATE)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(LARGEST_BODY + 1))
        connection.endheaders(b"{")
        assert connection.getresponse().status == 413
        connection.close()
        chunked = running.secure()
        head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        chunked.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode())
        assert chunked.recv(1000).startswith(b"HTTP/1.1 400")
        chunked.close()
        assert ready(running)
    assert "Traceback" not in log.read_text()


def test_tls_1_2_is_refused(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running:
        old = files.client()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with running.plain() as plain, pytest.raises(ssl.SSLError, match=r"(?i)version"):
            old.wrap_socket(plain, server_hostname=HOST)
        assert ready(running)


def test_it_waits_for_its_certificate(files: Files, log: Path) -> None:
    with started(files, log, "--port", "0", "--tls-wait", "60") as running:
        until(lambda: "waiting for a certificate" in running.written(), "waiting")
        files.issue()
        running.port = port_of(running)
        until(lambda: ready(running), "ready")


def test_without_a_certificate_it_ends_with_one_line(files: Files, log: Path) -> None:
    with started(files, log, "--port", "0", "--tls-wait", "0.3") as running:
        assert running.ended() == exits.NO_CERTIFICATE
    assert "no certificate after 0.3 s: " in last_line(log)
    assert str(files.folder / "tls.crt") in last_line(log)


def test_files_that_do_not_fit_together_are_no_certificate(files: Files, log: Path) -> None:
    leaf, other = files.issue(), files.issue()
    files.swap(leaf.certificate_pem, other.key_pem)
    with started(files, log, "--port", "0", "--tls-wait", "0") as running:
        assert running.ended() == exits.NO_CERTIFICATE
    assert "do not fit together" in last_line(log)


def test_a_taken_port_is_said_at_once(files: Files, log: Path) -> None:
    # Without a certificate, so that it is seen not to wait for one first.
    with socket.create_server((HOST, 0)) as taken:
        port = str(taken.getsockname()[1])
        with started(files, log, "--port", port) as running:
            assert running.ended() == exits.PORT_TAKEN
    assert f"port {port} of {HOST} is taken" in last_line(log)
    assert len(log.read_text().splitlines()) == 1


def test_a_port_taken_while_waiting_for_the_certificate_is_said_too(
    files: Files, log: Path, tmp_path: Path
) -> None:
    with socket.create_server((HOST, 0)) as found:
        port = str(found.getsockname()[1])
    with started(files, log, "--port", port) as first:
        until(lambda: "waiting" in first.written(), "the first waiting")
        with started(files, tmp_path / "other", "--port", port) as second:
            until(lambda: "waiting" in second.written(), "the second waiting")
            files.issue()
            until(
                lambda: (
                    None not in (first.process.poll(), second.process.poll())
                    or "Listening" in first.written() + second.written()
                ),
                "one of them listening",
            )
            loser = first if "Listening" in second.written() else second
            assert loser.ended() == exits.PORT_TAKEN
            assert "is taken" in last_line(loser.log)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--port", "high"], "--port"),
        (["--host", "no.such.host.invalid"], "--host"),
        (["--host", "192.0.2.1", "--port", "0"], "cannot serve on 192.0.2.1"),
    ],
)
def test_bad_settings_end_with_one_line(
    flags: list[str], named: str, files: Files, log: Path
) -> None:
    with started(files, log, *flags) as running:
        assert running.ended() == exits.BAD_SETTINGS
    assert named in last_line(log)
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_can_be_stopped_while_it_waits(number: signal.Signals, files: Files, log: Path) -> None:
    with started(files, log, "--port", "0") as running:
        until(lambda: "waiting" in running.written(), "waiting")
        running.process.send_signal(number)
        assert running.ended() == exits.OK
    assert "Traceback" not in log.read_text()


def test_an_interrupt_from_the_keyboard_ends_it_at_once(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log, "--drain-seconds", "60") as running:
        # The terminal sends it to the whole group.
        os.killpg(running.process.pid, signal.SIGINT)
        assert running.ended(10) == exits.OK
    assert "Traceback" not in log.read_text()


def test_a_worker_without_its_parent_leaves_the_port(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running:
        running.process.kill()
        running.ended()

        def free() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((HOST, running.port)) != 0

        until(free, "the worker gone")


def test_a_worker_that_dies_is_replaced(files: Files, log: Path) -> None:
    files.issue()
    with serving(files, log) as running:
        children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
        worker = int(children.read_text())
        os.kill(worker, signal.SIGKILL)
        until(lambda: children.read_text().split() not in ([], [str(worker)]), "a new worker")
        until(lambda: ready(running), "ready again")


def loading(what: str) -> tuple[float, set[str]]:
    """Give the CPU seconds that an interpreter takes to load modules, and all that it has then."""
    program = (
        f"import json, sys, time, {what};"
        "print(json.dumps([time.process_time(), sorted(sys.modules)]))"
    )
    # Without the environment, so that no coverage is measured: it would double the time.
    result = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, check=True, text=True
    )
    seconds, modules = json.loads(result.stdout)
    return seconds, set(modules)


def test_only_what_admission_needs_is_loaded_and_quickly() -> None:
    floor, _ = loading("flask, gunicorn.arbiter, aiohttp, pydantic, prometheus_client")
    seconds, modules = loading("webhook.__main__, webhook.server, gunicorn.arbiter")
    heavy = {"kubernetes", "numpy", "cryptography", "jsonpatch", "typer"}
    assert not heavy & modules
    assert seconds < 3 * floor
