"""The files of the audit log: bounded in size, the oldest removed, whole after any death."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policies import audit_chain
from policies.audit_chain import Link

HEAD: Final = "head.json"
MIB: Final = 1 << 20
LARGEST_SEGMENT: Final = 10 * MIB
_NAME: Final = re.compile(r"audit-(\d{12,18})\.jsonl", re.ASCII)
# More than the longest line, so that the last one is surely in it.
_TAIL: Final = 256 * 1024


@dataclass(frozen=True)
class Room:
    """How many bytes the files may take, each and all together."""

    segment: int
    total: int

    @classmethod
    def of(cls, mebibytes: int) -> "Room":
        """Share out so many MiB: at least four files, none larger than 10 MiB."""
        total = mebibytes * MIB
        return cls(min(LARGEST_SEGMENT, total // 4), total)


@dataclass(frozen=True)
class Found:
    """What an earlier process left: where its chain stands, and what was cut off its end."""

    link: Link
    cut: int


def names_in(folder: Path) -> list[str]:
    """Give the names of the log's files, the oldest first."""
    found = [path.name for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=_first_of)


def _name_of(first: int) -> str:
    return f"audit-{first:012d}.jsonl"


def _first_of(name: str) -> int:
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else 0


class Files:
    """A folder with the files of one log. Every method but `close` may raise OSError.

    What was written when `append` returns is on the disk. If it raises, nothing of it is there.
    """

    def __init__(self, folder: Path, room: Room) -> None:
        self.folder: Final = folder
        self._room = room
        self._descriptor: int | None = None
        self._size = 0
        self.first = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a file to append to."""
        return self._descriptor is not None

    @property
    def is_full(self) -> bool:
        """Whether the next lines belong into another file."""
        return self._size >= self._room.segment

    def find(self) -> Found:
        """See where the chain stands, and cut off what is no whole line at its end."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cut = 0
        for name in reversed(names_in(self.folder)):
            path = self.folder / name
            cut += _cut_to_whole_lines(path)
            link = _last_link(path)
            if link is not None:
                return Found(link, cut)
        return Found(Link(), cut)

    def open(self, first: int) -> None:
        """Begin a new file, whose first line has this number."""
        path = self.folder / _name_of(first)
        # One of this name can only be without a whole line: else the chain would be further.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._size, self.first = 0, first

    def append(self, text: bytes) -> None:
        """Write whole lines, and see them to the disk."""
        descriptor = self._descriptor
        if descriptor is None:
            raise OSError("no file is open")
        try:
            left = memoryview(text)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError:
            self._take_back(descriptor)
            raise
        self._size += len(text)

    def _take_back(self, descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, self._size)
        except OSError:
            # What is torn is cut off by whoever opens the folder next; until then, another file.
            self.close()

    def discard_if_empty(self) -> None:
        """Let go of a file that took nothing: its name would tell of a line that is not there."""
        if self._descriptor is not None and not self._size:
            self.close()
            with suppress(OSError):
                (self.folder / _name_of(self.first)).unlink()

    def write_head(self, text: bytes) -> None:
        """Replace what tells where the log ends."""
        fresh = self.folder / f".{HEAD}"
        fresh.write_bytes(text)
        fresh.chmod(0o600)
        fresh.replace(self.folder / HEAD)

    def make_room(self) -> int:
        """Remove the oldest files until another one fits; gives the first line that is kept."""
        names = names_in(self.folder)
        sizes = {name: (self.folder / name).stat().st_size for name in names}
        while len(names) > 1 and sum(sizes.values()) + self._room.segment > self._room.total:
            gone = names.pop(0)
            (self.folder / gone).unlink()
            del sizes[gone]
        return _first_of(names[0]) if names else 0

    def close(self) -> None:
        """Close the file that is open, if one is."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def _cut_to_whole_lines(path: Path) -> int:
    size = path.stat().st_size
    tail = _tail(path, size)
    torn = len(tail) - (tail.rfind(b"\n") + 1)
    if torn:
        os.truncate(path, size - torn)
    return torn


def _last_link(path: Path) -> Link | None:
    lines = _tail(path, path.stat().st_size).split(b"\n")
    for text in reversed(lines):
        found = audit_chain.read(text) if text else None
        if found is not None:
            return found.link
    return None


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        return file.read()
