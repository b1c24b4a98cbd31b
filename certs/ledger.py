"""What the authority's Secret says: who signs now, who will, who did, and how far a change is.

A rotation has four phases, each written down here before the next begins, so that whoever finds the
Secret can go on:

1. `Trusting`: another authority lies beside the one that signs, and is put into every CA bundle.
   Once all bundles were read back with it, the wait begins: API servers take a while to learn.
2. `Serving`: the newcomer signs from now on. The leaf is issued anew.
3. Still `Serving`, until every ready replica shows a leaf of the new authority.
4. `Retiring`: the former authority stays trusted for a day more, then leaves the bundles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from api import names
from certs import bundle
from certs.issue import Authority

CERTIFICATE: Final = "ca.crt"
KEY: Final = "ca.key"
NEXT_CERTIFICATE: Final = "next.crt"
NEXT_KEY: Final = "next.key"
FORMER: Final = "former.crt"
# Each was out of use before its successor came, so dropping the oldest early harms nobody.
MOST_FORMER: Final = 8


class Phase(Enum):
    """How far a change of authority is, as people read it in the annotation."""

    STEADY = "Steady"
    TRUSTING = "Trusting"
    SERVING = "Serving"
    RETIRING = "Retiring"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key as they were found; empty is what is not there."""

    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Ledger:
    """The Secret's content. `since` is when the wait of the phase began, if it has."""

    authority: Pair = Pair()
    incoming: Pair = Pair()
    former: bytes = b""
    phase: Phase = Phase.STEADY
    since: datetime | None = None
    wish: str = ""
    granted: str = ""

    def introduced(self, fresh: Authority) -> "Ledger":
        """Phase 1 begins: the newcomer lies beside the authority, which goes on signing."""
        newcomer = Pair(fresh.certificate_pem, fresh.key_pem)
        return replace(self, incoming=newcomer, phase=Phase.TRUSTING, since=None, granted=self.wish)

    def trusted(self, now: datetime) -> "Ledger":
        """Every bundle was read back with the newcomer: the wait of phase 1 begins."""
        return replace(self, phase=Phase.TRUSTING, since=now)

    def promoted(self, now: datetime) -> "Ledger":
        """Phase 2 begins: the newcomer signs, and who signed before is former."""
        former = bundle.good(self.authority.certificate + b"\n" + self.former, now)
        kept = bundle.text(former[:MOST_FORMER])
        phase = Phase.SERVING if kept else Phase.STEADY
        return replace(
            self, authority=self.incoming, incoming=Pair(), former=kept, phase=phase, since=None
        )

    def served(self, now: datetime) -> "Ledger":
        """Phase 4 begins: nobody shows a leaf of a former authority any more."""
        return replace(self, phase=Phase.RETIRING, since=now)

    def settled(self) -> "Ledger":
        """All is done: former authorities are forgotten."""
        return replace(self, former=b"", phase=Phase.STEADY, since=None)


def read(data: Mapping[str, bytes], annotations: Mapping[str, str]) -> Ledger:
    """Read a Secret; what makes no sense is as good as absent."""
    try:
        phase = Phase(annotations.get(names.ROTATION_PHASE, ""))
    except ValueError:
        phase = Phase.STEADY
    return Ledger(
        Pair(data.get(CERTIFICATE, b""), data.get(KEY, b"")),
        Pair(data.get(NEXT_CERTIFICATE, b""), data.get(NEXT_KEY, b"")),
        data.get(FORMER, b""),
        phase,
        _instant(annotations.get(names.ROTATION_SINCE, "")),
        annotations.get(names.ROTATE, ""),
        annotations.get(names.ROTATED, ""),
    )


def data(ledger: Ledger) -> dict[str, bytes | None]:
    """Give the Secret's data as a merge patch wants it: None takes a key away."""
    parts = {
        CERTIFICATE: ledger.authority.certificate,
        KEY: ledger.authority.key,
        NEXT_CERTIFICATE: ledger.incoming.certificate,
        NEXT_KEY: ledger.incoming.key,
        FORMER: ledger.former,
    }
    return {key: part or None for key, part in parts.items()}


def annotations(ledger: Ledger) -> dict[str, str | None]:
    """Give the annotations that are ours to write; people write their wish themselves."""
    return {
        names.ROTATION_PHASE: ledger.phase.value,
        names.ROTATION_SINCE: ledger.since.isoformat() if ledger.since else None,
        names.ROTATED: ledger.granted or None,
    }


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None
