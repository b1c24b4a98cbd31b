from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from hypothesis import given
from hypothesis import strategies as st

from certs import bundle, issue

THEN: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
OLD: Final = issue.issue_authority(THEN - timedelta(days=500))
NEW: Final = issue.issue_authority(THEN)
LEAF: Final = issue.issue_leaf(OLD, issue.Names.of("webhook.svc"), THEN)


def renewed(authority: bytes, earlier: bytes, now: datetime) -> bytes:
    """An authority in front of the bundle that there was."""
    return bundle.text(bundle.good(authority + b"\n" + earlier, now))


def test_leaves_of_old_and_new_authority_are_both_trusted() -> None:
    merged = renewed(NEW.certificate_pem, OLD.certificate_pem, THEN)
    roots = x509.load_pem_x509_certificates(merged)
    for authority in (OLD, NEW):
        leaf = issue.issue_leaf(authority, issue.Names.of("webhook.svc"), THEN)
        shown = x509.load_pem_x509_certificate(leaf.certificate_pem)
        verifier = (
            PolicyBuilder()
            .store(Store(roots))
            .time(THEN)
            .build_server_verifier(x509.DNSName("webhook.svc"))
        )
        assert verifier.verify(shown, [])


def test_the_new_authority_comes_first_and_nothing_comes_twice() -> None:
    twice = OLD.certificate_pem + NEW.certificate_pem + OLD.certificate_pem
    merged = renewed(NEW.certificate_pem, twice, THEN)
    assert merged == NEW.certificate_pem + OLD.certificate_pem


def test_an_authority_leaves_the_bundle_the_second_after_it_ends() -> None:
    end = THEN - timedelta(days=500) + issue.AUTHORITY_LIFE
    assert OLD.certificate_pem in renewed(NEW.certificate_pem, OLD.certificate_pem, end)
    after = end + timedelta(seconds=1)
    assert renewed(NEW.certificate_pem, OLD.certificate_pem, after) == NEW.certificate_pem


def test_leaves_and_text_do_not_enter_the_bundle() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    earlier = b"# ours\n" + broken + LEAF.certificate_pem + b"trailing"
    merged = renewed(NEW.certificate_pem, earlier, THEN)
    # The leaf's file carries its authority, which belongs in the bundle.
    assert merged == NEW.certificate_pem + OLD.certificate_pem


@given(st.binary(max_size=300))
def test_whatever_was_there_merging_again_changes_nothing(noise: bytes) -> None:
    earlier = noise + OLD.certificate_pem + noise
    once = renewed(NEW.certificate_pem, earlier, THEN)
    assert renewed(NEW.certificate_pem, once, THEN) == once
    assert len(x509.load_pem_x509_certificates(once)) == 2
