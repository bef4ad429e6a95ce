"""Answers: what a server may send is taken, what nobody knows is refused with its bytes."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_client.transport.sqli.wire_bytes import arriving, arriving_in_pieces
from harness import GOLDEN
from harness.runs.examples import examples
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport.sqli import answers
from informix_capture_client.transport.sqli.answers import AnswerReader, SqliAnswer, SqliError
from informix_capture_client.transport.sqli.describing import Description, Routine, SqliColumn
from informix_capture_client.transport.sqli.incoming import EndOfBytes, Incoming
from informix_capture_client.transport.sqli.messages import padded, u16, u32
from informix_capture_client.transport.sqli.protocols import Features, features

RECORDED = GOLDEN / "sqli_protocols.json"
LIVE_ANSWERS: dict[str, str] = json.loads(RECORDED.read_text())["answers"]
USUAL = Features(has_challenge=False, has_bigint=True)
SHORT = Features(has_challenge=False, has_bigint=False)
END, DONE, COST = u16(12), u16(15, 0) + u32(2, 0, 0), u16(55) + u32(1, 1)
# what a server of ours answered IBM's driver 4.50.11 with, which read it: `site` of systables
DESCRIBED = bytes.fromhex(
    "0008000200010000000000810001000000050000000000000000000d00000000000000000000000000000000"
    "00000080736974650000000f000000000000000000000000000000370000000100000001000c"
)


def row(content: bytes) -> bytes:
    return u16(14, 0) + u32(len(content)) + content + bytes(len(content) & 1)


def chunk(content: bytes) -> bytes:
    return padded(content)


def described(count: int, names: bytes) -> bytes:
    """Describe so many columns, whose names all begin with the first byte of `names`."""
    column = u32(0, 0) + u16(13) + u32(0) + u16(0, 0) + bytes(8) + u32(40)
    return u16(8, 2, 1) + u32(0) + u16(41, count) + u32(len(names)) + column * count + names


def read(content: bytes, agreed: Features = USUAL, room: int = 0) -> SqliAnswer:
    return AnswerReader(arriving(content), agreed).read(memoryview(bytearray(room)))


def test_a_description_is_read_with_its_columns() -> None:
    answer = read(DESCRIBED)
    assert answer.description == Description(2, 1, (SqliColumn("site", 13, 128),), 129)


def test_a_routine_is_told_by_database_and_number() -> None:
    assert read(u16(101) + padded(b"stores") + u32(7) + END).routine == Routine(b"stores", 7)


def test_what_a_routine_returns_is_a_number_or_an_opaque_value_of_stated_length() -> None:
    number = u16(2, 0, 0) + u32(5)
    bare = u16(40, 0, 0, 0, 0) + u32(3) + b"abc\0"
    named = u16(41) + padded(b"informix") + padded(b"ifx_lo_stat") + u16(0, 0) + u32(2) + b"de"
    answer = read(u16(103, 3) + number + bare + named + END)
    assert answer.returned == [u32(5), b"abc", b"de"]


def test_a_value_of_a_routine_of_another_type_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="return value of type 5"):
        read(u16(103, 1) + u16(5, 0, 0) + bytes(8) + END)


def test_rows_are_taken_with_what_stands_between_them() -> None:
    content = row(b"abc") + COST + row(b"") + u16(99, 1, 1, 0) + DONE + COST + END
    answer = read(content)
    assert (answer.rows, answer.row_count, answer.is_at_end) == ([b"abc", b""], 2, False)


def test_a_server_may_close_the_cursor_with_the_last_row() -> None:
    """Said of live servers (docs/assumptions.md)."""
    answer = read(row(b"abc") + u16(10) + DONE + END)
    assert (answer.is_at_end, answer.is_closed) == (True, True)


def test_no_more_rows_is_no_error() -> None:
    """SQLCODE 100, said of live servers (docs/assumptions.md)."""
    answer = read(row(b"abc") + u16(13, 100, 0) + u32(0) + padded(b"") + END)
    assert (answer.rows, answer.error, answer.is_at_end) == ([b"abc"], None, True)
    assert not answer.is_closed


@pytest.mark.parametrize(("agreed", "size"), [(USUAL, 18), (SHORT, 10)])
def test_an_inserted_serial_is_as_long_as_was_agreed(agreed: Features, size: int) -> None:
    assert read(u16(94) + bytes(size) + DONE + END, agreed).row_count == 2


def test_an_error_has_two_numbers_and_a_word() -> None:
    content = u16(13) + bytes.fromhex("ff32ff91") + u32(7) + padded(b"customer") + END
    assert read(content).error == SqliError(-206, -111, b"customer")


def test_of_two_errors_the_first_says_why() -> None:
    first, second = (u16(13, code & 0xFFFF, 0) + u32(0) + padded(b"") for code in (-201, -410))
    assert read(first + second + END).error == SqliError(-201, 0, b"")


def test_bytes_of_a_large_object_are_put_together_from_chunks() -> None:
    content = u16(97, 0) + u32(7) + chunk(b"abc") + chunk(b"d") + chunk(b"efg") + END
    target = memoryview(bytearray(10))
    answer = AnswerReader(arriving(content), USUAL).read(target)
    assert (answer.read_bytes, bytes(target[:7])) == (7, b"abcdefg")


def test_a_read_of_nothing_ends_with_an_empty_chunk() -> None:
    assert read(u16(97, 0) + u32(0) + u16(0) + END, room=10).read_bytes == 0


REFUSED = {
    "more bytes than were asked for": (
        u16(97, 0) + u32(11),
        "11 bytes of a large object instead of up to 10",
    ),
    "a negative number of bytes": (u16(97, 0) + u32(0xFFFFFFFF), "-1 bytes of a large object"),
    "a chunk beyond what is left": (u16(97, 0) + u32(3) + u16(4), "a chunk of 4 bytes, but only 3"),
    "a chunk of nothing": (u16(97, 0) + u32(3) + u16(0), "a chunk of 0 bytes"),
    "an unknown message": (u16(0xABC), r"message 2748 \(0x0abc\)"),
    "a row of 4 GB": (u16(14, 0) + u32(0xFFFFFFFF), "bytes of messages and rows"),
    "a row of 200 MB": (u16(14, 0) + u32(200 << 20), "a field of 209715200 bytes"),
    "more columns than a row has bytes": (
        u16(8, 2, 1) + u32(0) + u16(4, 32_768),
        "a description of 32768 columns",
    ),
    "a name of 1 MB": (described(2, b"x" * (1 << 20) + b"\0\0"), "a column's name of 1048576 bytes"),
    "an owner of 64 KB": (DESCRIBED[:32] + u16(65_000), "a field of 65000 bytes"),
    "a type's name of 64 KB": (DESCRIBED[:32] + u16(0, 65_000), "a field of 65000 bytes"),
    "a name beyond its table": (
        u16(8, 2, 1) + u32(0) + u16(4, 1) + u32(3) + u32(9, 0) + u16(2) + bytes(20) + b"id\0\0",
        "name at 9 is not in its 3",
    ),
    "a name without an end": (
        u16(8, 2, 1) + u32(0) + u16(4, 1) + u32(2) + u32(0, 0) + u16(2) + bytes(20) + b"id",
        "name at 0 is not in its 2",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_with_the_bytes_behind_it(what: str) -> None:
    content, words = REFUSED[what]
    with pytest.raises(ProtocolViolation, match=words) as caught:
        read(content + b"\xca\xfe\xba\xbe" * 40, room=10)
    assert "cafebabe" in caught.value.message
    assert "--trace-wire" in caught.value.remedy
    assert len(caught.value.message) < 400


_LONG = padded(b"x" * 2_000)
_ENDLESS = {
    "rows of nothing": row(b""),
    "costs": COST,
    "an error's argument": u16(13, 0xFF32, 0) + u32(0) + _LONG,
    "a routine's database": u16(101) + _LONG + u32(7),
    "a value's type": u16(103, 1, 40) + _LONG + padded(b"") + u16(0, 0) + u32(0),
}


@pytest.mark.parametrize("message", _ENDLESS.values(), ids=_ENDLESS)
def test_an_answer_without_an_end_is_given_up(message: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes come fast enough for every deadline."""
    monkeypatch.setattr(answers, "_MOST_BYTES", 1_000)
    with pytest.raises(ProtocolViolation, match="in one response"):
        read(message * 16 + END)
    assert read(COST * 10 + END).error is None


def test_the_rest_of_a_value_that_has_grown_is_counted_and_not_kept() -> None:
    answer = AnswerReader(arriving(u16(39) + padded(b"abcde") + END), USUAL).read(
        target := memoryview(bytearray(3))
    )
    assert (answer.read_bytes, bytes(target)) == (5, b"abc")


def test_a_value_of_text_that_nobody_asked_for_is_refused() -> None:
    content = u16(39) + padded(b"abc") + END
    with pytest.raises(ProtocolViolation, match="that was not requested"):
        AnswerReader(arriving(content), USUAL).read()
    assert read(content, room=0).read_bytes == 3, "one that was empty a moment ago was asked for"


def test_a_value_of_text_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_MOST_BYTES", 100_000)
    with pytest.raises(ProtocolViolation, match="in one response"):
        read((u16(39) + padded(b"x" * 65_000)) * 3, room=10)


@pytest.mark.only_in_all
def test_columns_that_share_a_name_take_no_memory_for_it() -> None:
    content = described(32_767, b"x" * 500 + b"\0\0") + END
    tracemalloc.start()
    try:
        assert len(read(content).description.columns) == 32_767  # type: ignore[union-attr]
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_message_that_a_listener_is_told_of_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("informix_capture_client.transport.sqli.incoming._MOST_MESSAGE_BYTES", 1_000)
    incoming = Incoming(io.BytesIO(u16(14, 0) + u32(2_000) + bytes(2_000)).readinto, lambda *_: None)
    with pytest.raises(ProtocolViolation, match="a message of more than 1000 bytes"):
        AnswerReader(incoming, USUAL).read()


def test_a_lying_length_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(EndOfBytes):
            read(u16(14, 0) + u32(15 << 20) + b"short")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


WHOLE = DESCRIBED + row(b"x" * 70_000) + row(b"abc") + DONE + END
LARGE = u16(97, 0) + u32(66_003) + chunk(b"y" * 32_000) * 2 + chunk(b"z" * 2_003) + END


@examples(60)
@given(
    sizes=st.lists(st.sampled_from([1, 2, 3, 7, 100, 4_096, 31_999, 65_536]), min_size=1, max_size=9)
)
def test_however_bytes_are_cut_up_the_answer_is_the_same(sizes: list[int]) -> None:
    if max(sizes) < 100:
        sizes = [*sizes, 100]  # else it takes long, and proves no more
    target, other = bytearray(70_000), bytearray(70_000)
    reader = AnswerReader(arriving_in_pieces(WHOLE + LARGE, sizes), USUAL)
    at_once = AnswerReader(arriving(WHOLE + LARGE), USUAL)
    assert [reader.read() for _ in range(2)] == [at_once.read() for _ in range(2)]
    assert reader.read(memoryview(target)) == at_once.read(memoryview(other))
    assert target == other
    assert target[:66_003] == b"y" * 64_000 + b"z" * 2_003


def test_an_answer_that_breaks_off_anywhere_is_no_answer() -> None:
    content = DESCRIBED[:-2] + row(b"abc") + u16(97, 0) + u32(3) + chunk(b"abc") + DONE + END
    for size in range(len(content)):
        with pytest.raises(EndOfBytes):
            read(content[:size], room=10)
    assert read(content, room=10).read_bytes == 3


@pytest.mark.parametrize("version", LIVE_ANSWERS)
def test_the_answers_of_live_servers_hold_all_that_is_needed(version: str) -> None:
    assert features(bytes.fromhex(LIVE_ANSWERS[version])) == USUAL


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("fffc7ffc3c84aa87", USUAL),  # a subset of the offer, as GBase 8s may answer
        ("fffc7ffc3c8caa87", Features(has_challenge=True, has_bigint=True)),  # with PAM
        ("fffc7ffc3c84a887", SHORT),
        ("ff" * 9, Features(has_challenge=True, has_bigint=True)),
    ],
)
def test_what_both_sides_have_is_in_force(answer: str, expected: Features) -> None:
    assert features(bytes.fromhex(answer)) == expected


@pytest.mark.parametrize("answer", ["", "fffc7ffc3c848a", "bdbe9ffe7fb7ffedff"])
def test_a_server_without_32_bit_lengths_is_refused(answer: str) -> None:
    with pytest.raises(
        ProtocolViolation, match=f"does not support 32-bit lengths: it answers {answer} "
    ):
        features(bytes.fromhex(answer))
