"""Whether an authority or a leaf is good: judged from its bytes and the instant, total."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509

from certs import reading
from certs.issue import Names
from certs.ledger import Pair

# Of a certificate's life: how much earlier than two thirds of it some are renewed, so that
# certificates made together do not all fall due together. The serial number throws the dice: it
# is random, and it never changes.
_SPREAD: Final = 20
_FACES: Final = 1024


@dataclass(frozen=True)
class Fault:
    """What is wrong; `alarming` is what should not have come about by time or by our own doing."""

    reason: str
    alarming: bool = True


@dataclass(frozen=True)
class Good:
    """A certificate that may be used, and why it should be replaced in good time, if it should."""

    certificate: x509.Certificate
    due: str = ""


Verdict = Good | Fault


def renewal(certificate: x509.Certificate) -> datetime:
    """Give the instant when it is due: at two thirds of its life or up to a twentieth before."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    life = ends - begins
    throw = certificate.serial_number % _FACES
    return begins + life * 2 / 3 - life * throw / (_FACES * _SPREAD)


def authority(found: Pair, now: datetime) -> Verdict:
    """Judge an authority with its key."""
    if not found.certificate and not found.key:
        return Fault("there is no authority yet", alarming=False)
    if not found.certificate or not found.key:
        return Fault("half of the authority is missing")
    certificate = reading.certificate(found.certificate)
    if certificate is None:
        return Fault("the authority's certificate is not readable")
    if not reading.is_authority(certificate) or not reading.signed_by(certificate, certificate):
        return Fault("the certificate found is not a self-signed elliptic-curve authority")
    if not _belongs(found.key, certificate):
        return Fault("the authority's key does not belong to its certificate")
    return _aged("the authority", certificate, now)


def leaf(
    found: Pair, signers: tuple[x509.Certificate, ...], wanted: Names, now: datetime
) -> Verdict:
    """Judge a leaf with its key; one of the signers must have signed it."""
    if not found.certificate and not found.key:
        return Fault("there is no leaf yet", alarming=False)
    if not found.certificate or not found.key:
        return Fault("half of the leaf is missing")
    certificate = reading.certificate(found.certificate)
    if certificate is None:
        return Fault("the leaf's certificate is not readable")
    if not _belongs(found.key, certificate):
        return Fault("the leaf's key does not belong to its certificate")
    if not signed_by_one_of(certificate, signers):
        return Fault("the leaf is not signed by the authority")
    return _named(certificate, wanted) or _aged("the leaf", certificate, now)


def signed_by_one_of(certificate: x509.Certificate, signers: Iterable[x509.Certificate]) -> bool:
    """Tell whether any of the authorities signed the certificate."""
    return any(reading.signed_by(certificate, signer) for signer in signers)


def _named(certificate: x509.Certificate, wanted: Names) -> Fault | None:
    if reading.subject_names(certificate) == _comparable(wanted):
        return None
    return Fault("the leaf is for other names than wanted")


def _aged(what: str, certificate: x509.Certificate, now: datetime) -> Verdict:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return Fault(f"{what} is not good before {begins:%Y-%m-%d %H:%M}Z")
    if now > ends:
        return Fault(f"{what} expired on {ends:%Y-%m-%d %H:%M}Z")
    if now >= renewal(certificate):
        return Good(certificate, f"most of the life of {what} is over; it ends {ends:%Y-%m-%d}")
    return Good(certificate)


def _belongs(key_pem: bytes, certificate: x509.Certificate) -> bool:
    public = reading.public_key_of(key_pem)
    return public is not None and public == reading.public_key(certificate)


def _comparable(names: Names) -> tuple[frozenset[str], frozenset[str]]:
    # One address has many spellings (::1, 0:0:0:0:0:0:0:1).
    return frozenset(names.dns), frozenset(str(ip_address(ip)) for ip in names.ips)
