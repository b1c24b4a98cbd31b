"""CA bundles in which the authority of yesterday overlaps those of today and tomorrow."""

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs import reading


def merge(authority: bytes, earlier: bytes, now: datetime) -> bytes:
    """Put the authority's certificate before those of an earlier bundle that are still good.

    Doubles, expired certificates and whatever is not a readable authority are dropped, so that
    merging again changes nothing. An API server that trusts the result accepts leaves of old and
    new authority alike, in whichever order bundle and leaf reach it.
    """
    return text(good(authority + b"\n" + earlier, now))


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
