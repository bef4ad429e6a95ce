"""Positions as people write them."""

from __future__ import annotations

import pytest

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import page_after, parse, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("47:0x5e018", "47:0x5e018"),
        ("201863847960", "47:0x5e018"),
        ("7:24", "7:0x18"),
        ("0:0", "0:0x0"),
    ],
)
def test_a_position_is_read_as_the_guide_prints_it_or_as_one_integer(text: str, shown: str) -> None:
    assert show(parse(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["", "x", "1:", ":0x1", "1:0x100000000", "2147483648:0x0", "9" * 19, "9" * 5000, "²", "-1", "1:-1"],
)
def test_what_is_no_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadOption, match="is not a position"):
        parse(text)


def test_the_page_after_a_position_lies_beyond_all_of_its_page() -> None:
    assert show(page_after(parse("7:0x5000"))) == "7:0x6000"
    assert show(page_after(parse("7:0x5fff"))) == "7:0x6000"
