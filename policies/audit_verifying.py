"""Whether an audit log is whole: finds what was changed, taken out, moved or cut off. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from policies import audit_chain
from policies.audit_chain import Head, Link, Linked
from policies.audit_records import Missed, Opened, Record, Sealed, Summary

MOST_FAULTS: Final = 100

IsSigned = Callable[[str, str, bytes], bool]
"""Tell whether a public key (hex) made a signature (hex) of a text."""


@dataclass(frozen=True)
class Segment:
    """One file of the log: its name and its text."""

    name: str
    text: bytes


@dataclass(frozen=True)
class Trust:
    """Whose signatures count: by which keys, or by whichever there are if none is named."""

    is_signed: IsSigned
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: in which file, at which of its lines (from 1), and what."""

    segment: str
    line: int
    problem: str

    @override
    def __str__(self) -> str:
        """Give it as one line of text."""
        where = f"{self.segment} line {self.line}" if self.line else self.segment
        return f"{where}: {self.problem}"


@dataclass
class Report:
    """What was found in the log of one replica."""

    faults: list[Fault] = field(default_factory=list)
    lines: int = 0
    records: int = 0
    suppressed: int = 0
    dropped: int = 0
    missed: int = 0
    """Lines that could not be written, as the log itself says."""
    first: int = 0
    last: int = 0
    sealed: int = 0
    """Up to which line signatures vouch for the log."""
    keys: set[str] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def verify(segments: Sequence[Segment], head: Head | None, trust: Trust) -> Report:
    """Go through the files of one log in their order; `head` tells where it must end."""
    walk = _Walk(trust)
    for segment in segments:
        walk.take(segment)
    walk.end(head)
    return walk.report


class _Walk:
    """Goes from line to line, and stands where the last one has led it."""

    def __init__(self, trust: Trust) -> None:
        self.report = Report()
        self._trust = trust
        self._at: Link | None = None
        self._seen: dict[int, str] = {}
        self._where = ""
        self._line = 0
        self._closed = True
        self._oldest = 1
        self._first_of_segment = 0

    def take(self, segment: Segment) -> None:
        """Go through one file."""
        # A process that was killed leaves a file without a seal; the next line fits all the same.
        self._closed = False
        self._where, self._line, self._first_of_segment = segment.name, 0, 0
        for text in _lines_of(segment.text):
            self._line += 1
            if self._closed:
                self._fault("there is a line after the seal")
            self._take_line(text)
        if segment.text and not segment.text.endswith(b"\n"):
            self._fault("ends in the middle of a line")

    def _take_line(self, text: bytes) -> None:
        found = audit_chain.read(text)
        if found is None:
            self._fault("is no line of an audit log")
            return
        self.report.lines += 1
        if not found.fits:
            self._fault(f"line {found.seq} was changed: its hash is not that of its text")
        self._follows(found)
        self._at = found.link
        self._seen[found.seq] = found.hash
        self._first_of_segment = self._first_of_segment or found.seq
        self._read(found)

    def _follows(self, found: Linked) -> None:
        at = self._at
        if at is None:
            self.report.first = found.seq
        elif isinstance(found.said, Missed) and self._is_told(found, found.said, at):
            self.report.missed += found.seq - at.seq - 1
        elif found.seq <= at.seq:
            self._fault(f"line {found.seq} comes after line {at.seq}")
        elif found.seq > at.seq + 1:
            self._fault(f"lines {at.seq + 1} to {found.seq - 1} are missing before this one")
        elif found.prev != at.hash:
            self._fault(f"line {found.seq} does not follow from line {at.seq} as it is here")
        self.report.last = max(self.report.last, found.seq)

    @staticmethod
    def _is_told(found: Linked, said: Missed, at: Link) -> bool:
        return (said.after, said.after_hash) == (
            at.seq,
            at.hash,
        ) and found.seq - at.seq - 1 == said.lines

    def _read(self, found: Linked) -> None:
        self._closed = isinstance(found.said, Sealed)
        match found.said:
            case None:
                self._fault(f"line {found.seq} says nothing that is known")
            case Record(suppressed=suppressed):
                self.report.records += 1
                self.report.suppressed += suppressed
            case Summary(suppressed=suppressed, dropped=dropped):
                self.report.suppressed += suppressed
                self.report.dropped += dropped
            case Opened(oldest=oldest):
                self._oldest = max(self._oldest, oldest)
            case Sealed() as seal:
                self._check(seal, found)
            case Missed():
                pass

    def _check(self, seal: Sealed, found: Linked) -> None:
        text = audit_chain.sealed_text(Link(found.seq - 1, found.prev), seal.first)
        if seal.first != self._first_of_segment:
            self._fault(f"its seal speaks of a file that begins with line {seal.first}")
        if self._vouches(seal.key, seal.signature, text, "seal"):
            self.report.sealed = found.seq

    def _vouches(self, key: str, signature: str, text: bytes, what: str) -> bool:
        if self._trust.keys and key not in self._trust.keys:
            self._fault(f"the {what} is signed by a key that is not trusted: {key[:16]}…")
            return False
        if not self._trust.is_signed(key, signature, text):
            self._fault(f"the {what}'s signature is not of what is here")
            return False
        self.report.keys.add(key)
        return True

    def end(self, head: Head | None) -> None:
        """Hold what was found against where the log begins and ends."""
        self._line = 0
        if self.report.first > self._oldest:
            self._where = "the log"
            self._fault(
                f"lines {self._oldest} to {self.report.first - 1} are missing at its beginning"
            )
        if head is None:
            self._where = "head"
            self._fault("is missing or cannot be read: whether the end was cut off is not known")
            return
        self._where = "head"
        if head.seq > self.report.last:
            self._fault(f"lines {self.report.last + 1} to {head.seq} are missing at the end")
        elif head.seq and self._seen.get(head.seq) not in (None, head.hash):
            self._fault(f"line {head.seq} is another than the one that was written")
        elif self._vouches(head.key, head.signature, audit_chain.head_text(head.link), "head"):
            self.report.sealed = max(self.report.sealed, head.seq)

    def _fault(self, problem: str) -> None:
        if len(self.report.faults) < MOST_FAULTS:
            self.report.faults.append(Fault(self._where, self._line, problem))


def _lines_of(text: bytes) -> Iterable[bytes]:
    # What comes after the last end of a line is none.
    return text.split(b"\n")[:-1]
