"""Whether the certificates at hand are still good: decided from their bytes and the instant.

The order of checks is the order of harm: nothing signed by a bad authority can be good, so the
authority is looked at first, and a new authority always means a new leaf.
"""

from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509

from certs import reading
from certs.issue import Names


@dataclass(frozen=True)
class Found:
    """The PEM files as they were found; None is one that is not there."""

    authority_certificate: bytes | None
    authority_key: bytes | None = field(repr=False)
    leaf_certificate: bytes | None
    leaf_key: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Keep:
    """All is good until `renew_at`, when it is time to decide again."""

    renew_at: datetime


@dataclass(frozen=True)
class IssueLeaf:
    """The authority is good; a new leaf is needed, and why."""

    reason: str


@dataclass(frozen=True)
class IssueAuthority:
    """A new authority is needed, hence a new leaf as well, and why.

    The old authority should stay in every CA bundle until no leaf of its own is served.
    """

    reason: str


Decision = Keep | IssueLeaf | IssueAuthority


def decide(found: Found, wanted: Names, now: datetime) -> Decision:
    """Judge what was found; total: no bytes make it raise."""
    authority = _authority(found, now)
    if isinstance(authority, str):
        return IssueAuthority(authority)
    leaf = _leaf(found, authority, wanted, now)
    if isinstance(leaf, str):
        return IssueLeaf(leaf)
    return Keep(min(renewal(authority), renewal(leaf)))


def renewal(certificate: x509.Certificate) -> datetime:
    """Give the instant when two thirds of a certificate's life are over."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begins + (ends - begins) * 2 / 3


def _authority(found: Found, now: datetime) -> x509.Certificate | str:
    """Give the authority, or what is wrong with it."""
    if found.authority_certificate is None or found.authority_key is None:
        return "there is no authority yet"
    authority = reading.certificate(found.authority_certificate)
    if authority is None:
        return "the authority's certificate is not readable"
    if not reading.is_authority(authority) or not reading.signed_by(authority, authority):
        return "the certificate found is not a self-signed elliptic-curve authority"
    if not _belongs(found.authority_key, authority):
        return "the authority's key does not belong to its certificate"
    return _age_fault("the authority", authority, now) or authority


def _leaf(
    found: Found, authority: x509.Certificate, wanted: Names, now: datetime
) -> x509.Certificate | str:
    """Give the leaf, or what is wrong with it."""
    if found.leaf_certificate is None or found.leaf_key is None:
        return "there is no leaf yet"
    leaf = reading.certificate(found.leaf_certificate)
    if leaf is None:
        return "the leaf's certificate is not readable"
    if not _belongs(found.leaf_key, leaf):
        return "the leaf's key does not belong to its certificate"
    if not reading.signed_by(leaf, authority):
        return "the leaf is not signed by the authority"
    if reading.subject_names(leaf) != _comparable(wanted):
        return "the leaf is for other names than wanted"
    return _age_fault("the leaf", leaf, now) or leaf


def _age_fault(what: str, certificate: x509.Certificate, now: datetime) -> str | None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return f"{what} is not good before {begins:%Y-%m-%d %H:%M}Z"
    if now > ends:
        return f"{what} expired on {ends:%Y-%m-%d %H:%M}Z"
    if now >= renewal(certificate):
        return f"two thirds of the life of {what} are over; it ends {ends:%Y-%m-%d %H:%M}Z"
    return None


def _belongs(key_pem: bytes, certificate: x509.Certificate) -> bool:
    public = reading.public_key_of(key_pem)
    return public is not None and public == reading.public_key(certificate)


def _comparable(names: Names) -> tuple[frozenset[str], frozenset[str]]:
    # One address has many spellings (::1, 0:0:0:0:0:0:0:1).
    return frozenset(names.dns), frozenset(str(ip_address(ip)) for ip in names.ips)
