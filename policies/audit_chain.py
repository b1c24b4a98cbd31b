"""The chain of the audit log's lines: each holds its number, and the hash of the one before it.

A line is a JSON object whose text counts byte for byte. Its last field is the hash of the text
before that, which ends with the hash of the line before: whatever is changed, taken out or put
elsewhere, the line after it no longer fits.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

import msgspec

from policies.audit_records import VERSION, Line

BEGINNING: Final = "0" * 64
"""The hash before the first line."""

_FORM: Final = re.compile(
    rb'\{"v":(\d{1,3}),"seq":(\d{1,18}),(".*),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}'
)
_TAIL: Final = len(',"hash":""}') + 64
_SEAL: Final = b"penstock audit seal v1\n"
_HEAD: Final = b"penstock audit head v1\n"
_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


@dataclass(frozen=True)
class Link:
    """Where a chain stands: the number and the hash of its last line."""

    seq: int = 0
    hash: str = BEGINNING


@dataclass(frozen=True)
class Linked:
    """A line of a chain as it was read."""

    seq: int
    prev: str
    hash: str
    fits: bool
    """Whether its hash is that of its text."""
    said: Line | None
    """What it says; None if nobody knows how to read that."""

    @property
    def link(self) -> Link:
        """Where the chain stands after it."""
        return Link(self.seq, self.hash)


def chained(said: Line, after: Link) -> tuple[bytes, Link]:
    """Give the text of the next line of a chain, its end included, and where the chain stands."""
    seq = after.seq + 1
    body = _encoder.encode(said)[1:-1]
    text = b'{"v":%d,"seq":%d,%b,"prev":"%b"' % (VERSION, seq, body, after.hash.encode())
    written = hashlib.sha256(text).hexdigest()
    return b'%b,"hash":"%b"}\n' % (text, written.encode()), Link(seq, written)


def read(text: bytes) -> Linked | None:
    """Read a line without its end; None if it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, seq, body, prev, written = found.groups()
    fits = hashlib.sha256(text[:-_TAIL]).hexdigest().encode() == written
    return Linked(int(seq), prev.decode(), written.decode(), fits, _said(version, body))


def _said(version: bytes, body: bytes) -> Line | None:
    if int(version) != VERSION:
        return None
    try:
        return _decoder.decode(b"{%b}" % body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def sealed_text(link: Link, first: int) -> bytes:
    """Give what is signed when a file is closed: its first line, and its last before the seal."""
    return _SEAL + f"{first}\n{link.seq}\n{link.hash}".encode()


class Head(msgspec.Struct, frozen=True):
    """Where a chain stands, told beside the files, so that their end cannot be cut off."""

    seq: int
    hash: str
    key: str = ""
    signature: str = ""

    @property
    def link(self) -> Link:
        """Where the chain stood."""
        return Link(self.seq, self.hash)


def head_text(link: Link) -> bytes:
    """Give what is signed of a head."""
    return _HEAD + f"{link.seq}\n{link.hash}".encode()


def read_head(text: bytes) -> Head | None:
    """Read a head; None if it is none."""
    try:
        return msgspec.json.decode(text, type=Head)
    except (msgspec.MsgspecError, ValueError):
        return None
