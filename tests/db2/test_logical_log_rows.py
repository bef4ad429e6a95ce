"""Row images of logical logs by their declared columns: exactly, or refused."""

from __future__ import annotations

import struct
from datetime import date, datetime
from decimal import Decimal

import pytest

from db2.decoded import bad_bytes, good, rows_of
from db2.logical_log_writer import rdw
from db2.test_logical_log import EMP, change, decoder, emp
from informix_capture_client.errors import (
    BadOption,
    ProtocolViolation,
)

VALUES = [
    ("SMALLINT", "fffe", -2),
    ("INT", "0000002a", 42),
    ("BIGINT", "8000000000000000", -(2**63)),
    ("DEC(9,2)", "010900000d", Decimal("-109000.00")),
    ("DEC(9,2)", "010900000c", Decimal("109000.00")),
    ("DEC(4,0)", "01234f", Decimal(1234)),
    ("DEC(4,0)", "01234b", Decimal(-1234)),
    ("DEC(4,0)", "01234a", Decimal(1234)),
    ("DEC(4,0)", "01234e", Decimal(1234)),
    ("DOUBLE", "4110000000000000", 1.0),
    ("REAL", "c276a000", -118.625),
    ("REAL", "42640000", 100.0),
    ("CHAR(3)", "c1c240", "AB "),
    ("VARCHAR(9)", "0002c584", "Ed"),
    ("VARCHAR(9)", "0000", ""),
    ("CHAR(2) FOR BIT DATA", "c1ff", b"\xc1\xff"),
    ("GRAPHIC(1)", "6f22", "漢"),
    ("VARGRAPHIC(4)", "00026f22", "漢"),
    ("DATE", "2012-10-31".encode("cp037").hex(), date(2012, 10, 31)),
    ("TIME", "23.59.58".encode("cp037").hex(), "23.59.58"),
    ("TIMESTAMP", "2012-10-31-23.59.58.123456".encode("cp037").hex(), datetime(2012, 10, 31, 23, 59, 58,
    123456)), ("TIMESTAMP(0)", "2012-10-31-23.59.58".encode("cp037").hex(), datetime(2012, 10, 31, 23,
    59, 58)), ("TIMESTAMP(12)", "2012-10-31-23.59.58.123456789012".encode("cp037").hex(),
    "2012-10-31-23.59.58.123456789012"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "digits", "value"), VALUES)
def test_a_declared_column_has_its_value_exactly(kind: str, digits: str, value: object) -> None:
    data = bytes.fromhex(digits)
    for suffix, null in ((" NOT NULL", b""), ("", b"\0")):
        tables = {"TEST.EMP": f"a {kind}{suffix}, b SMALLINT NOT NULL"}
        decode = decoder(tables, graphic_encoding="utf-16-be")
        (row,) = rows_of(decode, rdw(change("I ", null + data + b"\0\7")))
        assert (row["a"], row["b"]) == (value, 7)


def test_graphic_columns_have_the_code_page_that_is_named_or_that_of_a_unicode_table() -> None:
    tables = {"TEST.EMP": "a GRAPHIC(1) NOT NULL"}
    with pytest.raises(BadOption, match=r"graphic_encoding: column a of TEST\.EMP is GRAPHIC"):
        decoder(tables)
    data = rdw(change("I ", "漢".encode("utf-16-be")))
    for settings in ({"encoding": "utf-8"}, {"graphic_encoding": 1200}):
        assert [row["a"] for row in rows_of(decoder(tables, **settings), data)] == ["漢"]


def test_the_page_s_five_characters_and_their_null() -> None:
    for data, value in ((b"\0\0\5ABCDE", "ABCDE"), (b"\xff\0\0", None)):
        (row,) = rows_of(
            decoder({"TEST.EMP": "a VARCHAR(5)"}, encoding="utf-8"), rdw(change("I ", data))
        )
        assert row["a"] == value


def test_a_unicode_table_has_its_own_code_page_and_the_header_ebcdic() -> None:
    tables = {"TEST.EMP": "a VARCHAR(9) NOT NULL, d DATE NOT NULL"}
    data = b"\0\2\xc3\xa9" + b"2012-10-31"
    (row,) = rows_of(decoder(tables, encoding=1208), rdw(change("I ", data)))
    assert (row["a"], row["d"], row["_table"]) == ("é", date(2012, 10, 31), "TEST.EMP")


def test_floats_of_ieee_are_read_as_such_where_told() -> None:
    record = rdw(change("I ", struct.pack(">d", -0.1)))
    (row,) = rows_of(decoder({"TEST.EMP": "a DOUBLE NOT NULL"}, float_format="ieee"), record)
    assert row["a"] == -0.1


def test_expanded_strings_have_all_the_room_that_was_declared() -> None:
    data = b"\0\2Ed      " + b"\0\7"
    tables = {"TEST.EMP": "a VARCHAR(8) NOT NULL, b SMALLINT NOT NULL"}
    (row,) = rows_of(decoder(tables, expanded=True, encoding="utf-8"), rdw(change("I ", data)))
    assert (row["a"], row["b"]) == ("Ed", 7)
    with pytest.raises(BadOption, match="VARCHAR"):
        decoder({"TEST.EMP": "a VARCHAR"}, expanded=True)


@pytest.mark.parametrize("framing", ["rdw", "message"])
def test_a_control_file_says_whether_strings_are_expanded_unless_the_option_does(framing: str) -> None:
    tables = {"TEST.EMP": "a VARCHAR(4) NOT NULL, g VARGRAPHIC(2) NOT NULL"}
    image = b"\0\2Ed  " + b"\0\2" + "漢".encode("utf-16-be") + b"\0\0"
    control = rdw(("DLDS" + " " * 55 + "Y").encode("cp037"))
    body = change("I ", image)
    data = body if framing == "message" else rdw(body)
    settings = {"control": control, "encoding": "utf-8", "framing": framing}
    settings["image_length"] = "auto" if framing == "rdw" else "exclusive"
    (row,) = rows_of(decoder(tables, **settings), data)
    assert (row["a"], row["g"]) == ("Ed", "漢")
    with pytest.raises(ProtocolViolation):
        rows_of(decoder(tables, expanded=False, **settings), data)


SPOILT = [
    ("a null byte that is none", "a VARCHAR(4)", b"\7\0\1x", "null byte"),
    ("a string longer than the row", "a VARCHAR(4) NOT NULL", b"\0\x09x", "ends inside of it"),
    ("a decimal without a sign", "a DEC(3,0) NOT NULL", b"\x12\x34", "not a DECIMAL"),
    ("a digit that is none", "a DEC(3,0) NOT NULL", b"\x1a\x3c", "not a DECIMAL"),
    ("bytes after the last column", "a SMALLINT NOT NULL", b"\0\1\2", "1 bytes remain"),
    ("a date that is none", "a DATE NOT NULL", "2012-02-30".encode("cp037"), "not a DATE"),
    ("a REAL that has no room", "a REAL NOT NULL", b"\x7f\xff\xff\xff", "not a REAL"),
]


@pytest.mark.parametrize(("name", "columns", "data", "reason"), SPOILT, ids=[c[0] for c in SPOILT])
def test_a_row_that_is_not_as_declared_is_refused(
    name: str, columns: str, data: bytes, reason: str
) -> None:
    spoilt = rdw(change("I ", data))
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder({"TEST.EMP": columns}, image_length="exclusive"), spoilt)
    rows = rows_of(decoder({"TEST.EMP": columns}, bad="row"), spoilt)
    assert (good(rows), bad_bytes(rows)) == ([], spoilt), name


def test_an_expanded_string_that_is_longer_than_its_room_is_refused() -> None:
    spoilt = rdw(change("I ", b"\0\5Ed  "))
    with pytest.raises(ProtocolViolation, match="longer than declared"):
        rows_of(
            decoder({"TEST.EMP": "a VARCHAR(4) NOT NULL"}, expanded=True, image_length="exclusive"),
            spoilt,
        )


def test_a_table_with_a_long_name_is_known_by_its_numbers() -> None:
    tables = {"OWNER_OF_MANY.A_LONG_NAME": "a SMALLINT NOT NULL"}
    ids = {"OWNER_OF_MANY.A_LONG_NAME": "256.2.3"}
    (row,) = rows_of(decoder(tables, ids=ids), rdw(change("I ", b"\0\7", TABLENAME="A_LO@1")))
    assert (row["a"], row["_table"]) == (7, "OWNER_OF_MANY.A_LONG_NAME")


def test_a_row_of_another_table_is_refused_or_left_out_as_asked() -> None:
    data = rdw(change("I ", emp(1, "x")), change("I ", b"row", TABLENAME="OTHER"))
    with pytest.raises(ProtocolViolation, match=r"table TEST\.OTHER is not declared"):
        rows_of(decoder(EMP), data)
    assert [row["ID"] for row in rows_of(decoder(EMP, other_tables="skip"), data)] == [1]


def test_a_table_known_by_its_numbers_has_the_name_it_is_declared_by() -> None:
    """Its header's name is short, and may be the short name of another table too."""
    short, table = {"TABLEOWNER": "HR", "TABLENAME": "A_LONG_NA"}, "HR.A_LONG_NAME"
    data = rdw(
        change("I ", b"\0\7", **short),
        change("I ", b"\0\10", **short, TBOBID=4),
        change("DM", **short),
        change("CM", **short, TBOBID=5),
    )
    declared = {table: "a SMALLINT NOT NULL", "HR.A_LONG_NAMESAKE": "a SMALLINT NOT NULL"}
    ids = {table: "256.2.3", "HR.A_LONG_NAMESAKE": "256.2.4"}
    rows = rows_of(decoder(declared, ids=ids), data)
    assert [row["_table"] for row in rows] == [*declared, table, "HR.A_LONG_NA"]
    assert {row["_header"]["TABLENAME"] for row in rows} == {"A_LONG_NA"}
    by_numbers = {"256.2.3": "a SMALLINT NOT NULL"}
    (row, *_) = rows_of(decoder(by_numbers, other_tables="skip"), data)
    assert row["_table"] == "HR.A_LONG_NA"
