"""One trace a set, from its review until its gangs are bound, told by three processes.

Nothing travels between them: the trace's number is the set's UID, and a span's number follows from
the set, the step and the gang. So each process can name the span before its own.
"""

import argparse
import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import urlsplit

from api import exits
from kube import logs
from kube.startup import StartupFailure

FLAG: Final = "--traces-endpoint"
EXTRA: Final = "traces"


class Step(StrEnum):
    """What a trace is made of, each within the one before."""

    REVIEW = "review"
    EXPAND = "expand"
    DECIDE = "decide"
    RESERVE = "reserve"
    LIFT = "lift"
    BOUND = "bound"


@dataclass(frozen=True)
class Span:
    """A step that was taken. `origin` is the UID of a set, or of a gang that is none of a set."""

    origin: str
    step: Step
    gang: str  # "" for what is of the whole set
    begun: datetime
    ended: datetime
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    failure: str = ""

    @property
    def trace_id(self) -> int:
        """Return the number of its trace; 0, which stands for none, if the origin is no UID."""
        return int(logs.trace_id(self.origin) or "0", 16)

    @property
    def span_id(self) -> int:
        """Return its own number."""
        return _number(self.origin, self.step, self.gang)

    @property
    def parent_id(self) -> int | None:
        """Return the number of the span that it is within; None for the first."""
        steps = list(Step)
        place = steps.index(self.step)
        if place == 0:
            return None
        # The review is of the set, all others are of a gang.
        return _number(self.origin, steps[place - 1], self.gang if place > 1 else "")


def _number(origin: str, step: Step, gang: str) -> int:
    digest = hashlib.sha256(f"{origin}/{step}/{gang}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1  # 0 stands for no span


Record = Callable[[Span], None]
"""Takes a span to be sent; it neither waits nor raises."""


class Exporter(Protocol):
    """Sends spans in the background."""

    def record(self, span: Span) -> None:
        """Take a span; one too many is dropped."""
        ...

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        ...


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says where traces go."""
    parser.add_argument(
        FLAG, type=_url, default=None, metavar="URL",
        help="send traces there by OTLP over HTTP (default: nowhere)",
    )  # fmt: skip


def _url(text: str) -> str:
    try:
        return endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def endpoint(text: str) -> str:
    """Check a URL; raises ValueError that says what is wrong."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is no URL, as in http://collector.monitoring:4318/v1/traces")
    if parts.username or parts.password:
        raise ValueError("credentials go into OTEL_EXPORTER_OTLP_TRACES_HEADERS, not into the URL")
    return text


def load() -> None:
    """Import OpenTelemetry, of which nothing is imported before. Raises StartupFailure."""
    try:
        importlib.import_module("kube.otlp")
    except ModuleNotFoundError as error:
        line = f"{FLAG} needs the extra {EXTRA!r}: {error.name} is missing; see docs/tracing.md"
        raise StartupFailure(exits.BAD_SETTINGS, line) from error


def exporting(url: str, process: str) -> Exporter:
    """Begin to export; raises StartupFailure if the extra is not there."""
    load()
    from kube.otlp import OtlpExporter  # noqa: PLC0415 - only here, where it is asked for

    return OtlpExporter(url, process)
