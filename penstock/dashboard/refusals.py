"""The specs that were refused last, out of the audit log, as it grows."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from kube.clock import Clock
from kube.errors import ApiError, Forbidden, NotFound
from penstock.dashboard.view import RefusalRow, Violation
from policies import audit_reading
from policies.audit_reading import Entry
from policies.audit_records import DENY, Record
from policies.audit_verifying import Segment
from webhook import audit_api, audit_files
from webhook.audit_api import AuditLogs

_log = logging.getLogger(__name__)

MOST: Final = 200  # that are shown
LOOK_EVERY: Final = 2.0  # seconds
ASK_EVERY: Final = 5.0  # seconds, where all replicas are asked through the API server
_LAST: Final = 2  # files of each replica: the one that is written, and the one before


@dataclass(frozen=True)
class LogFile:
    """A file of a replica's log."""

    replica: str
    name: str
    size: int


class Source(Protocol):
    """Where the log is."""

    every: float
    """Seconds between two looks."""

    async def files(self) -> Sequence[LogFile]:
        """List the files, of each replica the oldest first."""
        ...

    async def text(self, file: LogFile) -> bytes:
        """Read a file."""
        ...


class NoLogError(Exception):
    """There is no log to read; the message says why, and what to do."""


class Folder:
    """The log of one replica in a folder, or folders with such logs in it."""

    every = LOOK_EVERY

    def __init__(self, path: Path) -> None:
        self._path = path

    async def files(self) -> Sequence[LogFile]:
        """List what is there now."""
        try:
            return await asyncio.to_thread(self._files)
        except OSError as error:
            raise NoLogError(f"--audit-dir: {self._path}: {error.strerror}") from error

    def _files(self) -> list[LogFile]:
        homes = [self._path, *sorted(path for path in self._path.iterdir() if path.is_dir())]
        return [
            LogFile(str(home), name, (home / name).stat().st_size)
            for home in homes
            for name in audit_files.names_in(home)
        ]

    async def text(self, file: LogFile) -> bytes:
        """Read it; one that made room for another is empty."""
        try:
            return await asyncio.to_thread((Path(file.replica) / file.name).read_bytes)
        except FileNotFoundError:
            return b""


class Asks(Protocol):
    """What is needed of a client."""

    async def raw_get(self, path: str) -> bytes:
        """Return the body at a path."""
        ...


class Served:
    """The logs of all replicas through the API server, which asks whether we may."""

    every = ASK_EVERY

    def __init__(self, client: Asks) -> None:
        self._client = client

    async def files(self) -> Sequence[LogFile]:
        """Ask which logs there are."""
        try:
            text = await self._client.raw_get(audit_api.LOGS)
        except NotFound as error:
            raise NoLogError(
                "refused specs are not shown: this cluster serves no audit log (the chart's"
                " audit.serve); or name its folder with --audit-dir"
            ) from error
        except Forbidden as error:
            raise NoLogError(
                "refused specs are not shown: you may not read the audit log, if this cluster"
                " serves one (the chart's audit.serve); ask for the ClusterRole"
                " penstock-audit-reader, or name the log's folder with --audit-dir"
            ) from error
        listed = msgspec.json.decode(text, type=AuditLogs)
        return [
            LogFile(log.metadata.name, file.name, file.size)
            for log in listed.items
            for file in log.files
        ]

    async def text(self, file: LogFile) -> bytes:
        """Ask for one."""
        path = f"{audit_api.LOGS}/{quote(file.replica, safe='')}?file={quote(file.name)}"
        try:
            return await self._client.raw_get(path)
        except NotFound:
            return b""


class Refusals:
    """Follows a log. `news` is called when there are more refusals, or why there are none."""

    def __init__(self, source: Source, clock: Clock, news: Callable[[], None]) -> None:
        self.rows: dict[str, RefusalRow] = {}
        self.note = ""
        self._source = source
        self._clock = clock
        self._news = news
        self._read: dict[tuple[str, str], int] = {}  # bytes of each file that were looked through

    async def run(self) -> None:
        """Follow it for ever."""
        while True:
            await self.look()
            await self._clock.sleep(self._source.every)

    async def look(self) -> None:
        """Read what was written since the last time."""
        try:
            found = await self._new()
        except NoLogError as error:
            self._note(str(error))
            return
        except (ApiError, OSError, msgspec.DecodeError) as error:
            _log.info("the audit log cannot be read now: %s", error)
            return
        self._note("")
        if found:
            self.rows = newest({**self.rows, **found}, MOST)
            self._news()

    async def _new(self) -> dict[str, RefusalRow]:
        found: dict[str, RefusalRow] = {}
        for file in _last(await self._source.files()):
            key = file.replica, file.name
            begun = self._read.get(key, 0)
            if file.size <= begun:
                continue
            text = await self._source.text(file)
            # A line that is still being written is looked at when it is there.
            end = text.rfind(b"\n") + 1
            more = text[begun:end]
            self._read[key] = max(begun, end)
            found.update(await asyncio.to_thread(refused, file.replica, more))
        return found

    def _note(self, text: str) -> None:
        if text != self.note:
            self.note = text
            self._news()


def refused(replica: str, text: bytes) -> dict[str, RefusalRow]:
    """Give the refusals among these lines, by keys that sort by time.

    Dry runs are none: nothing was to be stored, as when the chart proves that admission refuses.
    """
    every = audit_reading.entries([Segment("", text)])
    return {
        f"{each.record.ts} {Path(replica).name} {each.seq}": row(each)
        for each in every
        if each.record.decision == DENY and not each.record.dry_run
    }


def row(entry: Entry) -> RefusalRow:
    """Tell of a refusal what the record says."""
    record = entry.record
    return RefusalRow(
        at=record.ts,
        what=f"{record.gvk.rpartition('/')[2]} {_named(record)}",
        operation=record.op,
        user=record.user.name,
        violations=tuple(Violation(v.rule, v.message, v.path) for v in record.violations),
        more=record.more_violations,
    )


def newest(rows: dict[str, RefusalRow], most: int) -> dict[str, RefusalRow]:
    """Keep so many of them."""
    return {key: rows[key] for key in sorted(rows)[-most:]}


def _named(record: Record) -> str:
    name = record.name or record.generate_name
    return f"{record.ns}/{name}" if record.ns else name


def _last(files: Iterable[LogFile]) -> list[LogFile]:
    by_replica: dict[str, list[LogFile]] = {}
    for file in files:
        by_replica.setdefault(file.replica, []).append(file)
    return [file for found in by_replica.values() for file in found[-_LAST:]]
