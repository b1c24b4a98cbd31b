import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs import issue
from certs.issue import Authority, Leaf, Names
from kube.clock import SystemClock

THEN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
NAMES = Names.of("penstock-webhook.penstock-system.svc", "localhost", "127.0.0.1", "::1")


def shake_hands(leaf: Leaf, trusted: bytes, host: str, folder: Path) -> ssl.SSLObject:
    """Let a client that trusts `trusted` and wants `host` greet a server that shows `leaf`."""
    (folder / "tls.crt").write_bytes(leaf.certificate_pem)
    (folder / "tls.key").write_bytes(leaf.key_pem)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    asking = ssl.create_default_context(cadata=trusted.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client


@pytest.fixture(scope="module")
def now() -> datetime:
    return SystemClock().now()


@pytest.fixture(scope="module")
def authority(now: datetime) -> Authority:
    return issue.issue_authority(now)


@pytest.mark.parametrize("host", ["penstock-webhook.penstock-system.svc", "127.0.0.1", "::1"])
def test_a_client_that_trusts_the_authority_accepts_every_name(
    host: str, authority: Authority, now: datetime, tmp_path: Path
) -> None:
    leaf = issue.issue_leaf(authority, NAMES, now)
    client = shake_hands(leaf, authority.certificate_pem, host, tmp_path)
    assert client.version() == "TLSv1.3"


@pytest.mark.parametrize("host", ["127.0.0.2", "other.penstock-system.svc"])
def test_a_name_that_was_not_asked_for_is_refused(
    host: str, authority: Authority, now: datetime, tmp_path: Path
) -> None:
    leaf = issue.issue_leaf(authority, NAMES, now)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"):
        shake_hands(leaf, authority.certificate_pem, host, tmp_path)


def test_a_namesake_authority_with_another_key_is_not_trusted(
    authority: Authority, now: datetime, tmp_path: Path
) -> None:
    namesake = issue.issue_authority(now)
    leaf = issue.issue_leaf(authority, NAMES, now)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(leaf, namesake.certificate_pem, "localhost", tmp_path)


@pytest.mark.parametrize(
    ("issued_ago", "fault"),
    [
        pytest.param(timedelta(days=30, seconds=1), "expired", id="a second too old"),
        pytest.param(timedelta(hours=-1, minutes=-1), "not yet valid", id="a minute too young"),
        pytest.param(timedelta(days=29, hours=23), None, id="an hour to live"),
        pytest.param(timedelta(minutes=-59), None, id="client's clock an hour behind"),
    ],
)
def test_a_leaf_is_good_from_an_hour_before_it_was_made_for_30_days(
    issued_ago: timedelta, fault: str | None, authority: Authority, now: datetime, tmp_path: Path
) -> None:
    leaf = issue.issue_leaf(authority, NAMES, now - issued_ago)
    if fault is None:
        shake_hands(leaf, authority.certificate_pem, "localhost", tmp_path)
    else:
        with pytest.raises(ssl.SSLCertVerificationError, match=fault):
            shake_hands(leaf, authority.certificate_pem, "localhost", tmp_path)


@pytest.mark.parametrize(
    ("age", "good"),
    [
        (timedelta(hours=-1, seconds=-1), False),
        (timedelta(hours=-1), True),
        (timedelta(days=30), True),
        (timedelta(days=30, seconds=1), False),
    ],
)
def test_the_leaf_ends_to_the_second(age: timedelta, good: bool) -> None:  # noqa: FBT001
    # An authority made the day before, so that it is not the one that ends here.
    authority = issue.issue_authority(THEN - timedelta(days=1))
    leaf = issue.issue_leaf(authority, NAMES, THEN)
    root = x509.load_pem_x509_certificate(authority.certificate_pem)
    verifier = (
        PolicyBuilder()
        .store(Store([root]))
        .time(THEN + age)
        .build_server_verifier(x509.DNSName("localhost"))
    )
    shown = x509.load_pem_x509_certificates(leaf.certificate_pem)
    if good:
        assert verifier.verify(shown[0], shown[1:]) == [shown[0], root]
    else:
        with pytest.raises(VerificationError):
            verifier.verify(shown[0], shown[1:])


def test_a_leaf_never_outlives_its_authority() -> None:
    authority = issue.issue_authority(THEN)
    late = THEN + issue.AUTHORITY_LIFE - timedelta(days=3)
    leaf = issue.issue_leaf(authority, NAMES, late)
    certificate = x509.load_pem_x509_certificate(leaf.certificate_pem)
    assert certificate.not_valid_after_utc == THEN + issue.AUTHORITY_LIFE


def test_the_authority_says_that_it_is_one() -> None:
    certificate = x509.load_pem_x509_certificate(issue.issue_authority(THEN).certificate_pem)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert usage.value.crl_sign
    assert not usage.value.digital_signature
    assert certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert certificate.subject.rfc4514_string() == "CN=Penstock CA"
    assert certificate.not_valid_before_utc == THEN - timedelta(hours=1)
    assert certificate.not_valid_after_utc == THEN + timedelta(days=730)


def test_the_leaf_is_for_serving_only_and_names_its_authority() -> None:
    authority = issue.issue_authority(THEN)
    leaf, root = x509.load_pem_x509_certificates(
        issue.issue_leaf(authority, NAMES, THEN).certificate_pem
    )
    usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    signer = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert signer.key_identifier == own.digest
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_two_issues_share_neither_key_nor_serial() -> None:
    first, second = (issue.issue_authority(THEN) for _ in range(2))
    certificates = [x509.load_pem_x509_certificate(a.certificate_pem) for a in (first, second)]
    assert first.key_pem != second.key_pem
    assert certificates[0].serial_number != certificates[1].serial_number


def test_a_given_source_is_the_only_chance() -> None:
    key = issue.FRESH.key()
    source = issue.Source(key=lambda: key, serial=lambda: 77)
    certificate = x509.load_pem_x509_certificate(
        issue.issue_authority(THEN, source).certificate_pem
    )
    assert certificate.serial_number == 77
    assert certificate.public_key() == key.public_key()


def test_keys_stay_out_of_what_is_printed() -> None:
    authority = issue.issue_authority(THEN)
    leaf = issue.issue_leaf(authority, NAMES, THEN)
    assert "PRIVATE" not in f"{authority!r} {leaf!r}"
    assert b"PRIVATE" in authority.key_pem


def test_a_leaf_for_nobody_is_not_made() -> None:
    with pytest.raises(ValueError, match="DNS name or an IP"):
        issue.issue_leaf(issue.issue_authority(THEN), Names(), THEN)


def test_an_authority_of_another_kind_is_refused() -> None:
    leaf_key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    authority = Authority(issue.issue_authority(THEN).certificate_pem, leaf_key)
    with pytest.raises(ValueError, match="key"):
        issue.issue_leaf(authority, NAMES, THEN)


def test_a_key_that_cannot_sign_for_the_authority_is_refused() -> None:
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    authority = Authority(issue.issue_authority(THEN).certificate_pem, pem)
    with pytest.raises(TypeError, match="elliptic-curve"):
        issue.issue_leaf(authority, NAMES, THEN)


def test_hosts_are_sorted_into_names_and_addresses() -> None:
    assert Names.of("a.svc", "10.0.0.1", "a.svc", "::1") == Names(("a.svc",), ("10.0.0.1", "::1"))
