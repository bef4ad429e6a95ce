"""Ends and undos of transactions in log records, and large objects beside them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from db2.decoded import bad_bytes, good
from db2.log_writer import DELETE, LogWriter
from db2.test_log_records import decoder, lobs, rows_of
from informix_capture_client.errors import BadOption, ProtocolViolation
from informix_db2 import decoding
from informix_db2.log_records.lob_records import strings_of
from informix_db2.refused_bytes import BadDb2Value


def test_large_objects_whose_row_never_came_are_incomplete_though_committed() -> None:
    log = LogWriter()
    lost = log.out_of_row() + log.lob(64, 2, b"lost")
    data = lost + log.out_of_row() + log.lob(64, 2, b"x") + log.row(162, b"row") + lost + log.commit()
    rows = rows_of(decoder(), data)
    assert [(row["_change_type"], row["after"], lobs(row)[0][3]) for row in rows] == [
        ("incomplete", None, b"lost"),
        ("insert", b"row", b"x"),
        ("incomplete", None, b"lost"),
    ]


def test_large_objects_of_a_bracket_that_was_undone_are_nobody_s() -> None:
    log = LogWriter()
    data = log.out_of_row() + log.lob(64, 2, b"gone") + log.undo_out_of_row()
    (row,) = rows_of(decoder(), data + log.row(162, b"kept") + log.commit())
    assert (row["after"], lobs(row)) == (b"kept", [])


def test_strings_behind_a_delete_are_its_own_past_what_was_undone_since() -> None:
    log = LogWriter()
    data = log.row(161, b"old", 1) + log.row(162, b"gone", 2) + log.undo(110, 2)
    data += log.lob(66, 65535, b"string", DELETE) + log.row(162, b"next", 3) + log.undo(110, 3)
    (row,) = rows_of(decoder(), data + log.commit())
    assert (row["_change_type"], lobs(row)) == ("delete", [(65535, "delete", "old", b"string")])


def test_a_change_behind_an_undo_is_taken_back_as_those_before_it() -> None:
    log = LogWriter()
    data = log.row(162, b"one") + log.undo(110) + log.row(162, b"two") + log.undo(110) + log.commit()
    assert rows_of(decoder(), data) == []


def test_rows_of_both_kinds_and_a_delete_that_empties_its_page_are_read() -> None:
    log = LogWriter()
    data = log.row(164, b"gone") + log.row(162, b"new", 2, kind=0x10) + log.commit()
    assert [row["before"] or row["after"] for row in rows_of(decoder(), data)] == [b"gone", b"new"]


def test_a_record_of_old_strings_without_a_body_is_the_delete_s_in_front_of_it() -> None:
    log = LogWriter()
    data = log.row(161, b"gone") + log.lob_header_only(66) + log.row(162, b"next", 2) + log.commit()
    first, second = rows_of(decoder(), data)
    assert (lobs(first), lobs(second)) == ([(65535, "delete", "old", None)], [])


STRUCTURES = [
    ("no string at all", "1200000c" + "00000000" * 2, [b""]),
    ("offsets that do not begin at 0", "1200000d" + "01000000" * 2 + "61", None),
    ("bytes behind its size", "1200000c" + "00000000" * 2 + "61", None),
    ("another eye-catcher", "1300000c" + "00000000" * 2, None),
]


@pytest.mark.parametrize(("name", "digits", "expected"), STRUCTURES, ids=[c[0] for c in STRUCTURES])
def test_the_structure_of_strings_is_read_or_refused(
    name: str, digits: str, expected: list[bytes] | None
) -> None:
    data = bytes.fromhex(digits)
    if expected is None:
        with pytest.raises(BadDb2Value, match="column 65535"):
            strings_of(data, 1, ("little", "big"))
    else:
        assert strings_of(data, 1, ("little", "big")) == expected, name


@pytest.mark.parametrize("function", [110, 131])
def test_both_undos_of_an_insert_take_it_back(function: int) -> None:
    log = LogWriter()
    data = log.row(162, b"gone") + log.undo(function, data=b"gone") + log.row(162, b"kept", 2)
    assert [row["after"] for row in rows_of(decoder(), data + log.commit())] == [b"kept"]


@pytest.mark.parametrize("function", [111, 166])
def test_both_undos_of_a_delete_take_it_back_with_the_strings_behind_it(function: int) -> None:
    log = LogWriter()
    data = log.row(161, b"back") + log.lob(66, 65535, b"old", DELETE)
    data += log.undo(function, data=b"back") + log.row(162, b"kept", 2) + log.commit()
    (row,) = rows_of(decoder(), data)
    assert (row["after"], lobs(row)) == (b"kept", [])


@pytest.mark.parametrize("kind", [0x84, 0x85, 0x86, 0x87, 0x8A, 0x41, 0x49])
def test_every_end_of_a_transaction_is_known(kind: int) -> None:
    log = LogWriter()
    ended = log.row(162, b"a") + log.record(kind, struct.pack("<Q", 1_700_000_000))
    rows = rows_of(decoder(), ended + log.row(162, b"b") + log.commit())
    is_commit = kind > 0x80
    expected = [(b"a", "insert")] * is_commit + [(b"b", "insert")]
    assert [(row["after"], row["_change_type"]) for row in rows] == expected
    assert len({row["_commit_lsn"] for row in rows}) == len(rows)


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_update_that_stays_open_has_both_of_its_rows(is_committed: bool) -> None:
    log = LogWriter()
    data = log.update(struct.pack("<i", 1), struct.pack("<i", 2)) + log.row(162, struct.pack("<i", 3))
    data += log.commit() if is_committed else b""
    rows = rows_of(decoder({"T1": "A INT NOT NULL"}, ids={"T1": "4.5"}), data)
    told = [(row["_change_type"], row["_operation"]) for row in rows]
    assert [(row["A"], row["_change_ordinal"]) for row in rows] == [(1, 0), (2, 1), (3, 2)]
    kinds = ["update_preimage", "update_postimage", "insert"]
    if is_committed:
        assert told == list(zip(kinds, ["update", "update", "insert"], strict=True))
    else:
        assert told == [("incomplete", kind) for kind in kinds]


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ({"T1": "4.5", "T2": "4.5"}, "tables T1 and T2 have the same numbers"),
        ({"T1": "4.65541", "T2": "4.5"}, "number of table T1 are missing"),
        ({"T1": "65536.1", "T2": "4.5"}, "number of table T1 are missing"),
    ],
)
def test_numbers_of_two_tables_or_beyond_their_bytes_are_refused(
    ids: dict[str, str], reason: str
) -> None:
    with pytest.raises(BadOption, match=reason):
        decoder({"T1": "A INT", "T2": "A INT"}, ids=ids)


@pytest.mark.parametrize("is_usual", [True, False], ids=["by columns", "record by record"])
@pytest.mark.parametrize("at_once", [True, False], ids=["one batch", "two batches"])
def test_an_error_names_the_file_and_the_byte_of_its_record_and_not_of_its_commit(
    monkeypatch: pytest.MonkeyPatch, is_usual: bool, at_once: bool
) -> None:
    if not at_once:
        monkeypatch.setattr(decoding, "TOGETHER_BYTES", 1)
    log = LogWriter()
    first = log.row(162, struct.pack("<i", 1), transaction=2) + log.commit(transaction=2)
    begins = len(first)
    bad = log.row(162, b"xx")
    first += bad + (b"" if is_usual else log.out_of_row())
    second = log.row(162, struct.pack("<i", 3)) + log.commit()
    settings: dict[str, Any] = {"across_values": True, "byte_order": "little"}
    tables = {"4.5": "A INT NOT NULL"}
    with pytest.raises(ProtocolViolation, match=rf"file 0, byte {begins}, record 2: a row of 2 bytes"):
        rows_of(decoder(tables, **settings), first, second)
    rows = rows_of(decoder(tables, bad="row", **settings), first, second)
    assert [row["A"] for row in good(rows)] == [1, 3]
    assert bad_bytes(rows) == bad
    (error,) = [row["_error"] for row in rows if row["_error"]]
    is_told = f"(file 0, byte {begins}, record 2)" in error
    assert is_told == (not is_usual or not at_once)


def test_an_error_at_the_end_of_all_values_names_its_file() -> None:
    log = LogWriter()
    settings: dict[str, Any] = {"across_values": True, "byte_order": "little"}
    with pytest.raises(ProtocolViolation, match="file 0, byte 0, record 0: a row of 2 bytes"):
        rows_of(decoder({"4.5": "A INT NOT NULL"}, **settings), log.row(162, b"xx"), log.abort(9))
