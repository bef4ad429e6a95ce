"""Logical log data files of Log Master: how records are framed, and put together of segments."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from db2.decoded import bad_bytes, good, rows_of
from db2.logical_log_writer import header, rdw
from db2.test_logical_log import BODIES, BODIES_OF_EMP, EMP, FRAMED, decoder, emp, segments
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import BadOption, ProtocolViolation

# framing


@pytest.mark.parametrize("name", FRAMED)
def test_records_are_found_in_each_framing(name: str) -> None:
    framing = "rdw" if name == "rdw" else "bdw_rdw"
    rows = rows_of(decoder(framing=framing), FRAMED[name])
    assert [(row["before"], row["after"]) for row in rows] == [
        (None, b"row 1"),
        (b"a", b"bb"),
        (b"row 3", None),
    ]
    assert [row["_change_ordinal"] for row in rows] == [0, 1, 3]


def test_a_body_a_message_needs_no_lengths() -> None:
    rows = rows_of(decoder(framing="message", image_length="exclusive"), *BODIES)
    assert (rows[1]["before"], rows[1]["after"]) == (b"a", b"bb")


def test_how_a_message_has_its_lengths_is_named_since_one_is_too_little_to_tell() -> None:
    with pytest.raises(
        BadOption, match=r"image_length=auto .* Set image_length to one of exclusive, inclusive"
    ):
        decoder(framing="message")


def test_spanned_records_are_refused() -> None:
    spanned = struct.pack(">HH", len(BODIES[0]) + 4, 0x0100) + BODIES[0]
    with pytest.raises(ProtocolViolation, match="file 0, byte 0, record 0: part of a spanned record"):
        rows_of(decoder(), spanned)


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_all(["rdw", "bdw counts itself"]))
@pytest.mark.only_in_all
def test_a_file_cut_at_any_byte_gives_its_whole_records_and_the_rest_as_bytes(name: str) -> None:
    data, is_rdw = FRAMED[name], name == "rdw"
    ends = [0]
    for body in BODIES:
        ends.append(ends[-1] + 4 + len(body))
    second_block = 4 + ends[2]
    decode = decoder(framing="rdw" if is_rdw else "bdw_rdw", bad="row", image_length="exclusive")
    for cut in range(len(data) + 1):
        rows = rows_of(decode, data[:cut])
        if is_rdw:
            last = max(end for end in ends if end <= cut)
            assert (len(good(rows)), bad_bytes(rows)) == (ends.index(last), data[last:cut])
        elif cut < len(data):
            begun = 0 if cut < second_block else second_block
            if cut - begun < 4:
                found, rest = (2 if begun else 0), data[begun:cut]
            else:  # a block's descriptor is refused where the block is cut, whatever its records are
                found = sum(begun + 4 + end <= cut for end in ends[1:3]) if not begun else 2
                rest = data[begun : begun + 4] + data[4 + ends[found] if not begun else begun + 4 : cut]
            assert (len(good(rows)), bad_bytes(rows)) == (found, rest)


def blocks(*blocks: list[bytes], own: int = 4) -> bytes:
    joined = [rdw(*bodies) for bodies in blocks]
    return b"".join(struct.pack(">HH", len(each) + own, 0) + each for each in joined)


@pytest.mark.parametrize("own", [0, 4])
def test_a_bad_record_of_a_block_costs_the_rest_of_its_block_and_no_other(own: int) -> None:
    one, two, three = [BODIES[0]] * 2, [BODIES[0]] * 3, [BODIES[0]]
    data = bytearray(blocks(one, two, three, own=own))
    first, record = len(blocks(one)), len(rdw(BODIES[0]))
    spoilt = first + 4 + record
    data[spoilt : spoilt + 2] = b"\x7f\xff"
    decode = decoder(framing="bdw_rdw", bad="row", image_length="exclusive")
    rows = rows_of(decode, bytes(data))
    assert (len(good(rows)), bad_bytes(rows)) == (4, bytes(data[spoilt : spoilt + 2 * record]))
    with pytest.raises(ProtocolViolation, match=rf"file 0, byte {spoilt}, record 3: not a record"):
        rows_of(decoder(framing="bdw_rdw", image_length="exclusive"), bytes(data))


@pytest.mark.parametrize("own", [0, 4])
@pytest.mark.parametrize("length", [0, 40, 310])
def test_behind_a_block_of_a_wrong_length_nothing_is_known(own: int, length: int) -> None:
    sound, behind = blocks([BODIES[0]] * 2, own=own), blocks([BODIES[0]], [BODIES[0]], own=own)
    spoilt = struct.pack(">H", length) + behind[2:]
    decode = decoder(framing="bdw_rdw", bad="row", image_length="exclusive")
    rows = rows_of(decode, sound + spoilt)
    assert (len(good(rows)), bad_bytes(rows)) == (2, spoilt)


@pytest.mark.parametrize("own", [0, 4])
def test_a_block_that_is_longer_than_the_file_counts_as_cut(own: int) -> None:
    """Its record is read; the block behind it would be a record, and is none."""
    sound, behind = blocks([BODIES[0]] * 2, own=own), blocks([BODIES[0]], [BODIES[0]], own=own)
    spoilt, record = struct.pack(">H", 0x7FFF) + behind[2:], len(rdw(BODIES[0]))
    decode = decoder(framing="bdw_rdw", bad="row", image_length="exclusive")
    rows = rows_of(decode, sound + spoilt)
    assert (len(good(rows)), len(bad_bytes(rows))) == (3, len(spoilt) - record)
    assert "the block is truncated: " in next(row["_error"] for row in rows if row["_error"])


def test_where_neither_way_to_read_lengths_gives_a_block_all_is_refused() -> None:
    spoilt = struct.pack(">HH", 30, 0) + blocks([BODIES[0]])[4:]
    rows = rows_of(decoder(framing="bdw_rdw", bad="row", image_length="exclusive"), spoilt)
    assert (good(rows), bad_bytes(rows)) == ([], spoilt)


# segments


@pytest.mark.parametrize("seglen", ["payload", "record", "descriptor", "own"])
@pytest.mark.parametrize("first", [0, 1])
def test_segments_are_put_together_whatever_their_order(first: int, seglen: str) -> None:
    one, two, three = segments(emp(42, "Ed"), [7, 11, 0], first, seglen)
    rows = rows_of(decoder(EMP), rdw(three, BODIES_OF_EMP, one, two))
    assert [row["ID"] for row in rows] == [1, 42]


BROKEN = [
    ("a missing segment", lambda s: s[:2], "2 of 3 segments found"),
    ("segments that begin with the third", lambda s: [s[2]], "1 of 3 segments found"),
    ("a segment twice", lambda s: [*s, s[1]], "a segment occurs twice"),
    ("another total", lambda s: [*s[:2], header(CHANGETYPE="I ", LOGRBA="00000000123456780000",
    TOTALSEGS=4, SEGNUM=3)], "totals"),
]  # fmt: skip


@pytest.mark.parametrize("spoil", ["a byte more", "a halfword that is no length"])
def test_a_segment_of_another_length_than_seglen_says_is_refused(spoil: str) -> None:
    one, two = segments(
        emp(42, "Ed"), [7, 0], seglen="own" if spoil.startswith("a half") else "payload"
    )
    if spoil == "a byte more":
        one += b"x"
    else:
        one = one[:288] + b"\x7f\x7f" + one[290:]
    with pytest.raises(ProtocolViolation, match="SEGLEN"):
        rows_of(decoder(EMP), rdw(one, two))


def test_segments_are_counted_from_0_or_1() -> None:
    with pytest.raises(ProtocolViolation, match="3 of 3 segments found"):
        rows_of(decoder(EMP), rdw(*segments(emp(42, "Ed"), [7, 11, 0], 2)))


@pytest.mark.parametrize(("name", "spoil", "reason"), BROKEN, ids=[case[0] for case in BROKEN])
def test_segments_that_are_not_whole_are_refused_with_all_their_bytes(
    name: str, spoil: Any, reason: str
) -> None:
    parts = spoil(segments(emp(42, "Ed"), [7, 11, 0]))
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder(EMP), rdw(*parts))
    rows = rows_of(decoder(EMP, bad="row"), rdw(BODIES_OF_EMP, *parts))
    assert [row["ID"] for row in good(rows)] == [1], name
    assert bad_bytes(rows) == rdw(*parts)
