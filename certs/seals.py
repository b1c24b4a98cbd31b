"""Signatures under the audit log: one secret gives the key to sign by and the key of its tags."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# A webhook that keeps no log is not to load cryptography, so it is imported where it is used.

SHORTEST_SECRET: Final = 32


@dataclass(frozen=True)
class Signer:
    """Signs by Ed25519."""

    private: "Ed25519PrivateKey"

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """Make the signer that a secret stands for: always the same one."""
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - see above

        return cls(ed25519.Ed25519PrivateKey.from_private_bytes(_derived(secret, b"sign")))

    @property
    def public(self) -> str:
        """The public key, in hex."""
        return self.private.public_key().public_bytes_raw().hex()

    def sign(self, text: bytes) -> str:
        """Give the signature, in hex."""
        return self.private.sign(text).hex()


def tag_key(secret: bytes) -> bytes:
    """Give the key of the tags that stand for redacted text."""
    return _derived(secret, b"tags")


def is_signed(public: str, signature: str, text: bytes) -> bool:
    """Tell whether this key signed this text; whatever is no key and no signature did not."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - see above

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.new(secret, b"penstock audit " + purpose, hashlib.sha256).digest()
