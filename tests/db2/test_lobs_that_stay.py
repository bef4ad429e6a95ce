"""Large objects that a change left alone, and records that do not fit the row behind them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import pytest

from db2.log_writer import DELETE, NOISE, UPDATE, LogWriter
from db2.test_log_records import (
    CLOBS,
    IDS,
    MARKS,
    STRINGS,
    Row,
    decoder,
    lobs,
    row_with_clobs,
    row_with_strings,
    rows_of,
)
from informix_capture_client.errors import UnsupportedColumn

FIXED = 17
C3, C4 = 2, 3
STAYS = (C4, "update", "not_in_log", None)


def clobs(mark: str, c3: bytes | None, c4: bytes | None) -> bytes:
    """Write a row of T1: of each CLOB what the row has of it, or NULL."""
    row, tail, at = struct.pack(mark + "i3s", 42, b"abc"), b"", FIXED
    for value in (c3, c4):
        size = len(value or b"")
        row += struct.pack(mark + "HHB", at if value else 0, size, value is None)
        tail, at = tail + (value or b""), at + size
    return row + tail


def read(data: bytes) -> list[Row]:
    return rows_of(decoder(CLOBS, ids=IDS), data)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("is_bracketed", [True, False], ids=["with another LOB", "alone"])
def test_a_large_object_that_stays_differs_from_one_set_to_null_by_the_null_byte(
    mark: str, is_bracketed: bool
) -> None:
    """The two logs differ in one byte; only the second may wipe C4 where rows are merged."""
    old, stays = clobs(mark, NOISE, NOISE), clobs(mark, NOISE, NOISE)
    null = bytearray(stays)
    null[FIXED - 1] = 1
    found: list[list[Row]] = []
    logs: list[bytes] = []
    for new in (stays, bytes(null)):
        log = LogWriter(mark, fixed=FIXED)
        front = log.out_of_row() + log.lob(64, C3, b"new", UPDATE) if is_bracketed else b""
        logs.append(front + log.update(old, new) + log.commit())
        found.append(read(logs[-1]))
    assert [one == other for one, other in zip(*logs, strict=True)].count(False) == 1
    (_, of_stay), (_, of_null) = found
    assert of_stay["C4"] is None is of_null["C4"]
    assert STAYS in lobs(of_stay)
    assert C4 not in [column for column, *_ in lobs(of_null)]
    if is_bracketed:
        assert lobs(of_stay) == [(C3, "update", "complete", b"new"), STAYS]
    assert of_stay["_warnings"] == of_null["_warnings"] == []


def test_what_stays_has_no_length_and_no_operation() -> None:
    log, row = LogWriter(fixed=FIXED), clobs("<", None, NOISE)
    _, new = read(log.update(row, row) + log.commit())
    assert new["_lobs"] == [
        {
            "column": C4,
            "operation": None,
            "original": "update",
            "status": "not_in_log",
            "length": None,
            "data": None,
        }
    ]


@pytest.mark.parametrize("shape", ["rows", "envelope"])
def test_only_the_new_row_of_an_update_is_told_of_and_of_a_delete_the_old_one(shape: str) -> None:
    log, row, null = LogWriter(fixed=FIXED), clobs("<", NOISE, NOISE), clobs("<", None, None)
    data = log.update(row, null, 1) + log.row(161, row, 2) + log.row(162, clobs("<", NOISE, None), 3)
    rows = rows_of(decoder(CLOBS, shape, ids=IDS), data + log.commit())
    of_delete = [(column, "delete", "not_in_log", None) for column in (C3, C4)]
    expected = [[], of_delete, [(C3, "insert", "not_in_log", None)]]
    assert [lobs(row) for row in rows] == (expected if shape == "envelope" else [[], *expected])


IN_LOG = [
    ("it is in the row", b"\x69\0\0\0hi", lambda log: b""),
    ("it is empty", b"\x80\0\0\0", lambda log: b""),
    ("its amount is in the log", NOISE, lambda log: log.lob(65, C4, b"", UPDATE, amount=9)),
    ("a piece was put behind it", NOISE, lambda log: log.lob(64, C4, b"tail", 8)),
]


@pytest.mark.parametrize(("name", "value", "write"), IN_LOG, ids=[case[0] for case in IN_LOG])
def test_a_large_object_of_which_something_is_known_is_not_told_as_absent(
    name: str, value: bytes, write: Callable[[LogWriter], bytes]
) -> None:
    log = LogWriter(fixed=FIXED)
    data = log.out_of_row() + write(log)
    _, new = read(data + log.update(clobs("<", None, NOISE), clobs("<", None, value)) + log.commit())
    assert "not_in_log" not in [status for _, _, status, _ in lobs(new)], name


def test_the_entries_are_those_of_their_rows_among_rows_that_are_bad() -> None:
    log = LogWriter(fixed=FIXED)
    data = log.row(162, b"bad", 1) + log.row(162, clobs("<", None, NOISE), 2) + log.row(161, b"bad", 3)
    rows = rows_of(decoder(CLOBS, ids=IDS, bad="row"), data + log.commit())
    assert [(row["C1"], lobs(row)) for row in rows if row["_error"] is None] == [
        (42, [(C4, "insert", "not_in_log", None)])
    ]


# what is written in front of the insert of a row of T1 whose C3 is NULL and whose C4 is in it
MISFITS = [
    ("a column that is not there", "column 9, counted from 0: .* 4 columns", (64, 9, b"x")),
    ("a column that is no large object", "column C2, which is declared CHAR", (64, 1, b"x")),
    ("a column that is NULL", "column C3, which the row says is NULL", (64, C3, b"x")),
    ("a column that the row has", "column C4, which the row has in itself", (64, C4, b"x")),
    (
        "strings of other columns",
        "column 65535 has no offsets for 4 columns",
        (64, 65535, b"\x12\0\0\4"),
    ),
]


@pytest.mark.parametrize(("name", "reason", "piece"), MISFITS, ids=[case[0] for case in MISFITS])
def test_large_objects_that_do_not_fit_the_declared_table_are_told(
    name: str, reason: str, piece: tuple[int, int, bytes]
) -> None:
    log = LogWriter(fixed=FIXED)
    data = log.out_of_row() + log.lob(*piece)
    data += log.row(162, clobs("<", None, b"\x69\0\0\0hi")) + log.commit()
    (row,) = read(data)
    (warning,) = row["_warnings"]
    assert re.search(reason, warning)
    assert row["C4"] == "hi", name
    assert lobs(row)[0][3] == piece[2]


def test_strings_outside_of_a_row_that_says_it_has_them_are_told_of_both_rows() -> None:
    """The row calls its B empty and inside; 9,000 bytes of it are in column 65535."""
    log = LogWriter(fixed=12)
    row = struct.pack("<iHHHH", 1, 12, 0, 12, 3) + b"ccc"
    strings = [log.strings([b"", b"x" * size, b""], "<") for size in (9000, 8000)]
    data = log.out_of_row() + log.lob(64, 65535, strings[0], UPDATE)
    data += log.lob(66, 65535, strings[1], UPDATE) + log.update(row, row) + log.commit()
    rows = rows_of(decoder(STRINGS, ids=IDS), data)
    told = "column 65535 has {} bytes of column B, which contradicts the row"
    for row_of_b in rows:
        assert (row_of_b["B"], row_of_b["C"]) == ("", "ccc")
        assert row_of_b["_warnings"] == [told.format(8000), told.format(9000)]


def test_strings_and_large_objects_that_fit_are_not_told() -> None:
    log = LogWriter(fixed=12)
    row, strings = row_with_strings("<", 1, 8), log.strings([b"", b"text", b""], "<")
    data = log.out_of_row() + log.lob(64, 65535, strings) + log.row(162, row)
    data += log.row(161, row) + log.lob(66, 65535, strings, DELETE) + log.commit()
    assert [row["_warnings"] for row in rows_of(decoder(STRINGS, ids=IDS), data)] == [[], []]
    log = LogWriter(fixed=FIXED)
    data = log.out_of_row() + log.lob(64, C3, b"x") + log.lob(64, C4, b"y")
    (found,) = read(data + log.row(162, row_with_clobs("<", 1)) + log.commit())
    assert found["_warnings"] == []


UNREAD = [(3, "the long field manager"), (99, "component 99")]


@pytest.mark.parametrize(("component", "name"), UNREAD)
def test_a_propagated_record_that_is_not_read_is_told_by_the_row_behind_it(
    component: int, name: str
) -> None:
    log = LogWriter()
    unread = [log.record(0x4E, bytes([component, 110]) + NOISE) for _ in range(2)]
    data = log.row(162, b"a", 1) + b"".join(unread) + log.row(162, b"b", 2) + log.row(162, b"c", 3)
    rows = rows_of(decoder(), data + log.commit())
    told = (
        f"a record of {name} that is marked as propagated is not read: it may contain values of a row"
    )
    assert [row["_warnings"] for row in rows] == [[], [told], []]


@pytest.mark.parametrize(("component", "name"), UNREAD)
def test_such_a_record_behind_all_rows_is_told_by_the_last_one(component: int, name: str) -> None:
    log = LogWriter()
    data = log.row(162, b"a", 1) + log.row(161, b"b", 2) + log.row(162, b"c", 3) + log.undo(110, 3)
    data += log.record(0x4E, bytes([component, 111]) + NOISE)
    rows = rows_of(decoder(), data + log.commit())
    assert [[name in told for told in row["_warnings"]] for row in rows] == [[], [True]]


def test_such_a_record_alone_is_incomplete_and_rolled_back_or_not_propagated_nothing() -> None:
    log, quiet = LogWriter(), LogWriter(flags=0)
    unread = log.record(0x4E, b"\x03\x6e" + NOISE)
    (row,) = rows_of(decoder(CLOBS, ids=IDS), unread + log.commit())
    assert (row["_change_type"], len(row["_warnings"])) == ("incomplete", 1)
    assert rows_of(decoder(), unread + log.abort()) == []
    assert rows_of(decoder(), quiet.record(0x4E, b"\x03\x6e" + NOISE) + log.commit()) == []


def test_such_a_record_takes_no_old_strings_from_the_delete_in_front_of_it() -> None:
    log = LogWriter()
    data = log.row(161, b"gone") + log.record(0x4E, b"\x03\x6f" + NOISE)
    data += log.lob(66, 65535, b"old", DELETE) + log.row(162, b"next") + log.commit()
    first, second = rows_of(decoder(), data)
    assert (lobs(first), lobs(second)) == ([(65535, "delete", "old", b"old")], [])


@pytest.mark.parametrize("kind", ["LONG VARCHAR", "LONG VARCHAR FOR BIT DATA", "LONG VARGRAPHIC"])
def test_a_column_that_db2_keeps_in_long_fields_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedColumn, match=r"column B of 4\.5 is LONG .*long field manager"):
        decoder({"4.5": f"A INT NOT NULL, B {kind}"})
