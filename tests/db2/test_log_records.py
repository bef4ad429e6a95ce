"""Log records of Db2 with large objects: transactions, rollbacks, and rows of declared tables."""

from __future__ import annotations

import contextlib
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db2.decoded import Row, bad_bytes, good
from db2.decoded import rows_of as rows_of_values
from db2.log_writer import CONCAT, DELETE, INSERT, NOISE, T1, UPDATE, LogWriter
from harness.runs.examples import examples
from informix_capture_client.errors import (
    BadOption,
    InformixCdcError,
    ProtocolViolation,
    UnsupportedColumn,
)
from informix_db2 import Decoder, log_records_decoder
from informix_db2.log_records import LogSettings

MARKS = ["<", ">"]
CLOBS = {"T1": "C1 INT NOT NULL, C2 CHAR(3) NOT NULL, C3 CLOB, C4 CLOB"}
IDS = {"T1": "4.5"}


def decoder(
    tables: dict[str, str] | None = None, shape: str = "rows", bad: str = "fail", **settings: Any
) -> Decoder:
    return log_records_decoder(tables, LogSettings(**settings), shape=shape, bad=bad)


def rows_of(decode: Decoder, *values: bytes) -> list[Row]:
    rows = rows_of_values(decode, *values)
    return rows + [row for last in decode.finish() for row in last.batch.to_pylist()]


def lobs(row: Row) -> list[tuple[int, str, str, bytes | None]]:
    return [(lob["column"], lob["original"], lob["status"], lob["data"]) for lob in row["_lobs"]]


def row_with_clobs(mark: str, number: int) -> bytes:
    """Write a row of T1; descriptors of its LOBs are noise."""
    fixed = struct.pack(mark + "i3s", number, b"abc")
    fixed += struct.pack(mark + "HHB", 17, 16, 0) + struct.pack(mark + "HHB", 33, 16, 0)
    return fixed + NOISE + NOISE


@pytest.mark.parametrize("mark", MARKS)
def test_the_page_s_insert_comes_with_the_large_objects_of_both_columns(mark: str) -> None:
    log = LogWriter(mark, fixed=17)
    data = log.out_of_row() + log.lob(64, 2, b"third") + log.lob(64, 3, b"fourth")
    data += log.row(162, row_with_clobs(mark, 42)) + log.commit()
    (row,) = rows_of(decoder(CLOBS, ids=IDS), data)
    assert (row["C1"], row["C2"], row["C3"], row["C4"]) == (42, "abc", "third", "fourth")
    assert row["_change_type"] == row["_operation"] == "insert"
    assert row["_commit_timestamp"] == datetime.fromtimestamp(1_700_000_000, UTC)
    assert row["_commit_lsn"] == f"{7:016x}{0x1005:016x}"
    assert (row["_lsn"], row["_rid"]) == (f"{7:016x}{0x1004:016x}", "000000000001")
    assert (row["_transaction_id"], row["_log_stream"], row["_table"]) == ("000000000001", 0, "T1")
    (plain,) = rows_of(decoder(), data)
    assert (plain["before"], plain["after"]) == (None, row_with_clobs(mark, 42))
    assert lobs(plain) == [(2, "insert", "complete", b"third"), (3, "insert", "complete", b"fourth")]


def test_a_large_object_that_is_empty_or_not_logged_is_told_from_one_that_is_null() -> None:
    """C3 has no bytes, says its row; of C4 the log has the amount; then C4 is NULL."""
    log, fixed = LogWriter(fixed=17), struct.pack("<i3s", 42, b"abc")
    empty, elsewhere = struct.pack("<HHB", 17, 4, 0), struct.pack("<HHB", 21, 16, 0)
    data = log.out_of_row() + log.lob(65, 3, b"", amount=99)
    data += log.row(162, fixed + empty + elsewhere + b"\x80\0\0\0" + NOISE)
    data += log.row(162, fixed + empty + b"\0\0\0\0\1" + b"\x80\0\0\0", 2) + log.commit()
    first, second = rows_of(decoder(CLOBS, ids=IDS), data)
    assert [(row["C3"], row["C4"]) for row in (first, second)] == [("", None), ("", None)]
    assert lobs(first) == [(3, "insert", "not_logged", None)]
    assert (first["_lobs"][0]["length"], lobs(second)) == (99, [])


def test_old_rows_have_no_new_large_objects_and_an_appended_piece_is_no_value() -> None:
    log, row = LogWriter(fixed=17), row_with_clobs("<", 42)
    data = log.out_of_row() + log.lob(64, 2, b"new", UPDATE) + log.lob(64, 3, b"tail", CONCAT)
    old, new = rows_of(decoder(CLOBS, ids=IDS), data + log.update(row, row) + log.commit())
    assert [(row["C3"], row["C4"]) for row in (old, new)] == [(None, None), ("new", None)]


@pytest.mark.parametrize("kind", [0x43, 0x69])
@pytest.mark.parametrize("mark", MARKS)
def test_the_page_s_rollback_leaves_nothing(mark: str, kind: int) -> None:
    log = LogWriter(mark)
    data = log.out_of_row() + log.lob(64, 2, b"third") + log.row(162, b"row")
    data += log.undo(110) + log.undo_out_of_row(kind=kind) + log.abort()
    assert rows_of(decoder(), data) == []


def test_a_savepoint_takes_back_the_newest_change_of_its_row_only() -> None:
    log = LogWriter()
    data = log.row(162, b"one", 1) + log.row(162, b"two", 2) + log.update(b"one", b"uno", 1)
    data += log.undo(112, 1, data=b"uno") + log.undo(110, 2) + log.row(161, b"one", 1) + log.commit()
    found = [(row["_change_type"], row["before"], row["after"]) for row in rows_of(decoder(), data)]
    assert found == [("insert", None, b"one"), ("delete", b"one", None)]


def test_an_undo_of_nothing_is_refused() -> None:
    log = LogWriter()
    data = log.row(162, b"one", 1)
    undone = log.undo(111, 1, data=b"one")
    with pytest.raises(ProtocolViolation, match=r"file 0, byte \d+, record 1: an undo of delete"):
        rows_of(decoder(), data + undone)
    rows = rows_of(decoder(bad="row"), data + undone + log.commit())
    assert [row["after"] for row in good(rows)] == [b"one"]
    assert bad_bytes(rows) == undone


def test_transactions_interleave_and_come_whole_in_the_order_of_their_commits() -> None:
    log = LogWriter()
    data = (
        log.out_of_row(1) + log.row(162, b"b1", 2, transaction=2) + log.lob(64, 0, b"x", transaction=1)
    )
    data += log.row(162, b"a1", 3, transaction=1) + log.row(162, b"c1", 4, transaction=3)
    data += log.row(162, b"b2", 5, transaction=2) + log.commit(transaction=2) + log.abort(3)
    data += log.commit(transaction=1)
    rows = rows_of(decoder(), data)
    assert [(row["after"], row["_change_ordinal"]) for row in rows] == [
        (b"b1", 0),
        (b"b2", 1),
        (b"a1", 0),
    ]
    assert [lobs(row) for row in rows] == [[], [], [(0, "insert", "complete", b"x")]]


def test_the_same_identifier_on_two_log_streams_is_two_transactions() -> None:
    log = LogWriter()
    first, second = log.row(162, b"a"), log.row(162, b"b")
    on_one = second[:38] + struct.pack("<H", 1) + second[40:]
    data = first + on_one + log.commit(stream=1) + log.commit(stream=0)
    found = [(row["_log_stream"], row["after"]) for row in rows_of(decoder(), data)]
    assert found == [(1, b"b"), (0, b"a")]


def test_of_two_changes_of_one_row_the_newer_is_taken_back() -> None:
    log = LogWriter()
    data = log.update(b"a", b"b") + log.update(b"b", b"c") + log.undo(112, data=b"c") + log.commit()
    assert [(row["before"], row["after"]) for row in rows_of(decoder(), data)] == [(b"a", b"b")]


def test_what_is_deleted_inside_of_a_bracket_is_the_next_row_s() -> None:
    log = LogWriter()
    data = log.row(161, b"gone") + log.out_of_row() + log.lob(66, 65535, b"old", DELETE)
    first, second = rows_of(decoder(), data + log.row(161, b"next", 2) + log.commit())
    assert (lobs(first), lobs(second)) == ([], [(65535, "delete", "old", b"old")])


PIECES = [
    (
        "data in two records",
        [(64, INSERT, b"ab"), (64, INSERT, b"cd")],
        ("insert", "complete", b"abcd"),
    ),
    ("an update", [(64, UPDATE, b"new")], ("update", "complete", b"new")),
    ("a concatenation", [(64, CONCAT, b"tail")], ("concat", "appended", b"tail")),
    ("an amount only", [(65, INSERT, b"")], ("insert", "not_logged", None)),
]


@pytest.mark.parametrize(("name", "records", "expected"), PIECES, ids=[case[0] for case in PIECES])
def test_a_large_object_says_how_much_of_it_the_log_has(
    name: str, records: list[tuple[int, int, bytes]], expected: tuple[str, str, bytes | None]
) -> None:
    log = LogWriter()
    data = log.out_of_row()
    for operation, original, piece in records:
        data += log.lob(operation, 2, piece, original, amount=0 if operation == 64 else 99)
    (row,) = rows_of(decoder(), data + log.row(162, b"row") + log.commit())
    assert lobs(row) == [(2, *expected)], name
    lengths = [len(piece) if operation == 64 else 99 for operation, _, piece in records]
    assert row["_lobs"][0]["length"] == sum(lengths)


def test_a_value_of_more_than_32_kb_is_put_end_to_end_in_the_order_of_the_log() -> None:
    log, chunks = LogWriter(), [bytes([number]) * 32768 for number in range(4)]
    data = log.out_of_row() + b"".join(log.lob(64, 2, chunk) for chunk in chunks)
    (row,) = rows_of(decoder(), data + log.row(162, b"row") + log.commit())
    assert row["_lobs"][0]["data"] == b"".join(chunks)


STRINGS = {"T1": "A INT NOT NULL, B VARCHAR(30000) NOT NULL, C VARCHAR(9) NOT NULL"}


def row_with_strings(mark: str, number: int, length: int) -> bytes:
    """Write a row whose B is out of it, as an entry with bit 0x8000 says, and whose C is in it."""
    fixed = struct.pack(mark + "iHHHH", number, 0x8000 | 12, 24, 12, 3)
    return fixed + b"ccc" + NOISE + NOISE[:8] + length.to_bytes(2, "big")


@pytest.mark.parametrize("order", MARKS)
@pytest.mark.parametrize("mark", MARKS)
def test_strings_outside_of_their_row_are_found_in_column_65535(mark: str, order: str) -> None:
    log = LogWriter(mark, fixed=12)
    old, new = (log.strings([b"", text, b""], order) for text in (b"old text", b"new text!"))
    row = row_with_strings(mark, 1, 8)
    inserted = log.out_of_row() + log.lob(64, 65535, new) + log.row(162, row)
    updated = log.out_of_row() + log.lob(66, 65535, old, UPDATE) + log.lob(64, 65535, new, UPDATE)
    updated += log.update(row, row)
    deleted = log.row(161, row) + log.lob(66, 65535, old, DELETE)
    data = inserted + updated + deleted + log.row(162, row_with_strings(mark, 2, 0)[:4] + row[4:], 9)
    rows = rows_of(decoder(STRINGS, ids=IDS, bad="row"), data + log.commit())
    assert [(row["_change_type"], row["B"], row["C"]) for row in good(rows)] == [
        ("insert", "new text!", "ccc"),
        ("update_preimage", "old text", "ccc"),
        ("update_postimage", "new text!", "ccc"),
        ("delete", "old text", "ccc"),
    ]
    assert [row["_error"] for row in rows if row["_error"]] == [
        "column B: it is stored outside of the row, and the log has no record of it"
    ]


def test_the_old_strings_behind_a_delete_are_the_delete_s() -> None:
    log = LogWriter()
    data = (
        log.row(161, b"gone")
        + log.lob(66, 65535, b"old", DELETE)
        + log.row(162, b"next")
        + log.commit()
    )
    first, second = rows_of(decoder(), data)
    assert lobs(first) == [(65535, "delete", "old", b"old")]
    assert lobs(second) == []


@pytest.mark.parametrize("operation", [66, 67])
def test_records_of_which_the_page_gives_no_body_may_end_behind_their_header(operation: int) -> None:
    log = LogWriter()
    data = log.out_of_row() + log.lob_header_only(operation) + log.update(b"a", b"b") + log.commit()
    (row,) = rows_of(decoder(), data)
    (found,) = row["_lobs"]
    assert (found["column"], found["data"]) == (65535, None)
    assert found["status"] == {66: "old", 67: "unchanged"}[operation]


def test_what_stands_in_a_record_of_no_update_decides_nothing() -> None:
    log = LogWriter()
    data = log.out_of_row() + log.lob(67, 3, b"x", 99) + log.update(b"a", b"b") + log.commit()
    (row,) = rows_of(decoder(), data)
    assert lobs(row) == [(65535, "update", "unchanged", None)]


def test_a_large_object_that_names_another_table_is_told() -> None:
    log = LogWriter()
    data = log.out_of_row() + log.lob(64, 2, b"x", parent=(8, 8)) + log.row(162, b"row") + log.commit()
    (row,) = rows_of(decoder(), data)
    assert "another table" in row["_warnings"][0]


def test_one_half_of_an_update_is_told() -> None:
    log = LogWriter()
    (row,) = rows_of(decoder(), log.row(161, b"old", flags=0x8000) + log.commit())
    assert (row["_change_type"], "half of an update" in row["_warnings"][0]) == ("delete", True)


def test_what_is_open_where_a_file_ends_is_incomplete() -> None:
    log = LogWriter()
    data = log.row(162, b"row") + log.out_of_row() + log.lob(64, 2, b"lost row")
    first, second = rows_of(decoder(), data)
    assert (first["_change_type"], first["_operation"], first["after"]) == (
        "incomplete",
        "insert",
        b"row",
    )
    assert first["_commit_lsn"] is None
    assert (second["_change_type"], second["_operation"]) == ("incomplete", "lobs_without_row")
    assert lobs(second) == [(2, "insert", "complete", b"lost row")]


def test_records_that_are_not_propagated_are_no_changes() -> None:
    log = LogWriter(flags=0)
    assert rows_of(decoder(), log.row(162, b"row") + log.commit()) == []


def test_the_server_s_own_rows_are_no_changes() -> None:
    log = LogWriter()
    assert rows_of(decoder(), log.row(162, b"map", form=0) + log.commit()) == []


def test_a_commit_time_of_four_bytes_is_read_too() -> None:
    log = LogWriter()
    data = log.row(162, b"r") + log.record(0x84, struct.pack("<IHH", 1_700_000_000, 0xFFFF, 0xFFFF))
    (row,) = rows_of(decoder(), data)
    assert row["_commit_timestamp"] == datetime.fromtimestamp(1_700_000_000, UTC)


# bytes

WRONG = [
    ("a function without a public layout", "multi-insert", lambda log: log.row(167, b"x")),
    ("VECTOR data", "213, VECTOR", lambda log: log.row(213, b"x")),
    ("a LOB operation that is none", "64 to 67", lambda log: log.lob(68, 1, b"x")),
    ("an original operation that is none", "original operation", lambda log: log.lob(64, 1, b"x", 3)),
    ("a LOB that is cut", "ends inside its data", lambda log: log.lob(64, 1, b"x", amount=9)),
    ("a row of the server's own kind", "kind 0x04", lambda log: log.row(162, b"x", kind=4)),
    ("an update without its second half", "no second record", lambda log: log.row(163, b"x")),
    (
        "a data manager record that is cut",
        "inside its header",
        lambda log: log.record(0x4E, b"\x01\xa2"),
    ),
]


@pytest.mark.parametrize(("name", "reason", "write"), WRONG, ids=[case[0] for case in WRONG])
def test_a_record_that_cannot_be_read_is_refused_and_its_neighbours_are_read(
    name: str, reason: str, write: Any
) -> None:
    log = LogWriter()
    sound, broken, end = log.row(162, b"one"), write(log), log.commit()
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder(), sound + broken + end)
    rows = rows_of(decoder(bad="row"), sound + broken + end)
    assert [row["after"] for row in good(rows)] == [b"one"], name
    assert bad_bytes(rows) == broken


def test_other_components_and_types_are_no_changes() -> None:
    log = LogWriter()
    data = log.record(0x4E, b"\x04" + NOISE) + log.record(0x46, NOISE) + log.record(0x4E, b"")
    assert rows_of(decoder(), data + log.commit()) == []


SAMPLE = LogWriter()
RECORDS = [
    SAMPLE.out_of_row(),
    SAMPLE.lob(64, 2, b"value"),
    SAMPLE.row(162, b"one"),
    SAMPLE.update(b"one", b"two", 2),
    SAMPLE.commit(),
]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_log_cut_at_any_byte_gives_its_whole_records_and_the_rest_as_bytes() -> None:
    data, ends = b"".join(RECORDS), [0]
    for record in RECORDS:
        ends.append(ends[-1] + len(record))
    for cut in range(len(data) + 1):
        rows = rows_of(decoder(bad="row"), data[:cut])
        last = max(end for end in ends if end <= cut)
        assert bad_bytes(rows) == data[last:cut], cut
        kinds = {row["_change_type"] for row in good(rows)}
        assert kinds <= ({"insert", "update"} if cut == len(data) else {"incomplete"})
        if cut not in ends:
            with pytest.raises(ProtocolViolation, match="log record"):
                rows_of(decoder(), data[:cut])


@pytest.mark.slow
@examples(200)
@given(st.integers(0, 300), st.binary(max_size=12), st.integers(0, 12))
def test_whatever_comes_it_is_read_or_refused(at: int, noise: bytes, cut: int) -> None:
    data = b"".join(RECORDS)
    data = data[:at] + noise + data[at + cut :]
    for tables in (None, {"4.5": "a CHAR(3) NOT NULL"}):
        rows_of(decoder(tables, bad="row"), data)
        with contextlib.suppress(InformixCdcError):
            rows_of(decoder(tables), data)


REFUSED = [
    ("a table without numbers", {"tables": {"T1": "a INT"}}, "ids"),
    ("a container that is none", {"container": "tape"}, "container"),
    ("a byte order that is none", {"byte_order": "middle"}, "byte_order"),
]


@pytest.mark.parametrize(("name", "given_", "word"), REFUSED, ids=[case[0] for case in REFUSED])
def test_an_option_that_cannot_be_is_refused(name: str, given_: dict[str, Any], word: str) -> None:
    with pytest.raises(BadOption, match=word):
        decoder(**given_)


def test_a_type_whose_layout_is_not_public_is_refused() -> None:
    with pytest.raises(UnsupportedColumn, match=r"column a of 4\.5 is DECFLOAT"):
        decoder({"4.5": "a DECFLOAT"})


def test_the_tests_write_the_table_that_they_name() -> None:
    assert T1 == (4, 5)
