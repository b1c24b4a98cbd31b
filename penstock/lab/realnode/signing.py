"""Client certificates for the node's own programs, signed by the lab's authority."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.lab.errors import LabError

LIFE: Final = timedelta(days=365)
BACKDATED: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Subject:
    """Who somebody is to the API server: a user, and the group it is in, if any."""

    user: str
    group: str = ""


@dataclass(frozen=True)
class Credential:
    """A client certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def sign(sibling: bytes, authority_key: bytes, subject: Subject, now: datetime) -> Credential:
    """Make a credential that is good for a year; raises LabError for a key of another kind.

    What the authority is called is taken from `sibling`, a certificate that it has signed before:
    kwokctl numbers the authority's own 0, which is not allowed and not read for much longer.
    """
    issuer = x509.load_pem_x509_certificate(sibling).issuer
    issuer_key = serialization.load_pem_private_key(authority_key, password=None)
    if not isinstance(issuer_key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise LabError("the lab's authority has a key of a kind that we do not sign with")
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, subject.user)]
    if subject.group:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.group))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(attributes))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFE)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return Credential(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
