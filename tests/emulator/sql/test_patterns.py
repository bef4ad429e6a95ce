"""LIKE and MATCHES: what a pattern means, and that none takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_emulator.sql.language.patterns import like_pattern, matches_pattern
from informix_emulator.sql_errors import SqlError

LIKES = {
    ("", ""): True,
    ("a", ""): False,
    ("", "%"): True,
    ("abc", "%"): True,
    ("abc", "a%c"): True,
    ("ac", "a%c"): True,
    ("a", "a%a"): False,
    ("abab", "%ab"): True,
    ("aab", "%_b"): True,
    ("a%c", "a\\%c"): True,
    ("abc", "a\\%c"): False,
    ("a\nb", "a_b"): True,
    ("xaybz", "%a%b%"): True,
    ("xbyaz", "%a%b%"): False,
    ("a.b", "a.b"): True,
    ("axb", "a.b"): False,
}
MATCHES = {
    ("abc", "a*"): True,
    ("abc", "[a-b]?[^x]"): True,
    ("abc", "[^a]*"): False,
    ("a]c", "a\\]c"): True,
    ("a[", "a["): True,
    ("xx7yy", "*[0-9]??"): True,
}


@pytest.mark.parametrize(("value", "pattern"), LIKES)
def test_like(value: str, pattern: str) -> None:
    assert like_pattern(pattern, "\\").matches(value) is LIKES[value, pattern]


@pytest.mark.parametrize(("value", "pattern"), MATCHES)
def test_matches(value: str, pattern: str) -> None:
    assert matches_pattern(pattern, "\\").matches(value) is MATCHES[value, pattern]


@given(st.text("ab%", max_size=9), st.text("ab%_", max_size=7))
def test_a_pattern_means_what_its_regular_expression_does(value: str, pattern: str) -> None:
    shape = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    expected = re.fullmatch(shape, value, re.DOTALL) is not None
    assert like_pattern(pattern, "\\").matches(value) is expected


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("a" * 60, "%a" * 10 + "b"),
        ("a" * 30_000, "%a" * 1000 + "b"),
        ("a" * 30_000, "%" + "a_" * 500 + "b%"),
        ("ab" * 15_000, "%_" * 500 + "bb%"),
    ],
    ids=["133 bytes", "many pieces", "one long piece", "many wildcards"],
)
def test_a_pattern_that_would_go_back_again_and_again_does_not(value: str, pattern: str) -> None:
    """With one `.*` for each % the first of them took some 10^10 steps, deaf to Ctrl-C."""
    assert not like_pattern(pattern, "\\").matches(value)


def test_what_would_take_minutes_all_the_same_is_refused() -> None:
    with pytest.raises(SqlError) as refused:
        like_pattern("%" + "_a" * 10_000 + "b%", "\\").matches("a" * 1_000_000)
    assert refused.value.native == -213
