from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from certs import issue, ledger
from certs.ledger import Ledger, Pair, Phase

THEN: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
ONE, TWO = issue.issue_authority(THEN), issue.issue_authority(THEN)
STEADY: Final = Ledger(Pair(ONE.certificate_pem, ONE.key_pem), wish="a")


def merged(before: dict[str, bytes], patch: dict[str, bytes | None]) -> dict[str, bytes]:
    """What the API server makes of a merge patch."""
    return {key: part for key, part in {**before, **patch}.items() if part is not None}


def stored(written: Ledger) -> Ledger:
    """Write the ledger over whatever was there, and read it again."""
    before = {
        "ca.crt": b"x",
        "ca.key": b"x",
        "next.crt": b"x",
        "next.key": b"x",
        "former.crt": b"x",
    }
    notes = {**ledger.annotations(written), names.ROTATE: written.wish}
    kept = {key: text for key, text in notes.items() if text is not None}
    return ledger.read(merged(before, ledger.data(written)), kept)


PARTS: Final = st.sampled_from([b"", b"one", b"two"])
PAIRS: Final = st.builds(Pair, PARTS, PARTS)


@given(
    st.builds(
        Ledger,
        PAIRS,
        PAIRS,
        PARTS,
        st.sampled_from(Phase),
        st.none() | st.datetimes(timezones=st.just(UTC)),
        st.text(max_size=5),
        st.text(max_size=5),
    )
)
def test_what_is_written_is_read_again(written: Ledger) -> None:
    assert stored(written) == written


def test_each_phase_is_written_down_with_what_it_needs() -> None:
    introduced = STEADY.introduced(TWO)
    assert introduced.authority == STEADY.authority
    assert (introduced.phase, introduced.since, introduced.granted) == (Phase.TRUSTING, None, "a")
    assert introduced.trusted(THEN).since == THEN
    promoted = introduced.trusted(THEN).promoted(THEN)
    assert promoted.authority == Pair(TWO.certificate_pem, TWO.key_pem)
    assert (promoted.incoming, promoted.former) == (Pair(), ONE.certificate_pem)
    assert (promoted.phase, promoted.since) == (Phase.SERVING, None)
    assert promoted.served(THEN).phase is Phase.RETIRING
    assert promoted.served(THEN).settled() == replace(
        STEADY, authority=promoted.authority, granted="a"
    )


def test_the_key_of_a_former_authority_is_forgotten_at_the_switch() -> None:
    promoted = STEADY.introduced(TWO).promoted(THEN)
    assert ONE.key_pem not in {part for part in ledger.data(promoted).values() if part}


def test_a_first_authority_has_nobody_before_it() -> None:
    assert Ledger().introduced(ONE).promoted(THEN).phase is Phase.STEADY


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2031-05-06T07:08:09+00:00", THEN),
        ("2031-05-06T07:08:09Z", THEN),
        ("2031-05-06T09:08:09+02:00", THEN),
        ("2031-05-06T07:08:09", None),  # whose clock?
        ("yesterday", None),
        ("", None),
    ],
)
def test_instants_that_cannot_be_read_are_as_good_as_absent(
    text: str, instant: datetime | None
) -> None:
    found = ledger.read({}, {names.ROTATION_SINCE: text, names.ROTATION_PHASE: "Waning"})
    assert (found.since, found.phase) == (instant, Phase.STEADY)


def test_instants_are_kept_in_utc() -> None:
    elsewhere = THEN.astimezone(timezone(timedelta(hours=5)))
    assert stored(STEADY.trusted(elsewhere)).since == THEN


def test_keys_stay_out_of_what_is_printed() -> None:
    assert "PRIVATE" not in repr(STEADY.introduced(TWO))
