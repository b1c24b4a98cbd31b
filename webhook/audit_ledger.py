"""The audit log as it is written: one chain of lines, to files and to standard output.

A line has its place in the chain before anybody knows whether it can be written. What a file could
not take is told in the next line that it can, so that it is told apart from what somebody removed.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from certs.seals import Signer
from policies import audit_chain
from policies.audit_building import timestamp
from policies.audit_chain import Head, Link
from policies.audit_records import Line, Missed, Opened, Sealed
from webhook.audit_files import Files

LOG: Final = logging.getLogger(__name__)

Write = Callable[[bytes], None]


@dataclass(frozen=True)
class Scribe:
    """Who writes: the replica's name, the name of a new chain, its seal, and the hour."""

    pod: str
    chain: str
    signer: Signer
    now: Callable[[], datetime]


class Ledger:
    """Appends lines. Never raises for what its files or its output cannot take."""

    def __init__(self, scribe: Scribe, files: Files | None, out: Write | None) -> None:
        self._scribe = scribe
        self._files = files
        self._out = out
        self._at = Link()
        self._on_disk = Link()
        self._is_found = files is None
        self._oldest = 1
        self._cut = 0
        self.is_failing = False

    @property
    def at(self) -> Link:
        """Where the chain stands."""
        return self._at

    def append(self, said: Sequence[Line]) -> int:
        """Write lines; gives how many of them no file has, where one should."""
        before = self._at
        if self._files is not None:
            try:
                self._prepare(self._files)
            except OSError as error:
                self._fail(error)
        if self._files is not None and self._files.is_open and self._on_disk != self._at:
            said = [self._missed(), *said]
        text = self._chained(said)
        return self._written(text, self._at.seq - before.seq) if text else 0

    def close(self) -> None:
        """Seal the file that is open."""
        if self._files is not None and self._files.is_open and self._on_disk == self._at:
            self._seal(self._files)
            self._files.close()

    def _prepare(self, files: Files) -> None:
        """See that there is a file to append to, with room left in it."""
        if not self._is_found:
            found = files.find()
            # Goes on where the files end, even if lines went out while they could not be read.
            self._at = self._on_disk = found.link
            self._cut, self._is_found = found.cut, True
        if files.is_open and not files.is_full:
            return
        if files.is_open:
            if self._on_disk == self._at:
                self._seal(files)
            files.close()
        self._oldest = files.make_room() or self._at.seq + 1
        files.open(self._at.seq + 1)
        opened = Opened(
            ts=self._time(),
            pod=self._scribe.pod,
            chain=self._scribe.chain,
            oldest=self._oldest,
            cut=self._cut,
        )
        first = [self._missed()] if self._on_disk != self._at else []
        self._cut = 0
        self._written(self._chained([*first, opened]), len(first) + 1)

    def _missed(self) -> Missed:
        gone = self._at.seq - self._on_disk.seq
        return Missed(
            ts=self._time(),
            pod=self._scribe.pod,
            after=self._on_disk.seq,
            after_hash=self._on_disk.hash,
            lines=gone,
        )

    def _seal(self, files: Files) -> None:
        signer = self._scribe.signer
        signature = signer.sign(audit_chain.sealed_text(self._at, files.first))
        seal = Sealed(ts=self._time(), first=files.first, key=signer.public, signature=signature)
        self._written(self._chained([seal]), 1)

    def _chained(self, said: Sequence[Line]) -> bytes:
        texts: list[bytes] = []
        for each in said:
            text, self._at = audit_chain.chained(each, self._at)
            texts.append(text)
        return b"".join(texts)

    def _written(self, text: bytes, lines: int) -> int:
        """Put out what is chained; gives how many lines the files could not take."""
        if self._out is not None:
            try:
                self._out(text)
            except (OSError, ValueError) as error:
                self._fail(error)
        files = self._files
        if files is None:
            return 0
        try:
            files.append(text)
        except OSError as error:
            self._fail(error)
            files.discard_if_empty()
            return lines
        self._on_disk = self._at
        if self.is_failing:
            self.is_failing = False
            LOG.warning("the audit log can be written again")
        self._write_head(files)
        return 0

    def _write_head(self, files: Files) -> None:
        signer = self._scribe.signer
        link = self._on_disk
        signature = signer.sign(audit_chain.head_text(link))
        try:
            head = Head(link.seq, link.hash, signer.public, signature)
            files.write_head(msgspec.json.encode(head))
        except OSError as error:
            # An old one is no fault: it tells less.
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self.is_failing:
            LOG.error(
                "the audit log cannot be written (reviews are answered all the same): %s", error
            )
        self.is_failing = True

    def _time(self) -> str:
        return timestamp(self._scribe.now())
