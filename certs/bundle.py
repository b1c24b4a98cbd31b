"""CA bundles in which the authority of yesterday overlaps that of today."""

from datetime import datetime

from cryptography.hazmat.primitives import serialization

from certs import reading


def merge(authority: bytes, earlier: bytes, now: datetime) -> bytes:
    """Put the authority's certificate before those of an earlier bundle that are still good.

    Doubles, expired certificates and whatever is not a readable authority are dropped, so that
    merging again changes nothing. An API server that trusts the result accepts leaves of old and
    new authority alike, in whichever order bundle and leaf reach it.
    """
    blocks = [
        certificate.public_bytes(serialization.Encoding.PEM)
        for certificate in reading.certificates(authority + b"\n" + earlier)
        if reading.is_authority(certificate) and now <= certificate.not_valid_after_utc
    ]
    return b"".join(dict.fromkeys(blocks))
