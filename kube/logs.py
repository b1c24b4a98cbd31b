"""How processes write their log: a line an event, for people, or for machines as JSON.

What an event is about is known to whoever took a key up, and not to all who write of it further
down: it is kept beside the task or thread, and `about` says it once.
"""

import argparse
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from kube.objects import Key

FORMATS: Final = ("text", "json")
FLAG: Final = "--log-format"
KEYS: Final = (
    "ts", "level", "logger", "msg", "process", "kind", "namespace", "name", "trace_id", "stack",
)  # fmt: skip
"""All keys that a line may have, in their order; the first five are in each."""


class Subject:
    """An object that work goes on about; `uid` is that of the set it is part of, once known."""

    __slots__ = ("kind", "name", "namespace", "uid")

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        self.kind: Final = kind
        self.namespace: Final = namespace
        self.name: Final = name
        self.uid = ""


_subject: ContextVar[Subject | None] = ContextVar("subject", default=None)


def about(kind: str, namespace: str, name: str) -> None:
    """Have what this task or thread logs from now on bear the object's name."""
    _subject.set(Subject(kind, namespace, name))


def of(kind: str, work: Callable[[Key], Awaitable[None]]) -> Callable[[Key], Awaitable[None]]:
    """Give the same work on an object, and have all that is logged meanwhile bear its name."""

    async def named(key: Key) -> None:
        about(kind, *key)
        await work(key)

    return named


def part_of(uid: str) -> None:
    """Tell of which set the object is a part; its UID is what traces go by."""
    subject = _subject.get()
    if subject is not None:
        subject.uid = uid


def about_nothing() -> None:
    """Have what is logged from now on bear no name."""
    _subject.set(None)


def trace_id(uid: str) -> str:
    """Return the number of a set's trace, as tools for traces write it; "" for what is no UID."""
    digits = uid.replace("-", "").lower()
    return digits if len(digits) == 32 and set(digits) <= set("0123456789abcdef") else ""


class JsonLines(logging.Formatter):
    """One object a line with none but known keys, so that nothing gets in by the way."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Write one event."""
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            "process": self._process,
        }
        subject = _subject.get()
        if subject is not None:
            line["kind"] = subject.kind
            line["namespace"] = subject.namespace
            line["name"] = subject.name
            if trace := trace_id(subject.uid):
                line["trace_id"] = trace
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says how the log is written."""
    parser.add_argument(
        FLAG, choices=FORMATS, default="text",
        help="for people, or one JSON object a line (default: text)",
    )  # fmt: skip


def last_words(form: str, program: str, line: str) -> None:
    """Say why a process cannot go on, in one line in either form."""
    if form == "json":
        logging.getLogger(__name__).critical("%s", line)
    else:
        sys.stderr.write(f"{program}: {line}\n")


def configure(form: str, level: str, process: str, text: logging.Formatter) -> None:
    """Write to stderr what is at least so important; `text` is how people read it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process) if form == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler])
