"""Numbers that the guide rules out, and what came before them."""

from __future__ import annotations

import pytest

from capture_client.transactions.assembling import (
    b,
    c,
    delivered,
    resumed,
)
from harness.capture.streams import (
    blocks,
    feed,
    one_by_one,
    row,
)
from informix_capture_client.errors import ProtocolViolation


@pytest.mark.parametrize("chunked", [False, True], ids=["in one run", "across blocks"])
@pytest.mark.parametrize(
    ("records", "delivered_first"),
    [
        ([b(1), row(2), c(9), b(3, 2), row(4, 2), c(8, 2)], [[2]]),
        ([b(1), row(2), c(9), b(10, 2), row(11, 2), c(9, 2)], [[2]]),
        ([b(1, 2), row(2, 2), c(3, 2), b(7), row(8), row(6), c(9)], [[2]]),
        ([b(1, 2), row(2, 2), c(3, 2), b(7), row(8), c(6)], [[2]]),
    ],
    ids=["a COMMTX falls", "a COMMTX repeats", "a row below its BEGINTX", "a COMMTX below its BEGINTX"],
)
def test_numbers_that_cannot_be_are_refused_after_what_came_before_them(
    records: list[bytes], delivered_first: list[list[int]], chunked: bool
) -> None:
    """Else such rows would pass for delivered ones, or a restart position would be too high."""
    assembler, found = resumed(), []
    stream = blocks(records if chunked else [b"".join(records)])
    with pytest.raises(ProtocolViolation, match="out of order"):
        found.extend(event for block in stream for event in assembler.feed(block))
    assert delivered(list(one_by_one(found))) == delivered_first


def test_commits_at_or_below_the_restarted_one_still_rise() -> None:
    again = [c(10, 1), b(11, 2), row(12, 2), c(20, 2)]
    events = feed(resumed(20, 5), *again, b(21), row(22), c(23))
    assert delivered(events) == [[22]]
