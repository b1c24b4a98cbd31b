"""The webhook's certificates as a person handles them: asks for a rotation, looks, spoils them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

import msgspec

from api import names
from certs.issue import Authority
from certs.ledger import FORMER
from kube.client import Client
from kube.errors import NotFound
from kube.resources import SECRETS

PATIENCE: Final = 60.0


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class Secret(msgspec.Struct, frozen=True):
    """A Secret with its data decoded."""

    metadata: _Metadata
    data: dict[str, bytes] = {}  # msgspec takes the base64 off


@dataclass(frozen=True)
class Certificates:
    """Both Secrets at one look."""

    ca: Secret
    tls: Secret

    @property
    def authority(self) -> Authority:
        return Authority(self.ca.data["ca.crt"], self.ca.data["ca.key"])

    @property
    def leaf(self) -> bytes:
        return self.tls.data.get("tls.crt", b"")

    @property
    def former(self) -> bytes:
        """Authorities that are still trusted and sign no more."""
        return self.ca.data.get(FORMER, b"")

    @property
    def phase(self) -> str:
        return self.ca.metadata.annotations.get(names.ROTATION_PHASE, "")

    @property
    def alarm(self) -> str:
        return self.ca.metadata.annotations.get(names.CERTIFICATE_ALARM, "")

    @property
    def at_rest(self) -> bool:
        """Nothing is being changed; a former authority may still be trusted."""
        return self.phase in {"Retiring", "Steady"} and bool(self.leaf)


async def rotate(person: Client, *, patience: float = PATIENCE) -> bytes:
    """Have a new authority made; return the new leaf once every ready replica serves it.

    How long that takes is mostly the wait that `gangs` was told (`--trust-wait`).
    """
    wish = token_hex(4)
    body = {"metadata": {"annotations": {names.ROTATE: wish}}}
    await person.merge_patch(SECRETS, names.CA_SECRET, body, names.NAMESPACE)

    def done(found: Certificates) -> bool:
        return found.at_rest and found.ca.metadata.annotations.get(names.ROTATED) == wish

    return (await until(person, done, patience=patience)).leaf


async def look(person: Client) -> Certificates:
    """Read both Secrets."""
    return Certificates(
        await person.get(SECRETS, Secret, names.CA_SECRET, names.NAMESPACE),
        await person.get(SECRETS, Secret, names.TLS_SECRET, names.NAMESPACE),
    )


async def until(
    person: Client, wanted: Callable[[Certificates], bool], *, patience: float = PATIENCE
) -> Certificates:
    """Look until the certificates are as wanted; one that is gone for the moment is waited for."""
    seen = "nothing"
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    found = await look(person)
                except NotFound as error:
                    seen = error.message
                else:
                    if wanted(found):
                        return found
                    seen = f"{found.ca.metadata.annotations}, {sorted(found.tls.data)}"
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {patience:.0f} s; last seen: {seen}") from None


async def spoil(person: Client, secret: str, data: dict[str, bytes | None] | None) -> None:
    """Put something into a Secret; None takes all of its data away."""
    await person.merge_patch(SECRETS, secret, {"data": data}, names.NAMESPACE)
