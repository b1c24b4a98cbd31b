"""A certificate authority and the serving certificates it signs, made from names and an instant."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_NAME: Final = "Penstock CA"
LEAF_NAME: Final = "Penstock webhook"
AUTHORITY_LIFE: Final = timedelta(days=730)
LEAF_LIFE: Final = timedelta(days=30)
# Clocks differ: a certificate made now must already be good where the clock is behind.
BACKDATED: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Source:
    """Where keys and serial numbers come from: the only chance in this package."""

    key: Callable[[], ec.EllipticCurvePrivateKey]
    serial: Callable[[], int]


FRESH: Final = Source(lambda: ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number)


@dataclass(frozen=True)
class Names:
    """What a server is called: DNS names and IP addresses, as text."""

    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()

    @classmethod
    def of(cls, *hosts: str) -> "Names":
        """Sort hosts into DNS names and addresses, dropping doubles."""
        unique = dict.fromkeys(hosts)
        ips = tuple(host for host in unique if _is_address(host))
        return cls(tuple(host for host in unique if host not in ips), ips)


@dataclass(frozen=True)
class Authority:
    """A certificate authority. The key stays out of `repr`, and so out of logs."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True)
class Leaf:
    """A serving certificate followed by its authority's, and its key (kept out of `repr`)."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


def issue_authority(now: datetime, source: Source = FRESH) -> Authority:
    """Make a self-signed authority that is good from an hour before `now` for two years."""
    key = source.key()
    name = _name(AUTHORITY_NAME)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _unsigned(name, key, now, now + AUTHORITY_LIFE, source)
        .issuer_name(name)
        # It signs servers only: no authority below it is good.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(_certificate_pem(certificate), _key_pem(key))


def issue_leaf(authority: Authority, names: Names, now: datetime, source: Source = FRESH) -> Leaf:
    """Make a serving certificate for `names`, good for 30 days or as long as its authority.

    The authority must be one that `rotation.decide` finds good; ValueError and TypeError say that
    it is not. ValueError also says that there is no name to certify.
    """
    if not (names.dns or names.ips):
        raise ValueError("a serving certificate needs a DNS name or an IP address")
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    issuer_key = serialization.load_pem_private_key(authority.key_pem, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an elliptic-curve key")
    key = source.key()
    until = min(now + LEAF_LIFE, issuer.not_valid_after_utc)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _unsigned(_name(LEAF_NAME), key, now, until, source)
        .issuer_name(issuer.subject)
        .add_extension(_subject_names(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return Leaf(_certificate_pem(certificate) + authority.certificate_pem, _key_pem(key))


def _unsigned(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    until: datetime,
    source: Source,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(source.serial())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
    )


def _subject_names(names: Names) -> x509.SubjectAlternativeName:
    dns = [x509.DNSName(name) for name in names.dns]
    return x509.SubjectAlternativeName(dns + [x509.IPAddress(ip_address(ip)) for ip in names.ips])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
