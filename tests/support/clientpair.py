"""A client certificate that an authority of a test has signed, and an API server that shows it."""

from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.issue import Authority
from tests.repo import prose

PAGE: Final = Path(__file__).parents[2] / "docs" / "install.md"


def client_pair(authority: Authority, name: str, folder: Path) -> Path:
    """A file with a client certificate of that common name, and its key."""
    signer = x509.load_pem_x509_certificate(authority.certificate_pem)
    signing_key = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(signer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(signer.not_valid_before_utc)
        .not_valid_after(signer.not_valid_after_utc)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
        .sign(signing_key, hashes.SHA256())
    )
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path = folder / f"{name}.pem"
    path.write_bytes(key.private_bytes(pem, *plain) + certificate.public_bytes(pem))
    return path


def showing(pair: Path, folder: Path, webhook: str | None = None) -> Path:
    """The files of the page that say which certificate an API server shows, with this one in them.

    It is shown to the webhook of the page, or to another.
    """
    section = prose.section(prose.read(PAGE), "## API servers alone")
    told, known = (yaml.safe_load(text) for kind, text in prose.fences(section) if kind == "yaml")
    (user,) = known["users"]
    user["name"] = webhook or user["name"]
    user["user"] = dict.fromkeys(user["user"], str(pair))
    kubeconfig = folder / "webhooks.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(known))
    for plugin in told["plugins"]:
        assert Path(plugin["configuration"]["kubeConfigFile"]).name == kubeconfig.name
        plugin["configuration"]["kubeConfigFile"] = str(kubeconfig)
    path = folder / "admission.yaml"
    path.write_text(yaml.safe_dump(told))
    return path
