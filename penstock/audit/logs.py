"""Audit logs out of folders: of one replica, or a folder of such folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies import audit_chain
from policies.audit_chain import Head
from policies.audit_verifying import Segment
from webhook import audit_files


class BadLogError(Exception):
    """A log cannot be read; the message is one line that names it."""


@dataclass(frozen=True)
class Log:
    """The log of one replica."""

    replica: str
    segments: Sequence[Segment]
    head: Head | None


def read(folders: Sequence[Path]) -> list[Log]:
    """Read the logs in these folders."""
    found: list[Log] = []
    for folder in folders:
        try:
            homes = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
            found += [_log(home) for home in homes if audit_files.names_in(home)]
        except OSError as error:
            raise BadLogError(f"{folder} cannot be read: {error.strerror}") from error
    if not found:
        raise BadLogError(f"there is no audit log in {', '.join(map(str, folders))}")
    return found


def _log(folder: Path) -> Log:
    # First, since a log that is being written may go on after it, and only that.
    try:
        head = audit_chain.read_head((folder / audit_files.HEAD).read_bytes())
    except FileNotFoundError:
        head = None
    segments = []
    for name in audit_files.names_in(folder):
        try:
            segments.append(Segment(name, (folder / name).read_bytes()))
        except FileNotFoundError:
            continue  # made room for another just now
    return Log(folder.name, segments, head)
