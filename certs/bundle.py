"""CA bundles in which the authority of yesterday overlaps those of today and tomorrow."""

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs import reading


def good(pem: bytes, now: datetime) -> tuple[x509.Certificate, ...]:
    """Give the authorities in a bundle that have not expired, each once, in order."""
    found = (
        certificate
        for certificate in reading.certificates(pem)
        if reading.is_authority(certificate) and now <= certificate.not_valid_after_utc
    )
    return tuple(dict.fromkeys(found))


def text(authorities: tuple[x509.Certificate, ...]) -> bytes:
    """Write authorities as a bundle."""
    return b"".join(
        certificate.public_bytes(serialization.Encoding.PEM) for certificate in authorities
    )
