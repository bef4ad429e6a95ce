from __future__ import annotations

import pytest

from harness.capture.decoding import EncodedRow, decode_hex, decode_rows
from informix_capture_client import decode_payloads
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.values.table_decoder import TableDecoder

MALFORMED = [
    ("an INT8 sign of 2", "int8", "0002 00000001 00000000", "sign"),
    ("an INT8 without a sign", "int8", "0000 00000001 00000000", "without a sign"),
    ("an INT8 beyond 63 bits", "int8", "0001 00000000 80000000", "beyond 63 bits"),
    ("a DATE after the year 9999", "date", "002d2481", "DATE outside"),
    ("a DATE before the year 1", "date", "fff56aa5", "DATE outside"),
    ("a BOOLEAN of 2", "boolean", "0002", "BOOLEAN"),
    ("a base-100 digit of 100", "decimal(4,2)", "c1 64 00", "digit above 99"),
    ("a negative number without digits", "decimal(4,2)", "3e 00 00", "without digits"),
    ("a decimal too large for its precision", "decimal(3,2)", "c1 0a 00", "more than 3 digits"),
    ("a decimal too fine for its scale", "decimal(4,1)", "c1 01 0b 00", "more than 1 digits after"),
    ("a decimal with pairs before its first", "decimal(4,2)", "c5 01 00", "more than 4 digits"),
    ("a decimal with pairs far before its first", "decimal(4,2)", "ff 01 00", "does not fit"),
    ("a decimal with pairs behind its last", "decimal(4,2)", "c0 01 02", "does not fit"),
    ("a negative decimal with pairs behind its last", "decimal(4,2)", "3f 62 62", "does not fit"),
    ("a wide decimal with pairs behind its last", "decimal(32,2)", "c0 01 02" + "00" * 14, "not fit"),
    ("a wide decimal out of reach", "decimal(32,2)", "d9 01" + "00" * 15, "does not fit"),
    ("a wide decimal of 32 digits", "decimal(31,0)", "d0 0a" + "63" * 15, "more than 31 digits"),
    ("a very wide decimal of 33 digits", "decimal(32,15)", "c9 0a" + "00" * 16, "more than 32 digits"),
    ("a month of 13", "datetime year to day", "c7 14 18 0d 0f", "MONTH outside 1 to 12"),
    ("a month of 0", "datetime year to day", "c7 14 18 00 0f", "MONTH outside"),
    ("a day of 0", "datetime year to day", "c7 14 18 03 00", "DAY outside"),
    ("the 30th of February", "datetime year to day", "c7 14 18 02 1e", "DAY that its month"),
    ("a day of 32, without a month", "datetime day to hour", "c4 20 01", "DAY outside 1 to 31"),
    ("the year 0", "datetime year to year", "80 00 00", "YEAR outside 1 to 9999"),
    ("an hour of 24", "datetime hour to minute", "c3 18 00", "HOUR outside 0 to 23"),
    ("a minute of 60", "datetime hour to minute", "c3 01 3c", "MINUTE outside 0 to 59"),
    ("a negative DATETIME", "datetime hour to minute", "3c 5c 5f", "negative DATETIME"),
    ("digits below the last field", "datetime hour to minute", "c1 05 00", "below its MINUTE"),
    ("a second decimal of FRACTION(1)", "datetime second to fraction(1)", "c1 05 47", "more than 1"),
    ("an interval of 12 months after years", "interval year to month", "c6 03 0c 00", "MONTH outside"),
    ("an interval of 24 hours after days", "interval day to second", "c4 01 18 00 00", "HOUR outside"),
    ("an interval day of three digits", "interval day to day", "c5 01", "does not fit"),
    ("an interval day(3) of four digits", "interval day(3) to day", "c5 0b 00", "DAY outside 0 to 999"),
    (
        "an interval beyond Spark's",
        "interval day(9) to second",
        "c8 01 06 4b 63 5b 00 00 00",
        "is more than Spark's 106,751,991 days; option intervals=string",
    ),
    (
        "an interval a second beyond Spark's",
        "interval day(9) to second",
        "c8 01 06 4b 13 5b 04 00 37",
        "is more than Spark's",
    ),
    (
        "an interval ten microseconds beyond Spark's",
        "interval day(9) to fraction(5)",
        "c8 01 06 4b 13 5b 04 00 36 4d 3a 0a",
        "is more than Spark's",
    ),
    (
        "a negative interval beyond Spark's",
        "interval day(9) to fraction(2)",
        "37 62 5d 18 50 08 5f 63 2c 32",
        "is more than Spark's",
    ),
    (
        "more months than an INT holds",
        "interval year(9) to month",
        "ca 09 63 63 63 63 00",
        "is more months",
    ),
    ("a CHAR that begins with NUL", "char(3)", "00 61 20", "begins with a NUL byte"),
    ("a CHAR of NUL bytes and blanks", "char(3)", "00 00 20", "begins with a NUL byte"),
    ("a CHAR of NUL, blank, NUL", "char(3)", "00 20 00", "begins with a NUL byte"),
    ("an NCHAR that begins with NUL", "nchar(2)", "00 61", "begins with a NUL byte"),
    ("a handle with a flag", "blob", "01000000" + "ab" * 72, "indicator 01000000 with a locator"),
    ("a handle with a flag behind", "clob", "00000001" + "00" * 71 + "01", "indicator 00000001"),
    ("a handle with an indicator -1", "clob", "ff" * 76, "indicator ffffffff"),
    ("a CHAR that is not UTF-8", "char(2)", "61 ff", "not utf-8, at byte 1"),
    ("a CHAR with a surrogate", "char(3)", "ed a0 80", "not utf-8"),
    ("a VARCHAR whose length is not its size", "varchar(9,0)", "03 61", "length that is not its size"),
    ("a VARCHAR that is not UTF-8", "varchar(9,0)", "01 ff", "not utf-8"),
    ("an LVARCHAR without its prefix", "lvarchar(9)", "00 01", "shorter than its prefix"),
    ("an LVARCHAR whose length is not its size", "lvarchar(9)", "00 05 00 61", "length that is not"),
    ("an LVARCHAR flag of 2", "lvarchar(9)", "00 01 02", "unknown LVARCHAR flag"),
]


@pytest.mark.parametrize(
    ("type_text", "value", "why"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED]
)
def test_a_value_that_cannot_be_is_refused_with_table_column_and_row(
    type_text: str, value: str, why: str
) -> None:
    with pytest.raises(ProtocolViolation, match=why) as refused:
        decode_hex(type_text, value)
    assert "value of t.a at row 0" in str(refused.value)
    assert refused.value.facts == {"table": "t", "column": "a"}


def test_the_row_that_is_wrong_is_named() -> None:
    rows: list[EncodedRow] = [([], bytes.fromhex(value)) for value in ("0001", "0000", "0003", "0004")]
    with pytest.raises(ProtocolViolation, match=r"t\.a at row 2 "):
        decode_rows("a boolean", rows)


NULLS = [
    ("char(32767)", "00", "20"),
    ("decimal(32,15)", "", "00"),
    ("integer", "80", "00"),
    ("blob", "01", "00"),
]


@pytest.mark.parametrize(("type_text", "first", "rest"), NULLS)
def test_one_value_among_very_many_nulls_is_found(type_text: str, first: str, rest: str) -> None:
    size = TableDecoder(f"a {type_text}").fixed_bytes
    null = (bytes.fromhex(first) + bytes.fromhex(rest) * size)[:size]
    value = {"char(32767)": b"a".ljust(size), "decimal(32,15)": b"\x80".ljust(size, b"\0")}
    value["blob"] = b"\1".rjust(size, b"\0")
    rows: list[EncodedRow] = [([], null)] * 300
    assert decode_rows(f"a {type_text}", rows).column(0).null_count == 300
    rows[299] = ([], value.get(type_text, bytes(size)))
    assert decode_rows(f"a {type_text}", rows).column(0).null_count == 299


def test_bytes_that_a_code_set_does_not_have_are_refused() -> None:
    with pytest.raises(ProtocolViolation, match="not cp1252, at byte 1"):
        decode_rows("a char(2)", [([], b"a\x81")], DecodeRules(codec="cp1252"))


SIZES = [
    ("a fixed row that is too short", "a integer", [], "000000"),
    ("a fixed row that is too long", "a integer", [], "0000000000"),
    ("variable sizes beyond the row", "a integer, v varchar(9,0)", [9], "00000001 0161"),
    ("variable sizes short of the row", "a integer, v varchar(9,0)", [1], "00000001 0161"),
    ("a size of 4 GiB", "a integer, v varchar(9,0)", [2**32 - 1], "00000001 0161"),
]


@pytest.mark.parametrize(("columns", "sizes", "row"), [s[1:] for s in SIZES], ids=[s[0] for s in SIZES])
def test_a_row_whose_sizes_do_not_add_up_is_refused(columns: str, sizes: list[int], row: str) -> None:
    with pytest.raises(ProtocolViolation, match=r"a row of t at row 0 has \d+ bytes"):
        decode_rows(columns, [(sizes, bytes.fromhex(row))])


@pytest.mark.parametrize(("sizes", "row"), [([-1, 3], "0161"), ([0, 2], "0161")])
def test_a_size_below_one_is_refused(sizes: list[int], row: str) -> None:
    with pytest.raises(ProtocolViolation, match="VARCHAR of size 0"):
        decode_rows("v varchar(9,0), w varchar(9,0)", [(sizes, bytes.fromhex(row))])


def test_a_row_without_all_its_sizes_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="1 variable sizes"):
        decode_payloads("v varchar(9,0)", [([], b"\1a")])


def test_a_fixed_column_after_a_variable_one_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="fixed column after a variable one"):
        TableDecoder("v varchar(9,0), a integer")


def test_columns_wider_than_any_record_are_refused() -> None:
    columns = ", ".join(f"c{n} char(32767)" for n in range(600))
    with pytest.raises(ProtocolViolation, match="wider than any record"):
        TableDecoder(columns)
