"""Sends spans to a collector by OpenTelemetry's own library: OTLP over HTTP, batched, in a thread.

Only `kube.tracing` imports this, and only where traces were asked for.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from kube.tracing import Span

_DELAY_MILLIS: Final = 1000
_SEND_SECONDS: Final = 3


class OtlpExporter:
    """Hands spans to a batching thread; while the collector is away they are dropped in the end."""

    def __init__(self, url: str, process: str) -> None:
        exporter = OTLPSpanExporter(endpoint=url, timeout=_SEND_SECONDS)
        self._processor = BatchSpanProcessor(exporter, schedule_delay_millis=_DELAY_MILLIS)
        # The library says nothing of what it returns.
        self._shut_down: Callable[[], None] = self._processor.shutdown
        self._resource = Resource.create({"service.name": f"penstock-{process}"})

    def record(self, span: Span) -> None:
        """Take a span; one too many is dropped."""
        if not span.trace_id:
            return
        parent = span.parent_id
        status = Status(StatusCode.ERROR, span.failure) if span.failure else Status(StatusCode.OK)
        made = ReadableSpan(
            name=span.step,
            context=_context(span.trace_id, span.span_id, is_remote=False),
            parent=None if parent is None else _context(span.trace_id, parent, is_remote=True),
            resource=self._resource,
            attributes={f"penstock.{name}": value for name, value in span.attributes.items()},
            kind=SpanKind.INTERNAL,
            status=status,
            start_time=_nanoseconds(span.begun),
            end_time=_nanoseconds(max(span.begun, span.ended)),
        )
        self._processor.on_end(made)

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self._shut_down()


def _context(trace: int, span: int, *, is_remote: bool) -> SpanContext:
    return SpanContext(trace, span, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
