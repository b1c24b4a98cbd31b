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

from certs import issue, judging
from certs.issue import Authority, Names, Source
from certs.judging import Fault, Good
from certs.ledger import Pair

THEN: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
NAMES: Final = Names.of("webhook.svc", "127.0.0.1", "::1")
# Whose dice show nothing, so that they are renewed at exactly two thirds of their life.
PUNCTUAL: Final = Source(issue.FRESH.key, lambda: 4 * 1024)
EAGER: Final = Source(issue.FRESH.key, lambda: 4 * 1024 + 1023)


def signed(authority: Authority, made: datetime = THEN, source: Source = PUNCTUAL) -> Pair:
    leaf = issue.issue_leaf(authority, NAMES, made, source)
    return Pair(leaf.certificate_pem, leaf.key_pem)


def certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


ONE: Final = issue.issue_authority(THEN, PUNCTUAL)
OTHER: Final = issue.issue_authority(THEN)
AUTHORITY: Final = Pair(ONE.certificate_pem, ONE.key_pem)
LEAF: Final = signed(ONE)
FOREIGN: Final = signed(OTHER)
GARBAGE: Final = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
# Lives are measured from the hour before issue.
LEAF_LIFE: Final = timedelta(days=30, hours=1)
LEAF_RENEWAL: Final = THEN - timedelta(hours=1) + LEAF_LIFE * 2 / 3
AUTHORITY_RENEWAL: Final = THEN - timedelta(hours=1) + (timedelta(days=730, hours=1)) * 2 / 3


def judge(found: Pair, names: Names = NAMES, now: datetime = THEN) -> judging.Verdict:
    return judging.leaf(found, (certificate(ONE.certificate_pem),), names, now)


def test_what_is_fresh_is_good() -> None:
    assert judging.authority(AUTHORITY, THEN) == Good(certificate(ONE.certificate_pem))
    assert judge(LEAF) == Good(certificate(LEAF.certificate))


def test_a_leaf_may_be_signed_by_any_of_the_signers() -> None:
    signers = certificate(OTHER.certificate_pem), certificate(ONE.certificate_pem)
    assert isinstance(judging.leaf(LEAF, signers, NAMES, THEN), Good)
    assert isinstance(judging.leaf(LEAF, signers[:1], NAMES, THEN), Fault)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        pytest.param(replace(LEAF, certificate=b""), "half of the leaf", id="no certificate"),
        pytest.param(replace(LEAF, key=b""), "half of the leaf", id="no key"),
        pytest.param(replace(LEAF, certificate=GARBAGE), "not readable", id="garbage"),
        pytest.param(replace(LEAF, key=b"?"), "does not belong", id="garbage key"),
        pytest.param(replace(LEAF, key=FOREIGN.key), "does not belong", id="foreign key"),
        pytest.param(FOREIGN, "not signed by", id="leaf of a namesake authority"),
        pytest.param(AUTHORITY, "other names", id="the authority itself"),
    ],
)
def test_a_bad_leaf_is_told_by_its_fault(case: Pair, reason: str) -> None:
    found = judge(case)
    assert isinstance(found, Fault)
    assert reason in found.reason
    assert found.alarming


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        pytest.param(replace(AUTHORITY, key=b""), "half of the authority", id="no key"),
        pytest.param(replace(AUTHORITY, certificate=b""), "half", id="no certificate"),
        pytest.param(replace(AUTHORITY, certificate=GARBAGE), "not readable", id="garbage"),
        pytest.param(replace(AUTHORITY, key=OTHER.key_pem), "does not belong", id="foreign key"),
        pytest.param(LEAF, "not a self-signed", id="leaf as authority"),
    ],
)
def test_a_bad_authority_is_told_by_its_fault(case: Pair, reason: str) -> None:
    found = judging.authority(case, THEN)
    assert isinstance(found, Fault)
    assert reason in found.reason
    assert found.alarming


def test_that_there_is_nothing_yet_alarms_nobody() -> None:
    assert judging.authority(Pair(), THEN) == Fault("there is no authority yet", alarming=False)
    assert judge(Pair()) == Fault("there is no leaf yet", alarming=False)


@pytest.mark.parametrize(
    "names",
    [
        Names.of("webhook.svc", "127.0.0.1"),
        Names.of("webhook.svc", "127.0.0.1", "::1", "more.svc"),
        Names.of("webhook.svc", "127.0.0.2", "::1"),
    ],
)
def test_other_names_are_a_fault(names: Names) -> None:
    assert judge(LEAF, names) == Fault("the leaf is for other names than wanted")


def test_order_and_spelling_of_names_do_not_matter() -> None:
    spelled = Names.of("0:0:0:0:0:0:0:1", "127.0.0.1", "webhook.svc")
    assert isinstance(judge(LEAF, spelled), Good)


@pytest.mark.parametrize(
    ("now", "fault", "reason"),
    [
        pytest.param(THEN - timedelta(hours=1), False, "", id="first good second"),
        pytest.param(THEN - timedelta(hours=1) - SECOND, True, "not good before", id="too early"),
        pytest.param(LEAF_RENEWAL - SECOND, False, "", id="just before renewal"),
        pytest.param(LEAF_RENEWAL, False, "most of the life", id="renewal"),
        pytest.param(THEN + timedelta(days=30), False, "most of the life", id="last second"),
        pytest.param(THEN + timedelta(days=30) + SECOND, True, "expired", id="expired"),
    ],
)
def test_age_decides_at_the_exact_second(now: datetime, *, fault: bool, reason: str) -> None:
    found = judge(LEAF, NAMES, now)
    said = found.reason if isinstance(found, Fault) else found.due
    assert isinstance(found, Fault) is fault
    assert reason in said
    assert bool(said) is bool(reason)


def test_an_authority_is_due_at_two_thirds_of_its_life() -> None:
    assert judging.authority(AUTHORITY, AUTHORITY_RENEWAL - SECOND) == Good(
        certificate(ONE.certificate_pem)
    )
    due = judging.authority(AUTHORITY, AUTHORITY_RENEWAL)
    assert isinstance(due, Good)
    assert "most of the life of the authority" in due.due


def test_renewals_are_spread_over_a_twentieth_of_a_life_and_never_late() -> None:
    assert judging.renewal(certificate(LEAF.certificate)) == LEAF_RENEWAL
    early = judging.renewal(certificate(signed(ONE, source=EAGER).certificate))
    assert timedelta(0) < early - (LEAF_RENEWAL - LEAF_LIFE / 20) < LEAF_LIFE / 20_000
    several = {
        judging.renewal(certificate(signed(ONE, source=issue.FRESH).certificate)) for _ in range(20)
    }
    assert len(several) > 10


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_an_authority_that_the_issuer_could_not_use_is_no_good(kind: str) -> None:
    key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    algorithm: hashes.SHA256 | None
    if kind == "rsa":
        key, algorithm = rsa.generate_private_key(65537, 2048), hashes.SHA256()
    else:
        key, algorithm = ed25519.Ed25519PrivateKey.generate(), None
    model = certificate(ONE.certificate_pem)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Somebody's CA")])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 5, THEN, THEN + timedelta(days=9)
    )
    for extension in model.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    theirs = builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    assert isinstance(judging.authority(Pair(theirs, pem), THEN), Fault)


def test_an_encrypted_key_is_as_good_as_none() -> None:
    loaded = serialization.load_pem_private_key(ONE.key_pem, None)
    locked = loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    assert isinstance(judging.authority(replace(AUTHORITY, key=locked), THEN), Fault)


def with_unknown_key_kind(pem: bytes) -> bytes:
    der = ssl.PEM_cert_to_DER_cert(pem[: pem.index(b"-----END") + 26].decode().strip())
    elliptic = bytes.fromhex("06072a8648ce3d0201")
    assert elliptic in der
    return ssl.DER_cert_to_PEM_cert(der.replace(elliptic, elliptic[:-1] + b"\x7f")).encode()


def test_keys_of_an_unknown_kind_are_no_good() -> None:
    leaf = replace(LEAF, certificate=with_unknown_key_kind(LEAF.certificate))
    assert isinstance(judge(leaf), Fault)
    authority = replace(AUTHORITY, certificate=with_unknown_key_kind(ONE.certificate_pem))
    assert isinstance(judging.authority(authority, THEN), Fault)


def test_keys_stay_out_of_what_is_printed() -> None:
    assert "PRIVATE" not in repr(LEAF)


TRUE: Final = (*vars(AUTHORITY).values(), *vars(LEAF).values(), *vars(FOREIGN).values())
PIECES: Final = st.one_of(
    st.just(b""), st.binary(max_size=200), st.just(GARBAGE), st.sampled_from(TRUE)
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A true PEM with a few bytes changed, which reaches deeper into the parsers than noise."""
    pem = bytearray(draw(st.sampled_from(TRUE)))
    for _ in range(draw(st.integers(1, 4))):
        pem[draw(st.integers(30, len(pem) - 1))] = draw(
            st.sampled_from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n")
        )
    return bytes(pem)


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(st.builds(Pair, *[PIECES | damaged()] * 2), st.datetimes(timezones=st.just(UTC)))
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_a_judgement_raise_and_what_is_good_can_sign(
    case: Pair, now: datetime
) -> None:
    assert isinstance(judge(case, NAMES, now), Good | Fault)
    if isinstance(judging.authority(case, now), Good):
        assert issue.issue_leaf(Authority(case.certificate, case.key), NAMES, now).key_pem
