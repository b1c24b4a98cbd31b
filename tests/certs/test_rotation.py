import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import issue, rotation
from certs.issue import Authority, Names
from certs.rotation import Found, IssueAuthority, IssueLeaf, Keep

THEN: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
NAMES: Final = Names.of("webhook.svc", "127.0.0.1", "::1")


def found(authority: Authority, made: datetime) -> Found:
    leaf = issue.issue_leaf(authority, NAMES, made)
    return Found(authority.certificate_pem, authority.key_pem, leaf.certificate_pem, leaf.key_pem)


AUTHORITY: Final = issue.issue_authority(THEN)
OTHER: Final = issue.issue_authority(THEN)
GOOD: Final = found(AUTHORITY, THEN)
FOREIGN: Final = found(OTHER, THEN)
GARBAGE: Final = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
# Lives are measured from the hour before issue.
LEAF_RENEWAL: Final = THEN - timedelta(hours=1) + (timedelta(days=30, hours=1)) * 2 / 3
AUTHORITY_RENEWAL: Final = THEN - timedelta(hours=1) + (timedelta(days=730, hours=1)) * 2 / 3


def test_fresh_certificates_are_kept_until_the_leaf_is_due() -> None:
    assert rotation.decide(GOOD, NAMES, THEN) == Keep(LEAF_RENEWAL)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        pytest.param(replace(GOOD, leaf_certificate=None), "no leaf yet", id="no leaf"),
        pytest.param(replace(GOOD, leaf_key=None), "no leaf yet", id="no leaf key"),
        pytest.param(replace(GOOD, leaf_certificate=GARBAGE), "not readable", id="garbage leaf"),
        pytest.param(replace(GOOD, leaf_key=b"?"), "does not belong", id="garbage leaf key"),
        pytest.param(
            replace(GOOD, leaf_key=FOREIGN.leaf_key), "does not belong", id="foreign leaf key"
        ),
        pytest.param(
            replace(GOOD, leaf_certificate=FOREIGN.leaf_certificate, leaf_key=FOREIGN.leaf_key),
            "not signed by",
            id="leaf of a namesake authority",
        ),
        pytest.param(
            replace(GOOD, leaf_certificate=AUTHORITY.certificate_pem, leaf_key=AUTHORITY.key_pem),
            "other names",
            id="the authority itself as leaf",
        ),
    ],
)
def test_a_bad_leaf_is_issued_anew(case: Found, reason: str) -> None:
    decision = rotation.decide(case, NAMES, THEN)
    assert isinstance(decision, IssueLeaf)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        pytest.param(Found(None, None, None, None), "no authority yet", id="nothing"),
        pytest.param(replace(GOOD, authority_key=None), "no authority yet", id="no key"),
        pytest.param(replace(GOOD, authority_certificate=GARBAGE), "not readable", id="garbage"),
        pytest.param(
            replace(GOOD, authority_key=OTHER.key_pem), "does not belong", id="foreign key"
        ),
        pytest.param(
            replace(
                GOOD,
                authority_certificate=GOOD.leaf_certificate,
                authority_key=GOOD.leaf_key,
            ),
            "not a self-signed",
            id="leaf as authority",
        ),
    ],
)
def test_a_bad_authority_is_issued_anew(case: Found, reason: str) -> None:
    decision = rotation.decide(case, NAMES, THEN)
    assert isinstance(decision, IssueAuthority)
    assert reason in decision.reason


@pytest.mark.parametrize(
    "names",
    [
        Names.of("webhook.svc", "127.0.0.1"),
        Names.of("webhook.svc", "127.0.0.1", "::1", "more.svc"),
        Names.of("webhook.svc", "127.0.0.2", "::1"),
    ],
)
def test_other_names_mean_a_new_leaf(names: Names) -> None:
    decision = rotation.decide(GOOD, names, THEN)
    assert decision == IssueLeaf("the leaf is for other names than wanted")


def test_order_and_spelling_of_names_do_not_matter() -> None:
    spelled = Names.of("0:0:0:0:0:0:0:1", "127.0.0.1", "webhook.svc")
    assert isinstance(rotation.decide(GOOD, spelled, THEN), Keep)


@pytest.mark.parametrize(
    ("now", "kind", "reason"),
    [
        pytest.param(THEN - timedelta(hours=1), Keep, "", id="first good second"),
        pytest.param(
            THEN - timedelta(hours=1) - SECOND, IssueAuthority, "not good before", id="too early"
        ),
        pytest.param(LEAF_RENEWAL - SECOND, Keep, "", id="just before leaf renewal"),
        pytest.param(LEAF_RENEWAL, IssueLeaf, "two thirds", id="leaf renewal"),
        pytest.param(THEN + timedelta(days=30), IssueLeaf, "two thirds", id="leaf's last second"),
        pytest.param(THEN + timedelta(days=30) + SECOND, IssueLeaf, "expired", id="leaf expired"),
        pytest.param(AUTHORITY_RENEWAL - SECOND, IssueLeaf, "expired", id="before CA renewal"),
        pytest.param(AUTHORITY_RENEWAL, IssueAuthority, "two thirds", id="CA renewal"),
        pytest.param(
            THEN + timedelta(days=730) + SECOND, IssueAuthority, "expired", id="CA expired"
        ),
    ],
)
def test_age_decides_at_the_exact_second(now: datetime, kind: type, reason: str) -> None:
    decision = rotation.decide(GOOD, NAMES, now)
    assert type(decision) is kind
    assert reason in getattr(decision, "reason", "")


def test_an_old_leaf_of_a_good_authority_does_not_cost_the_authority() -> None:
    later = THEN + timedelta(days=100)
    renewed = found(AUTHORITY, later)
    assert isinstance(rotation.decide(renewed, NAMES, later), Keep)


def test_keeping_asks_again_when_the_authority_is_due_if_that_is_sooner() -> None:
    later = AUTHORITY_RENEWAL - timedelta(days=1)
    assert rotation.decide(found(AUTHORITY, later), NAMES, later) == Keep(AUTHORITY_RENEWAL)


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_an_authority_that_the_issuer_could_not_use_is_replaced(kind: str) -> None:
    key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    algorithm: hashes.SHA256 | None
    if kind == "rsa":
        key, algorithm = rsa.generate_private_key(65537, 2048), hashes.SHA256()
    else:
        key, algorithm = ed25519.Ed25519PrivateKey.generate(), None
    model = x509.load_pem_x509_certificate(AUTHORITY.certificate_pem)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Somebody's CA")])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 5, THEN, THEN + timedelta(days=9)
    )
    for extension in model.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    certificate = builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    theirs = replace(GOOD, authority_certificate=certificate, authority_key=pem)
    assert isinstance(rotation.decide(theirs, NAMES, THEN), IssueAuthority)


def test_an_encrypted_key_is_as_good_as_none() -> None:
    loaded = serialization.load_pem_private_key(AUTHORITY.key_pem, None)
    locked = loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    decision = rotation.decide(replace(GOOD, authority_key=locked), NAMES, THEN)
    assert isinstance(decision, IssueAuthority)


def with_unknown_key_kind(pem: bytes) -> bytes:
    der = ssl.PEM_cert_to_DER_cert(pem[: pem.index(b"-----END") + 26].decode().strip())
    elliptic = bytes.fromhex("06072a8648ce3d0201")
    assert elliptic in der
    return ssl.DER_cert_to_PEM_cert(der.replace(elliptic, elliptic[:-1] + b"\x7f")).encode()


def test_keys_of_an_unknown_kind_are_replaced() -> None:
    assert GOOD.leaf_certificate
    assert GOOD.authority_certificate
    leaf = replace(GOOD, leaf_certificate=with_unknown_key_kind(GOOD.leaf_certificate))
    assert isinstance(rotation.decide(leaf, NAMES, THEN), IssueLeaf)
    authority = with_unknown_key_kind(GOOD.authority_certificate)
    decision = rotation.decide(replace(GOOD, authority_certificate=authority), NAMES, THEN)
    assert isinstance(decision, IssueAuthority)


def test_keys_stay_out_of_what_is_printed() -> None:
    assert "PRIVATE" not in repr(GOOD)


PIECES: Final = st.one_of(
    st.none(),
    st.binary(max_size=200),
    st.sampled_from([GARBAGE, *vars(GOOD).values()]),
    st.sampled_from(list(vars(FOREIGN).values())),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A true PEM with a few bytes changed, which reaches deeper into the parsers than noise."""
    pem = bytearray(draw(st.sampled_from(list(vars(GOOD).values()))))
    for _ in range(draw(st.integers(1, 4))):
        pem[draw(st.integers(30, len(pem) - 1))] = draw(
            st.sampled_from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n")
        )
    return bytes(pem)


@given(st.builds(Found, *[PIECES | damaged()] * 4), st.datetimes(timezones=st.just(UTC)))
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_the_decision_raise(case: Found, now: datetime) -> None:
    decision = rotation.decide(case, NAMES, now)
    assert isinstance(decision, Keep | IssueLeaf | IssueAuthority)
    if isinstance(decision, Keep):
        assert decision.renew_at > now
        kept = Authority(case.authority_certificate or b"", case.authority_key or b"")
        assert issue.issue_leaf(kept, NAMES, now).key_pem
