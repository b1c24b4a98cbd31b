"""Patterns with stars."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import globs


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("infer-a", "infer-a", True),
        ("infer-a", "infer-ab", False),
        ("infer-*", "infer-", True),
        ("*", "", True),
        ("*:latest", "docker.io/library/nginx:latest", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a.c", "abc", False),
        ("*a*a", "a", False),
        ("a*\n", "ab\n", True),
    ],
)
def test_a_star_stands_for_any_text(pattern: str, text: str, *, fits: bool) -> None:
    assert globs.matches(pattern, text) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_stars_mean_what_they_mean_elsewhere(pattern: str, text: str) -> None:
    assert globs.matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_many_stars_over_a_long_text_do_not_take_long() -> None:
    # Tried every way there is, this would not end in a lifetime.
    assert not globs.matches("*a" * 200 + "b", "a" * globs.LONGEST * 20)
