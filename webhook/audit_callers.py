"""Who may read the audit log: API servers that act for somebody, and replicas of ours.

An API server that passes a request on has asked its own authorizer first, and shows a certificate
of an authority of its own. What it says of the caller counts only under that certificate.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from certs import seals
from certs.seals import Signer
from webhook import peers

CONFIG: Final = "extension-apiserver-authentication"
CONFIG_NAMESPACE: Final = "kube-system"
USER_HEADER: Final = "X-Remote-User"
PEER_HEADER: Final = "X-Penstock-Peer"
PEER_SECONDS: Final = 60.0
"""For how long a replica's signature under a question counts; clocks differ."""


Header = Callable[[str], str | None]
"""Gives a header of a request by its name."""


@dataclass(frozen=True)
class FrontProxy:
    """By which certificates API servers are known; with no name, each of the authority's is one."""

    authority: str
    names: tuple[str, ...] = ()
    user_headers: tuple[str, ...] = (USER_HEADER,)

    @classmethod
    def read(cls, data: Mapping[str, str]) -> "FrontProxy | None":
        """Read what an API server says of itself; None if it says nothing of a front proxy."""
        authority = data.get("requestheader-client-ca-file", "")
        if not authority.strip():
            return None
        names = _listed(data.get("requestheader-allowed-names"))
        headers = _listed(data.get("requestheader-username-headers"))
        return cls(authority, names or (), headers or (USER_HEADER,))

    def caller(self, certificate: Mapping[str, object], header: Header) -> str:
        """Give the user an API server speaks for; empty if none does."""
        if not certificate:
            return ""
        if self.names and not any(name in self.names for name in peers.names_in(certificate)):
            return ""
        found = map(header, self.user_headers)
        return next((user for user in found if user), "")


def _listed(text: str | None) -> tuple[str, ...] | None:
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    return tuple(each for each in found if isinstance(each, str))


@dataclass(frozen=True)
class Peers:
    """Replicas know each other by the key that they share."""

    signer: Signer
    seconds: Callable[[], float]
    """Gives Unix seconds."""

    def header(self, target: str) -> str:
        """Give what stands under a question to another replica."""
        when = str(int(self.seconds()))
        return f"{when}:{self.signer.sign(_question(when, target))}"

    def is_one(self, header: str, target: str) -> bool:
        """Tell whether a replica asks this, and asks it now."""
        when, _, signature = header.partition(":")
        if not (when.isascii() and when.isdigit() and len(when) < 15):
            return False
        if abs(self.seconds() - int(when)) > PEER_SECONDS:
            return False
        return seals.is_signed(self.signer.public, signature, _question(when, target))


def _question(when: str, target: str) -> bytes:
    return f"penstock audit peer v1\n{when}\n{target}".encode()
