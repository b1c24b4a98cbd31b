"""PEM text to certificates and keys; what cannot be read is None, never an exception."""

import re
from collections.abc import Iterator
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

# What the parsers raise over bytes that are not what they should be. Extensions are parsed when
# first read, so reading one can raise as well.
UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)
_BLOCK: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----[^-]{1,65536}-----END CERTIFICATE-----", re.DOTALL
)


def certificates(pem: bytes) -> Iterator[x509.Certificate]:
    """Give each readable certificate in order; what is between them does not matter."""
    for block in _BLOCK.findall(pem):
        try:
            yield x509.load_pem_x509_certificate(block)
        except UNREADABLE:
            continue


def certificate(pem: bytes) -> x509.Certificate | None:
    """Give the first certificate, which is the one a server shows as its own."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except UNREADABLE:
        return None


def public_key_of(key_pem: bytes) -> bytes | None:
    """Give the public half of a private key as DER; an encrypted key is not readable."""
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
        return key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    except UNREADABLE:
        return None


def public_key(certificate: x509.Certificate) -> bytes | None:
    """Give a certificate's public key as DER."""
    try:
        return certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    except UNREADABLE:
        return None


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Tell whether the issuer's key made the certificate's signature."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (*UNREADABLE, InvalidSignature):
        return False
    return True


def is_authority(certificate: x509.Certificate) -> bool:
    """Tell whether the certificate may sign others, in the way `issue` makes and uses them."""
    try:
        key = certificate.public_key()
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except UNREADABLE:
        return False
    return constraints.ca and usage.key_cert_sign and isinstance(key, ec.EllipticCurvePublicKey)


def subject_names(certificate: x509.Certificate) -> tuple[frozenset[str], frozenset[str]]:
    """Give the DNS names and the IP addresses a certificate is for; empty if it names none."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        dns = names.get_values_for_type(x509.DNSName)
        ips = names.get_values_for_type(x509.IPAddress)
    except UNREADABLE:
        return frozenset(), frozenset()
    return frozenset(dns), frozenset(str(ip) for ip in ips)
