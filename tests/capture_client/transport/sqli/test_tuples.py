"""Rows found many at once are those that are found one by one, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_client.transport.sqli.wire_bytes import arriving, arriving_in_pieces
from harness.runs.examples import examples
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport.sqli.answers import AnswerReader, SqliAnswer
from informix_capture_client.transport.sqli.incoming import Incoming
from informix_capture_client.transport.sqli.messages import padded, u16, u32
from informix_capture_client.transport.sqli.protocols import Features
from informix_capture_client.transport.sqli.tuples import cut_tuples

WIDE = Features(has_challenge=False, has_bigint=True)
DONE, COST, END = u16(15, 0) + u32(2, 0, 0), u16(55) + u32(1, 1), u16(12)
# what looks like the head of a row, at an even place and at an odd one
HEADLIKE = st.sampled_from(
    [b"\0\x0e\0\0\0\0\0\2ab", b"x\0\x0e\0\0\0\0\0\2ab", b"\0\x0e" * 9, b"\0\x0e\0\0\0\0\0\0"]
)
CONTENT = st.lists(st.one_of(st.binary(max_size=40), HEADLIKE), max_size=6).map(b"".join)


def row(content: bytes) -> bytes:
    return u16(14, 0) + u32(len(content)) + content + bytes(len(content) & 1)


def contents(answer: SqliAnswer) -> list[bytes]:
    return [
        run.data[start : start + length]
        for run in answer.tuples
        for start, length in zip(run.starts.tolist(), run.lengths.tolist(), strict=True)
    ]


@given(rows=st.lists(CONTENT, max_size=30), sizes=st.lists(st.integers(1, 300), min_size=1))
@examples(200)
def test_however_bytes_are_cut_up_all_rows_are_found(rows: list[bytes], sizes: list[int]) -> None:
    answer = b"".join(map(row, rows)) + DONE + COST + END
    found = AnswerReader(arriving_in_pieces(answer, sizes), WIDE).read(in_bulk=True)
    assert (contents(found), found.rows, found.row_count) == (rows, [], 2)


@given(rows=st.lists(CONTENT, min_size=1, max_size=30), behind=CONTENT)
@examples(200)
def test_rows_at_the_beginning_are_found_and_what_is_behind_is_left(
    rows: list[bytes], behind: bytes
) -> None:
    whole = b"".join(map(row, rows))
    first = cut_tuples(memoryview(whole + row(behind)[:-1] if behind else whole))
    assert first is not None
    assert first.data == whole[: len(first.data)]
    assert len(first) >= 1


def test_a_thousand_rows_are_found_at_one_look() -> None:
    rows = [bytes([number % 251]) * (number % 7) for number in range(1000)]
    found = cut_tuples(memoryview(b"".join(map(row, rows)) + DONE + END))
    assert found is not None
    assert len(found) == 1000


def test_a_row_full_of_what_looks_like_rows_ends_where_it_says() -> None:
    rows = [b"a", b"\0\x0e\0\0\0\0\0\0" * 20, b"b", b"cc"]
    found = AnswerReader(arriving(b"".join(map(row, rows)) + END), WIDE).read(in_bulk=True)
    assert contents(found) == rows


def test_messages_between_rows_are_taken_in_bulk_too() -> None:
    error = u16(13, 100, 0) + u32(0) + padded(b"")
    answer = row(b"abc") + COST + row(b"") + u16(99, 1, 1, 0) + row(b"d") + error + END
    found = AnswerReader(arriving(answer), WIDE).read(in_bulk=True)
    assert (contents(found), found.is_at_end) == ([b"abc", b"", b"d"], True)


def test_a_row_longer_than_what_can_wait_comes_by_itself() -> None:
    rows = [b"a" * 200_001, b"b", b"c" * 70_000]
    answer = b"".join(map(row, rows)) + END
    found = AnswerReader(arriving_in_pieces(answer, [65_536]), WIDE).read(in_bulk=True)
    assert contents(found) == rows


def test_rows_between_other_messages_are_not_looked_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each search looks at all that has arrived, for one row of a few bytes."""
    monkeypatch.setattr("informix_capture_client.transport.sqli.answers._MOST_BYTES", 1 << 20)
    agreed = Features(has_challenge=False, has_bigint=True)
    one_by_one = (u16(14, 0, 0, 0) + u16(55) + u32(1, 1)) * 100
    with pytest.raises(ProtocolViolation, match="in one response"):
        AnswerReader(arriving(one_by_one + u16(12)), agreed).read(in_bulk=True)


def test_rows_that_were_found_keep_no_more_than_themselves() -> None:
    looks_like_rows = u16(14, 0, 0, 0) * 100
    found = cut_tuples(memoryview(u16(14, 0, 0, 2) + b"ab" + u16(55) + looks_like_rows))
    assert found is not None
    assert len(found) == 1
    assert found.lengths.base is None


def test_rows_of_one_answer_have_a_limit_in_bulk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("informix_capture_client.transport.sqli.answers._MOST_BYTES", 10_000)
    with pytest.raises(ProtocolViolation, match="in one response"):
        AnswerReader(arriving(row(b"x" * 100) * 100 + END), WIDE).read(in_bulk=True)


def test_who_listens_is_told_of_every_row() -> None:
    told: list[str] = []
    answer = row(b"abc") * 3 + DONE + END
    incoming = Incoming(arriving(answer)._receive_into, lambda name, _: told.append(name))
    AnswerReader(incoming, WIDE).read(in_bulk=True)
    assert told == ["SQ_TUPLE"] * 3 + ["SQ_DONE", "SQ_EOT"]


def test_a_run_is_cut_between_two_rows() -> None:
    run = cut_tuples(memoryview(b"".join(map(row, [b"a", b"bb", b"", b"cccc"]))))
    assert run is not None
    first, rest = run.cut(3)
    assert [len(first), len(rest)] == [3, 1]
    begin = int(rest.starts[0])
    assert rest.data[begin : begin + int(rest.lengths[0])] == b"cccc"
    assert [len(part) for part in run.cut(4)] == [4, 0]
