"""What clients see while certificates change, the webhook drains, or other clients stall."""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from api import exits
from certs.issue import Leaf
from tests.webhook.running import (
    CLOCK,
    HOST,
    JSON,
    REVIEW,
    VALIDATE,
    Files,
    Running,
    files_in,
    ready,
    review,
    serving,
    until,
)
from webhook.patience import SILENCE, WHOLE


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@dataclass
class Load:
    """Clients that ask without pause. Like an API server, they keep a connection until told not
    to; like a load balancer's, new ones begin only while the webhook says that it is ready."""

    running: Running
    kept: bool
    stop: threading.Event = field(default_factory=threading.Event)
    answered: int = 0
    faults: list[str] = field(default_factory=list)

    def run(self) -> None:
        while not self.stop.is_set() and ready(self.running):
            connection = self.running.connect()
            try:
                while self._one(connection) and self.kept and not self.stop.is_set():
                    pass
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.faults.append(repr(error))
            finally:
                connection.close()

    def _one(self, connection: HTTPSConnection) -> bool:
        reply = review(connection)
        self.answered += 1
        return reply.getheader("Connection") != "close"


@contextmanager
def under_load(running: Running, clients: int = 4) -> Iterator[list[Load]]:
    loads = [Load(running, kept=i % 2 == 0) for i in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        runs = [pool.submit(load.run) for load in loads]
        try:
            until(lambda: all(load.answered > 3 for load in loads), "all clients at work")
            yield loads
        finally:
            for load in loads:
                load.stop.set()
        for run in runs:
            run.result()


def shown(running: Running) -> bytes:
    with running.secure() as connection:
        seen = connection.getpeercert(binary_form=True)
        assert seen
        return ssl.DER_cert_to_PEM_cert(seen).encode()


def is_shown(running: Running, leaf: Leaf) -> bool:
    return leaf.certificate_pem.startswith(shown(running).rstrip())


def test_certificates_are_swapped_under_load_without_a_failed_call(files: Files, log: Path) -> None:
    with serving(files, log) as running, under_load(running) as loads:
        for _ in range(5):
            leaf = files.issue()
            assert is_shown(running, leaf)
            before = [load.answered for load in loads]
            until(
                lambda before=before: all(  # type: ignore[misc]  # a default binds it
                    load.answered > seen for load, seen in zip(loads, before, strict=True)
                ),
                "every client answered under the new certificate",
            )
    assert [load.faults for load in loads] == [[]] * len(loads)


def test_a_bad_pair_does_not_disturb_serving(files: Files, log: Path) -> None:
    good = files.issue()
    with serving(files, log) as running:
        files.swap(b"?", b"?")
        assert is_shown(running, good)
        assert ready(running)
        until(lambda: "keeping the certificate in use" in running.written(), "a word about it")


def test_stopping_under_load_loses_no_call(files: Files, log: Path) -> None:
    with serving(files, log, "--drain-seconds", "1") as running:
        with under_load(running, clients=6) as loads:
            running.terminate()
            until(lambda: running.process.poll() is not None, "ended")
        assert running.ended() == exits.OK
    assert [load.faults for load in loads] == [[]] * len(loads)
    assert "Traceback" not in log.read_text()


def test_while_draining_it_serves_but_keeps_nobody(files: Files, log: Path) -> None:
    with serving(files, log, "--drain-seconds", "2") as running:
        kept = running.connect()
        assert review(kept).getheader("Connection") == "keep-alive"
        running.terminate()
        until(lambda: running.get("/readyz") == 503, "unready")
        assert running.get("/healthz") == 200
        # A connection from before is answered and told to go; so is a new one.
        assert review(kept).getheader("Connection") == "close"
        fresh = running.connect()
        assert review(fresh).getheader("Connection") == "close"
        assert running.ended(10) == exits.OK
        kept.close()
        fresh.close()


@pytest.mark.parametrize("drain", ["0", "0.5"])
def test_a_request_that_is_half_sent_at_the_signal_is_answered(
    drain: str, files: Files, log: Path
) -> None:
    with serving(files, log, "--drain-seconds", drain) as running:
        half = running.connect()
        half.putrequest("POST", VALIDATE)
        for name, value in {**JSON, "Content-Length": str(len(REVIEW))}.items():
            half.putheader(name, value)
        half.endheaders(REVIEW[:10])
        # Another request is answered meanwhile, so the first is with a thread by now.
        assert ready(running)
        running.terminate()
        until(lambda: not accepts(running), "the door closed")
        half.send(REVIEW[10:])
        reply = half.getresponse()
        assert (reply.status, reply.getheader("Connection")) == (200, "close")
        # A client that does not hang up is not waited for.
        began = CLOCK.monotonic()
        assert running.ended(10) == exits.OK
        assert CLOCK.monotonic() - began < SILENCE
        reply.read()
        half.close()


def accepts(running: Running) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, running.port)) == 0


def test_an_idle_client_does_not_hold_up_the_end(files: Files, log: Path) -> None:
    with serving(files, log, "--drain-seconds", "0") as running:
        silent, greeted, kept = running.plain(), running.secure(), running.connect()
        review(kept)
        began = CLOCK.monotonic()
        running.terminate()
        assert running.ended() == exits.OK
        assert CLOCK.monotonic() - began < 10
        for connection in (silent, greeted, kept):
            connection.close()


def client_hello(running: Running) -> bytes:
    to_server = ssl.MemoryBIO()
    client = running.files.client().wrap_bio(ssl.MemoryBIO(), to_server, server_hostname=HOST)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return to_server.read()


def stalled(running: Running, how: str) -> socket.socket:
    """A client that goes so far and no further."""
    if how in ("says nothing", "half a greeting", "greets and no more"):
        plain = running.plain()
        hello = client_hello(running)
        plain.sendall({"says nothing": b"", "half a greeting": hello[:50]}.get(how, hello))
        return plain
    secure = running.secure()
    if how == "half a head":
        secure.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost".encode())
    elif how == "half a body":
        secure.sendall(
            f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: 1000\r\n\r\n".encode()
            + REVIEW[:10]
        )
    return secure


@pytest.mark.parametrize(
    "how", ["says nothing", "half a greeting", "greets and no more", "asks nothing"]
)
def test_clients_that_have_not_asked_take_no_thread(how: str, files: Files, log: Path) -> None:
    with serving(files, log, "--threads", "1") as running:
        crowd = [stalled(running, how) for _ in range(30)]
        began = CLOCK.monotonic()
        connection = running.connect()
        review(connection)
        # With one thread, a single client that held it would cost all of this.
        assert CLOCK.monotonic() - began < SILENCE
        connection.close()
        for client in crowd:
            client.close()


@pytest.mark.parametrize("how", ["half a head", "half a body"])
def test_a_client_stalled_in_its_request_is_given_up(how: str, files: Files, log: Path) -> None:
    with serving(files, log, "--threads", "1") as running:
        client = stalled(running, how)
        began = CLOCK.monotonic()
        connection = running.connect()
        review(connection)
        assert CLOCK.monotonic() - began < SILENCE + 5
        assert gone(client)
        connection.close()
        client.close()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("how", ["half a head", "half a body"])
def test_more_stalled_clients_than_threads_hold_up_no_review(
    how: str, files: Files, log: Path
) -> None:
    with serving(files, log, "--threads", "16") as running:
        began = CLOCK.monotonic()
        crowd = [stalled(running, how) for _ in range(40)]
        connection = running.connect()
        review(connection)
        # Half of the threads wait as long as for one alone; the others come free soon. If all did,
        # the review would come after three times that, since so many stand before it.
        assert CLOCK.monotonic() - began < 2 * SILENCE
        connection.close()
        for client in crowd:
            client.close()


def test_who_comes_while_all_threads_are_held_is_served_after(files: Files, log: Path) -> None:
    with serving(files, log, "--threads", "1") as running:
        crowd = [stalled(running, "half a body") for _ in range(2)]
        # One after the other they take longer than a client has for its own greeting.
        connection = running.connect(3 * SILENCE + 5)
        review(connection)
        connection.close()
        for client in crowd:
            client.close()


@pytest.mark.parametrize("how", ["says nothing", "greets and no more"])
def test_a_client_stalled_in_its_greeting_is_put_out(how: str, files: Files, log: Path) -> None:
    with serving(files, log) as running:
        client = stalled(running, how)
        assert gone(client)
        client.close()


def gone(client: socket.socket) -> bool:
    """Whether the server ends the connection; what it still says first does not matter."""
    client.settimeout(SILENCE + 10)
    try:
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_a_trickle_is_given_up_as_well(files: Files, log: Path) -> None:
    with serving(files, log, "--threads", "1") as running:
        client = stalled(running, "half a body")
        began = CLOCK.monotonic()
        trickled = trickle(client, lambda: CLOCK.monotonic() - began < WHOLE + 15)
        assert trickled == "given up"
        assert CLOCK.monotonic() - began < WHOLE + 5
        assert ready(running)
        client.close()


def trickle(client: socket.socket, patient: Callable[[], bool]) -> str:
    """Send a byte each half second until the server has had enough."""
    client.settimeout(0.5)
    while patient():
        try:
            client.sendall(b" ")
            client.recv(1)
        except TimeoutError:
            continue
        except OSError:
            break
        return "given up"
    return "given up" if patient() else "suffered"
