"""Sharing a micro-batch out: every row once, in order, whatever is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_cdc.executors.shares import share_out
from informix_checkpoints.spool.segments import SegmentRange

MEBIBYTE = 1 << 20


def segment(number: int, rows: int, size_bytes: int, first: int = 0, end: int = 0) -> SegmentRange:
    return SegmentRange(f"/spool/{number}.arrow", first, end or rows, rows, size_bytes, number)


@st.composite
def ranges(draw: st.DrawFn) -> list[SegmentRange]:
    found = []
    for number in range(draw(st.integers(0, 8))):
        rows = draw(st.integers(1, 10_000_000))
        first = draw(st.integers(0, rows - 1))
        size_bytes = draw(st.integers(1, 1 << 40))
        found.append(segment(number, rows, size_bytes, first, draw(st.integers(first + 1, rows))))
    return found


def joined(pieces: list[SegmentRange]) -> list[SegmentRange]:
    """Put pieces together again that follow each other in one segment."""
    whole: list[SegmentRange] = []
    for piece in pieces:
        assert piece.first < piece.end
        if whole and whole[-1].path == piece.path and whole[-1].end == piece.first:
            whole[-1] = whole[-1].part(whole[-1].first, piece.end)
        else:
            whole.append(piece)
    return whole


@given(ranges(), st.integers(1, 1000), st.integers(1 << 16, 1 << 40))
@pytest.mark.only_in_all
def test_the_pieces_in_their_order_are_the_ranges(
    given_ranges: list[SegmentRange], least: int, most_bytes: int
) -> None:
    if sum(one.estimated_bytes for one in given_ranges) / most_bytes > 2000:
        most_bytes = 1 << 40  # a million groups prove nothing more
    groups = share_out(given_ranges, least, most_bytes)
    assert joined([piece for group in groups for piece in group]) == given_ranges


@given(ranges(), st.integers(1, 100), st.integers(1 << 30, 1 << 40))
def test_no_group_is_larger_than_asked_by_more_than_one_row(
    given_ranges: list[SegmentRange], least: int, most_bytes: int
) -> None:
    groups = share_out(given_ranges, least, most_bytes)
    widest = max((one.size_bytes / one.rows for one in given_ranges), default=0)
    for group in groups:
        assert sum(piece.estimated_bytes for piece in group) <= (most_bytes + widest) * 1.000001


def test_a_small_batch_is_one_group() -> None:
    whole = [segment(n, 10_000, MEBIBYTE) for n in range(30)]
    assert share_out(whole, 1, 64 * MEBIBYTE) == [whole]


def test_a_large_segment_is_cut_into_equal_shares() -> None:
    groups = share_out([segment(0, 1_000_000, 150 * MEBIBYTE)], 1, 64 * MEBIBYTE)
    assert [[piece.end - piece.first for piece in group] for group in groups] == [
        [333_334],
        [333_333],
        [333_333],
    ]


def test_more_groups_are_made_when_asked_for_but_never_more_than_rows() -> None:
    whole = [segment(0, 100, MEBIBYTE)]
    assert len(share_out(whole, 4, 64 * MEBIBYTE)) == 4
    assert len(share_out([segment(0, 3, MEBIBYTE)], 4, 64 * MEBIBYTE)) == 3


def test_nothing_is_shared_out_to_nobody() -> None:
    assert share_out([], 4, MEBIBYTE) == []
