"""A collector of traces: a real HTTP server that takes OTLP, as a cluster's would."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from typing_extensions import override

PATH = "/v1/traces"


@dataclass(frozen=True)
class Arrived:
    """A span as it arrived; numbers in hexadecimal, times in nanoseconds."""

    service: str
    name: str
    trace: str
    number: str
    parent: str
    begun: int
    ended: int
    failed: bool


class Collector(ThreadingHTTPServer):
    """Keeps what arrives."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self._lock = threading.Lock()
        self._spans: list[Arrived] = []
        self.authorizations: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{PATH}"

    def of(self, trace: str) -> list[Arrived]:
        """Give what has arrived of one trace."""
        with self._lock:
            return [span for span in self._spans if span.trace == trace]

    def take(self, body: bytes) -> None:
        asked = ExportTraceServiceRequest()
        asked.ParseFromString(body)
        found = [
            Arrived(
                _service(of_one.resource.attributes),
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                span.status.code == 2,
            )
            for of_one in asked.resource_spans
            for scope in of_one.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._spans += found


def _service(attributes: object) -> str:
    for each in attributes:  # type: ignore[attr-defined]
        if each.key == "service.name":
            return str(each.value.string_value)
    return ""


class _Taker(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        known = self.path == PATH
        if known:
            self.server.authorizations.add(self.headers.get("Authorization", ""))
            self.server.take(body)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector while the context lasts."""
    collector = Collector()
    thread = threading.Thread(target=collector.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()
