import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import durations
from api.durations import BadDurationError

UNITS = {
    "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("4h", 4 * 3600 * 10**9),
        ("4h0m0s", 4 * 3600 * 10**9),
        ("1h30m", 5400 * 10**9),
        ("300ms", 3 * 10**8),
        ("1.5h", 5400 * 10**9),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("0", 0),
        ("-0", 0),
        ("+5s", 5 * 10**9),
        ("-5s", -5 * 10**9),
        ("1m1h", 3660 * 10**9),
        ("1.9ns", 1),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, nanoseconds: int) -> None:
    assert durations.nanoseconds(text) == nanoseconds
    assert durations.seconds(text) == nanoseconds / 10**9


@pytest.mark.parametrize(
    "text",
    [
        "", "4", "h", ".h", "4 h", " 4h", "4h ", "4d", "4H", "1h-3m", "--4h", "-", "4h4",
        "1e3s", "٤h", "4h\n", "9223372036854775808ns", "2562048h", "1" * 70 + "ns",
    ],
)  # fmt: skip
def test_what_go_does_not_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadDurationError):
        durations.nanoseconds(text)


@given(
    st.lists(st.tuples(st.integers(0, 10**5), st.sampled_from([*UNITS])), min_size=1, max_size=5)
)
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    total = sum(number * UNITS[unit] for number, unit in parts)
    assert durations.nanoseconds(text) == total
    assert durations.nanoseconds(f"-{text}") == -total


@given(st.text(max_size=70) | st.text("0123456789.hmsun+-", max_size=70))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    with contextlib.suppress(BadDurationError):
        assert abs(durations.nanoseconds(text)) <= durations.MOST
