"""What is told of the audit log at each path of its API: which logs there are, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from api import names
from webhook import audit_files

GROUP: Final = f"audit.{names.GROUP}"
VERSION: Final = names.VERSION
ROOT: Final = f"/apis/{GROUP}/{VERSION}"
LOGS: Final = f"{ROOT}/auditlogs"
JSON: Final = "application/json"
TEXT: Final = "application/x-ndjson"


class File(msgspec.Struct, frozen=True):
    """A file of a log."""

    name: str
    size: int


class Meta(msgspec.Struct, frozen=True):
    """What the object that stands for a log is called."""

    name: str


class AuditLog(msgspec.Struct, frozen=True, rename="camel"):
    """The log of one replica: its files, the oldest first, and where it ends."""

    metadata: Meta
    files: Sequence[File] = ()
    head: str = ""
    kind: str = "AuditLog"
    api_version: str = f"{GROUP}/{VERSION}"


class AuditLogs(msgspec.Struct, frozen=True, rename="camel"):
    """The logs of all replicas, and those replicas that could not be asked."""

    items: Sequence[AuditLog]
    unreachable: Sequence[str] = ()
    kind: str = "AuditLogList"
    api_version: str = f"{GROUP}/{VERSION}"
    metadata: dict[str, str] = {}


@dataclass(frozen=True)
class Reply:
    """An HTTP reply."""

    status: int
    body: bytes
    content_type: str = JSON


class Others:
    """Replicas beside this one; here there are none."""

    def ask(self, target: str) -> tuple[list[Reply], list[str]]:
        """Ask each for a path; gives their answers, and who gave none."""
        del target
        return [], []


@dataclass(frozen=True)
class Api:
    """Answers for one replica, and for the others through it."""

    replica: str
    folder: Path
    others: Others

    def answer(self, target: str, *, only_here: bool) -> Reply:
        """Answer a GET of a path with its query; `only_here` asks no other replica."""
        parts = urlsplit(target)
        path = parts.path.rstrip("/")
        if path == ROOT:
            return _discovery()
        if path == LOGS:
            return self._list(only_here=only_here)
        if path.startswith(f"{LOGS}/"):
            replica = unquote(path.removeprefix(f"{LOGS}/"))
            (name,) = parse_qs(parts.query).get("file", [""])[:1]
            return self._file(replica, name, target, only_here=only_here)
        return status(404, "NotFound", f"there is nothing at {path}")

    def _list(self, *, only_here: bool) -> Reply:
        found, silent = ([], []) if only_here else self.others.ask(LOGS)
        logs = {self.replica: self._own()}
        for reply in found:
            for each in msgspec.json.decode(reply.body, type=AuditLogs).items:
                logs.setdefault(each.metadata.name, each)
        listed = AuditLogs([logs[name] for name in sorted(logs)], silent)
        return Reply(200, msgspec.json.encode(listed))

    def _own(self) -> AuditLog:
        # The head first: what is written after it is no fault, and what it tells of is there.
        head = _text(self.folder / audit_files.HEAD).decode(errors="replace")
        sizes = [(name, _size(self.folder / name)) for name in _names(self.folder)]
        files = [File(name, size) for name, size in sizes if size]
        return AuditLog(Meta(self.replica), files, head)

    def _file(self, replica: str, name: str, target: str, *, only_here: bool) -> Reply:
        if replica == self.replica:
            if name not in _names(self.folder):
                return status(404, "NotFound", f"{replica} has no file {name!r}")
            return Reply(200, _text(self.folder / name), TEXT)
        found, _ = ([], []) if only_here else self.others.ask(target)
        good = next((reply for reply in found if reply.status == 200), None)
        return good or status(404, "NotFound", f"there is no audit log {replica!r}")


def status(code: int, reason: str, message: str) -> Reply:
    """Say that something cannot be had, as API servers do."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return Reply(code, msgspec.json.encode(body))


def _discovery() -> Reply:
    resource = {
        "name": "auditlogs",
        "singularName": "auditlog",
        "namespaced": False,
        "kind": "AuditLog",
        "verbs": ["get", "list"],
    }
    body = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [resource],
    }
    return Reply(200, msgspec.json.encode(body))


def _names(folder: Path) -> list[str]:
    try:
        return audit_files.names_in(folder)
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
