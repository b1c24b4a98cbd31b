"""Metrics for autoscalers in a lab: stub custom and external metrics APIs, whose values you choose.

The API server passes on to it what HorizontalPodAutoscalers ask, through two APIServices whose
Service is but another name for this machine. `python -m penstock.lab.metrics_api --help` runs it.
"""

import argparse
import asyncio
import base64
import json
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import yaml
from typing_extensions import override

from api.jsons import Json, JsonObject
from api.objects import timestamp
from certs import issue
from kube import credentials
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import ApiError, NotFound
from kube.resources import API_SERVICES, SERVICES, Resource
from penstock.lab import cluster
from penstock.lab.errors import LabError
from penstock.lab.spec import DEFAULT_NAME

CUSTOM: Final = ("custom.metrics.k8s.io", "v1beta2")
EXTERNAL: Final = ("external.metrics.k8s.io", "v1beta1")
NAMESPACE: Final = "kube-system"
SERVICE: Final = "penstock-lab-metrics"
HOST: Final = "127.0.0.1"

AVAILABLE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1
# A client that neither speaks nor leaves must not keep the stub from ending.
SILENCE: Final = 10.0

Values = Callable[[str], str | None]
"""Give the value of a metric: of `NAMESPACE/METRIC`, or of `NAMESPACE/PLURAL/OBJECT/METRIC`."""


@dataclass(frozen=True)
class Address:
    """Where the stub listens, and the authority that its certificate is good by."""

    port: int
    authority: bytes


def answer(path: str, values: Values, now: datetime) -> JsonObject | None:
    """Give what is told at a path of these APIs; None if there is nothing."""
    match [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]:
        case ["apis", group, version] if (group, version) in (CUSTOM, EXTERNAL):
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{version}",
                "resources": [],
            }
        case ["apis", group, version, "namespaces", namespace, metric] if (
            group,
            version,
        ) == EXTERNAL:
            value = values(f"{namespace}/{metric}")
            item: JsonObject = {"metricName": metric, "metricLabels": {}}
            return _items("ExternalMetricValueList", EXTERNAL, item, value, now)
        case ["apis", group, version, "namespaces", namespace, plural, name, metric] if (
            group,
            version,
        ) == CUSTOM:
            value = values(f"{namespace}/{plural}/{name}/{metric}")
            described: JsonObject = {"kind": plural, "namespace": namespace, "name": name}
            item = {"describedObject": described, "metric": {"name": metric}}
            return _items("MetricValueList", CUSTOM, item, value, now)
    return None


def _items(
    kind: str, version: tuple[str, str], item: JsonObject, value: str | None, now: datetime
) -> JsonObject | None:
    if value is None:
        return None
    return {
        "kind": kind,
        "apiVersion": "/".join(version),
        "metadata": {},
        "items": [{**item, "timestamp": timestamp(now), "value": value}],
    }


class _Server(ThreadingHTTPServer):
    """Answers over TLS, each question on a thread of its own."""

    daemon_threads = True

    def __init__(self, values: Values, clock: Clock, context: ssl.SSLContext) -> None:
        super().__init__((HOST, 0), _Handler)
        self.values = values
        self.clock = clock
        self._context = context

    @override
    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Take a connection in; its thread greets the client, so that nobody waits for another."""
        plain, address = super().get_request()
        plain.settimeout(SILENCE)
        greeted = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        return greeted, address

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that turn away."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a question."""
        server = self.server
        found = answer(self.path, server.values, server.clock.now())
        body = found or {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "message": f"there is no metric at {self.path}",
            "code": 404,
        }
        text = json.dumps(body).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def serving(values: Values, clock: Clock) -> Iterator[Address]:
    """Answer with these values, under a certificate made for it, as long as the context lasts."""
    authority = issue.issue_authority(clock.now())
    names = issue.Names.of(f"{SERVICE}.{NAMESPACE}.svc", "localhost", HOST)
    leaf = issue.issue_leaf(authority, names, clock.now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(leaf.certificate_pem)
        key.touch(mode=0o600)
        key.write_bytes(leaf.key_pem)
        context.load_cert_chain(certificate, key)
    with _Server(values, clock, context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Address(server.server_address[1], authority.certificate_pem)
        finally:
            server.shutdown()
            thread.join()


def registration(address: Address) -> Iterator[tuple[Resource, str | None, JsonObject]]:
    """Give the objects by which the API server finds the stub, with their namespaces."""
    port = address.port
    yield (
        SERVICES,
        NAMESPACE,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
    )
    for group, version in (CUSTOM, EXTERNAL):
        yield (
            API_SERVICES,
            None,
            {
                "apiVersion": API_SERVICES.api_version,
                "kind": API_SERVICES.kind,
                "metadata": {"name": f"{version}.{group}"},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
                    "caBundle": base64.b64encode(address.authority).decode(),
                },
            },
        )


@asynccontextmanager
async def registered(client: Client, address: Address, clock: Clock) -> AsyncIterator[None]:
    """Have the API server pass questions on to the stub, as long as the context lasts.

    Raises LabError if it does not. What is registered and does not answer would keep namespaces
    from being deleted, so it is taken back whatever happens.
    """
    objects = list(registration(address))
    try:
        for resource, namespace, body in objects:
            await client.apply(resource, _name(body), body, namespace)
        await _available(client, clock)
        yield
    finally:
        for resource, namespace, body in reversed(objects):
            with suppress(NotFound):
                await client.delete(resource, _name(body), namespace)


def _name(body: JsonObject) -> str:
    metadata = body["metadata"]
    return str(metadata["name"]) if isinstance(metadata, dict) else ""


async def _available(client: Client, clock: Clock) -> None:
    end = clock.monotonic() + AVAILABLE_SECONDS
    for group, version in (CUSTOM, EXTERNAL):
        while not await _answers(client, f"/apis/{group}/{version}"):
            if clock.monotonic() > end:
                raise LabError(f"the API server does not pass on what is asked of {group}")
            await clock.sleep(POLL_SECONDS)


async def _answers(client: Client, path: str) -> bool:
    try:
        return b"APIResourceList" in await client.raw_get(path)
    except ApiError:
        return False


def file_values(path: Path) -> Values:
    """Take values from a YAML file that maps metrics to quantities; read anew for each question.

    `queue: 30` holds in every namespace and for every object; one that says more goes first.
    """

    def value(asked: str) -> str | None:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
        known: Mapping[str, Json] = told if isinstance(told, dict) else {}
        found = known.get(asked, known.get(asked.rpartition("/")[2]))
        return None if found is None else str(found)

    return value


async def run(lab: str, values: Values, clock: Clock) -> None:
    """Serve a lab until told to stop."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    access = credentials.load(cluster.lookup(lab).kubeconfig, None, clock, os.environ)
    async with Client(access, "lab", clock) as client:
        with serving(values, clock) as address:
            async with registered(client, address, clock):
                sys.stderr.write(f"HPAs of lab {lab} are answered; Ctrl-C ends it\n")
                await stopped.wait()


def main(arguments: Sequence[str]) -> int:
    """Run the stub; returns its exit code."""
    parser = argparse.ArgumentParser(
        "penstock.lab.metrics_api",
        description="Stub custom and external metrics APIs for the autoscalers of a lab.",
        epilog="example: python -m penstock.lab.metrics_api --values metrics.yaml",
    )
    parser.add_argument("--name", default=DEFAULT_NAME, help="which lab")
    parser.add_argument("--values", type=Path, required=True, help="YAML: metric to quantity")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(run(options.name, file_values(options.values), SystemClock()))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
