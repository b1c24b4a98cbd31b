"""A webhook as its own process, with certificates made for the test, and clients for it."""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import orjson

from certs.issue import Authority, Leaf, Names, issue_authority, issue_leaf
from kube.clock import SystemClock

HOST: Final = "127.0.0.1"
CLOCK: Final = SystemClock()
VALIDATE: Final = "/validate/podcliquesets"
JSON: Final = {"Content-Type": "application/json"}
REVIEW: Final = orjson.dumps(
    {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "DELETE", "kind": {"kind": "PodCliqueSet"}},
    }
)


def until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Return as soon as the condition holds; fail the test, naming `what`, if it does not."""
    end = CLOCK.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert CLOCK.monotonic() < end, f"not within {seconds} s: {what}"
        pause.wait(0.01)


@dataclass
class Files:
    """A directory of TLS files as kubelet writes one: a link to the generation that counts."""

    folder: Path
    authority: Authority
    generation: int = 0

    def issue(self) -> Leaf:
        leaf = issue_leaf(self.authority, Names.of(HOST, "localhost"), CLOCK.now())
        self.swap(leaf.certificate_pem, leaf.key_pem)
        return leaf

    def swap(self, certificate: bytes, key: bytes) -> None:
        self.generation += 1
        fresh = self.folder / f"..{self.generation}"
        fresh.mkdir()
        (fresh / "tls.crt").write_bytes(certificate)
        (fresh / "tls.key").write_bytes(key)
        link = self.folder / "..next"
        link.symlink_to(fresh.name)
        link.rename(self.folder / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(Path("..data") / name)

    def client_bundle(self) -> str:
        return b64encode(self.authority.certificate_pem).decode()

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.certificate_pem.decode())


def files_in(folder: Path) -> Files:
    folder.mkdir()
    return Files(folder, issue_authority(CLOCK.now()))


@dataclass
class Running:
    """A webhook process that is being run."""

    process: subprocess.Popen[bytes]
    log: Path
    files: Files
    port: int = 0

    def connect(self, timeout: float = 20.0) -> HTTPSConnection:
        return HTTPSConnection(HOST, self.port, timeout=timeout, context=self.files.client())

    def plain(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=20.0)

    def secure(self) -> ssl.SSLSocket:
        return self.files.client().wrap_socket(self.plain(), server_hostname=HOST)

    def get(self, path: str) -> int:
        connection = self.connect()
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def written(self) -> str:
        return self.log.read_text()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ended(self, seconds: float = 20.0) -> int:
        return self.process.wait(seconds)


def review(connection: HTTPSConnection) -> http.client.HTTPResponse:
    """Ask about a delete over a connection that may be kept; the reply is read in full."""
    connection.request("POST", VALIDATE, REVIEW, JSON)
    reply = connection.getresponse()
    assert reply.status == 200
    assert orjson.loads(reply.read())["response"]["allowed"]
    return reply


@contextmanager
def started(files: Files, log: Path, *flags: str, module: str = "webhook") -> Iterator[Running]:
    """Start a webhook with these flags and see to it that nothing of it is left."""
    command = [sys.executable, "-m", module, "--host", HOST, "--tls-dir", str(files.folder)]
    if "--kubeconfig" not in flags:
        command.append("--no-cluster")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *flags],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Running(process, log, files)
    finally:
        # The session is the test's own: its worker goes with it, whatever became of the rest.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def serving(files: Files, log: Path, *flags: str) -> Iterator[Running]:
    """Start a webhook on a free port and wait until it is ready."""
    with started(files, log, "--port", "0", *flags) as running:
        running.port = port_of(running)
        until(lambda: ready(running), f"ready; it wrote: {running.written()}")
        yield running


def port_of(running: Running) -> int:
    """Wait for the port the webhook has taken."""
    form = re.compile(rf"Listening at: https://{HOST}:(\d+)")
    until(
        lambda: running.process.poll() is not None or bool(form.search(running.written())),
        f"listening; it wrote: {running.written()}",
    )
    found = form.search(running.written())
    assert found, running.written()
    return int(found[1])


def ready(running: Running) -> bool:
    try:
        return running.get("/readyz") == 200
    except OSError:
        return False
