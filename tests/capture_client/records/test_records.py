from __future__ import annotations

import numpy as np
import pytest

from harness.capture.streams import Read, blocks, read_all
from informix_capture_client.positions import (
    log_number,
    log_page,
    parse,
    show,
)
from informix_capture_client.records.records import (
    Begin,
    Commit,
    Discard,
    RecordKind,
    Rollback,
    ServerError,
    TableSchema,
    Timeout,
)

# The sample session of the CDC guide: log 47, transaction 24, user data 0.
BEGIN_AT, INSERT_AT, COMMIT_AT = parse("47:0x5e018"), parse("47:0x5e04c"), parse("47:0x5e09c")

GOLDEN: list[tuple[str, str, Read]] = [
    (
        "BEGINTX of transaction 24 at 47:0x5e018, user 1000 (the guide's sample)",
        "00000028 00000000 00000042 00000001  0000002f0005e018 00000018 000000004901127f 000003e8",
        Begin(BEGIN_AT, 24, 1_224_807_039, 1000),
    ),
    (
        "COMMTX of transaction 24 at 47:0x5e09c",
        "00000024 00000000 00000042 00000002  0000002f0005e09c 00000018 0000000049011280",
        Commit(COMMIT_AT, 24, 1_224_807_040),
    ),
    (
        "RBTX of transaction 24",
        "0000001c 00000000 00000042 00000003  0000002f0005e09c 00000018",
        Rollback(COMMIT_AT, 24),
    ),
    (
        "INSERT of 15 bytes at 47:0x5e04c into table 0: 1, 'a', 1000 (the guide's sample)",
        "00000024 0000000f 00000042 00000028  0000002f0005e04c 00000018 00000000 00000000"
        "  00000001 61 0001000003e800000000",
        (RecordKind.INSERT, INSERT_AT, 24, 0, bytes.fromhex("00000001 61 0001000003e800000000")),
    ),
    (
        "DELETE with one variable column, whose size is part of the header",
        "00000028 00000003 00000042 00000029  0000002f0005e04c 00000018 00000005 00000000 00000003"
        "  026869",
        (RecordKind.DELETE, INSERT_AT, 24, 5, bytes.fromhex("026869")),
    ),
    (
        "UPDBEF with reserved flags set",
        "00000024 00000001 00000042 0000002a  0000002f0005e04c 00000018 00000005 ffffffff  61",
        (RecordKind.UPDBEF, INSERT_AT, 24, 5, b"a"),
    ),
    (
        "UPDAFT without a payload",
        "00000024 00000000 00000042 0000002b  0000002f0005e04c 00000018 00000005 00000000",
        (RecordKind.UPDAFT, INSERT_AT, 24, 5, b""),
    ),
    (
        "DISCARD from 47:0x5e04c on",
        "0000001c 00000000 00000042 0000003e  0000002f0005e04c 00000018",
        Discard(INSERT_AT, 24),
    ),
    (
        "TRUNCATE of table 5, without flags",
        "00000020 00000000 00000042 00000077  0000002f0005e04c 00000018 00000005",
        (RecordKind.TRUNCATE, INSERT_AT, 24, 5, b""),
    ),
    (
        "TABSCHEMA of 37 bytes of text, the trailing NUL counted (the guide's sample)",
        "00000024 00000025 00000042 000000c8  00000000 00000000 0000000f 00000003 00000000  "
        + b"col1 serial, col2 char(1), col3 int8\0".hex(),
        TableSchema(0, 15, 3, 0, "col1 serial, col2 char(1), col3 int8"),
    ),
    (
        "TABSCHEMA with a name in UTF-8",
        "00000024 0000000c 00000042 000000c8  00000007 00000000 00000004 00000001 00000000  "
        + "größe date".encode().hex(),
        TableSchema(7, 4, 1, 0, "größe date"),
    ),
    (
        "TIMEOUT after 47:0x5e09c",
        "00000018 00000000 00000042 000000c9  0000002f0005e09c",
        Timeout(COMMIT_AT),
    ),
    (
        "ERROR -83790: the session is dead",
        "00000018 00000000 00000042 000000ca  00000001 fffeb8b2",
        ServerError(True, -83790),
    ),
    (
        "ERROR -83713: the session is still valid",
        "00000018 00000000 00000042 000000ca  00000002 fffeb8ff",
        ServerError(False, -83713),
    ),
    (
        "ERROR with text behind it",
        "00000018 00000004 00000042 000000ca  00000003 fffeb8ff  6f6f7073",
        ServerError(True, -83713),
    ),
]


@pytest.mark.parametrize(("record", "value"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN])
def test_a_record_means_what_the_guide_says(record: str, value: Read) -> None:
    (found,) = read_all([bytes.fromhex(record)])
    assert (type(found), found) == (type(value), value)


def test_all_twelve_kinds_have_golden_bytes() -> None:
    golden = {int.from_bytes(bytes.fromhex(record)[12:16]) for _, record, _ in GOLDEN}
    assert golden == set(RecordKind)


def test_all_golden_records_in_one_stream_keep_their_meaning() -> None:
    stream = b"".join(bytes.fromhex(record) for _, record, _ in GOLDEN)
    assert read_all([stream]) == [value for _, _, value in GOLDEN]


def test_some_records_of_a_block_can_be_copied_out_of_it() -> None:
    stream = b"".join(bytes.fromhex(record) for _, record, _ in GOLDEN)
    (block,) = blocks([stream])
    part = block.only(np.array([3, 4, 7, 8]))
    assert part.raw.data[: part.raw.size_bytes] == b"".join(
        bytes.fromhex(GOLDEN[n][1]) for n in (3, 4, 7, 8)
    )
    assert part.control(2) == GOLDEN[7][2]
    assert part.is_row.tolist() == [True, True, False, True]
    assert part.sequence_numbers.tolist() == [INSERT_AT] * 4
    assert part.table_ids[part.is_row].tolist() == [0, 5, 5]


POSITIONS = [
    ("47:0x5e018", 201863847960),
    ("21:0x4b774", 0x150004B774),
    ("7:0x8a209c", 30073823388),
    ("146079:0xc8522c", 627404540760620),
]


@pytest.mark.parametrize(("text", "number"), POSITIONS)
def test_positions_read_and_print_as_in_the_guide(text: str, number: int) -> None:
    assert (parse(text), show(number)) == (number, text)
    assert log_number(number) == int(text.partition(":")[0])


def test_a_place_in_a_log_may_be_given_in_decimal() -> None:
    assert parse("47:385048") == parse("47:0x5e018")


def test_a_page_of_a_log_is_a_position() -> None:
    assert log_page(47, 0x5E) == parse("47:0x5e000")
