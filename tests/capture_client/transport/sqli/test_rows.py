"""Values of rows as text: every type, usual, lowest, highest and NULL."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.runs.examples import examples
from informix_capture_client.errors import ProtocolViolation, ServerRefused
from informix_capture_client.transport.sqli.describing import SqliColumn
from informix_capture_client.transport.sqli.rows import SqliRowReader
from informix_emulator.column_types.column_list import parse_column_list
from informix_emulator.column_types.encoding import EmulatedType, column_type

UTF8 = "utf-8"


def text_of(column: SqliColumn, content: bytes, codec: str = UTF8) -> str | None:
    (value,) = SqliRowReader([column], codec).row(content)
    return value


# tuples of a server of ours that IBM's JDBC driver 4.50.11 reads as these values, 18 types in one row
GOLDEN = [
    (SqliColumn("i", 2, 4), "00000001", "1"),
    (SqliColumn("vc", 13, 40), "05 68656c6c6f", "hello"),
    (SqliColumn("c", 0, 10), "61626320202020202020", "abc       "),
    (SqliColumn("d", 5, 12 << 8 | 2), "c301172d430000", "12345.67"),
    (SqliColumn("dt", 7, 4), "0000b126", "2024-02-29"),
    (SqliColumn("ts", 10, 0x130F), "c71418021d0d04050c2232", "2024-02-29 13:04:05.12345"),
    (SqliColumn("b", 52, 8), "0000010000000000", "1099511627776"),
    (SqliColumn("s", 1, 2), "fff9", "-7"),
    (SqliColumn("i8", 17, 10), "ffff0000000500000002", "-8589934597"),
    (SqliColumn("f", 3, 8), "3ff8000000000000", "1.5"),
    (SqliColumn("sf", 4, 4), "40100000", "2.25"),
    (SqliColumn("lv", 40, 2048, 1, "informix", "lvarchar"), "00 00000002 6c76", "lv"),
    (SqliColumn("bo", 41, 1, 5, "informix", "boolean"), "00 00000001 01", "1"),
    (SqliColumn("nv", 16, 40), "02 6e76", "nv"),
    (SqliColumn("bl", 41, 72, 10, "informix", "blob"), "00 00000002 beef", "beef"),
    (SqliColumn("large", 5, 0x01FF), "0063", "-1" + "0" * 124),  # as that driver binds -1E+124
]


@pytest.mark.parametrize(("column", "content", "expected"), GOLDEN, ids=lambda each: str(each)[:30])
def test_a_value_is_what_ibm_s_driver_shows(column: SqliColumn, content: str, expected: str) -> None:
    assert text_of(column, bytes.fromhex(content)) == expected


def described(type_text: str) -> tuple[SqliColumn, EmulatedType]:
    """Return a column as a server describes it, and the emulator's encoder, which shares no code."""
    (definition,) = parse_column_list(f"x {type_text}")
    kind = column_type(definition.type, UTF8)
    return SqliColumn("x", kind.coltype, kind.collength, kind.extended_id), kind


DAY, MOMENT = datetime.date, datetime.datetime
VALUES: dict[str, list[tuple[object, str]]] = {
    "smallint": [(-32_767, "-32767"), (32_767, "32767")],
    "integer": [(-(2**31) + 1, "-2147483647"), (2**31 - 1, "2147483647")],
    "serial": [(1, "1")],
    "bigint": [(-(2**63) + 1, "-9223372036854775807"), (2**63 - 1, "9223372036854775807")],
    "bigserial": [(7, "7")],
    "int8": [(-(2**63) + 1, "-9223372036854775807"), (2**63 - 1, "9223372036854775807"), (0, "0")],
    "serial8": [(1, "1")],
    "float": [(0.1, "0.1"), (-1e300, "-1e+300")],
    "smallfloat": [(2.25, "2.25"), (struct.unpack(">f", struct.pack(">f", 0.1))[0], "0.1")],
    "decimal(10,2)": [(Decimal("-12345678.90"), "-12345678.90"), (Decimal(0), "0.00")],
    "decimal(5,0)": [(Decimal(-99999), "-99999"), (Decimal(100), "100")],
    "decimal(3,3)": [(Decimal("0.007"), "0.007"), (Decimal("-0.999"), "-0.999")],
    "decimal(32,16)": [(Decimal("1." + "1" * 16), "1." + "1" * 16)],
    "decimal(16)": [(Decimal("3.14159"), "3.14159"), (Decimal("-1e20"), "-1" + "0" * 20)],
    "money(8,2)": [(Decimal("-0.01"), "-0.01")],
    "date": [(DAY(1, 1, 1), "0001-01-01"), (DAY(9999, 12, 31), "9999-12-31")],
    "datetime year to second": [(MOMENT(2024, 2, 29, 1, 2, 3), "2024-02-29 01:02:03")],
    "datetime year to fraction(3)": [("0001-01-01 00:00:00.007", "0001-01-01 00:00:00.007")],
    "datetime year to month": [("2024-02", "2024-02")],
    "datetime month to day": [("02-29", "02-29")],
    "datetime hour to fraction(1)": [("23:59:59.9", "23:59:59.9")],
    "datetime day to hour": [("31 23", "31 23")],
    "datetime fraction to fraction(5)": [("0.12345", ".12345")],
    "interval day to second": [("2 03:04:05", "2 03:04:05"), ("-99 23:59:59", "-99 23:59:59")],
    "interval day(5) to minute": [("12345 01:02", "12345 01:02")],
    "interval year(4) to month": [("-1234-11", "-1234-11"), ("0-01", "0-01")],
    "interval second(3) to fraction(5)": [("123.00001", "123.00001")],
    "interval hour(9) to hour": [("123456789", "123456789")],
    "char(4)": [("ab", "ab  "), ("é", "é  ")],
    "nchar(3)": [("abc", "abc")],
    "varchar(20)": [("", ""), ("größer", "größer")],
    "nvarchar(20)": [("x", "x")],
}


def cases() -> list[tuple[str, object, str]]:
    return [(kind, value, text) for kind, values in VALUES.items() for value, text in values]


@pytest.mark.parametrize(("kind", "value", "expected"), cases(), ids=str)
def test_what_the_emulator_writes_is_read_as_text(kind: str, value: object, expected: str) -> None:
    column, written = described(kind)
    assert text_of(column, written.encode(value)) == expected


@pytest.mark.parametrize("kind", VALUES)
def test_null_is_none(kind: str) -> None:
    column, written = described(kind)
    assert text_of(column, written.null) is None


@pytest.mark.parametrize("column", [GOLDEN[11][0], GOLDEN[12][0]])
def test_null_of_an_opaque_type_has_a_flag_and_no_bytes(column: SqliColumn) -> None:
    assert text_of(column, bytes.fromhex("01 00000000")) is None


@examples(150)
@given(
    number=st.decimals(-(10**13), 10**13, allow_nan=False, allow_infinity=False, places=3),
    kind=st.sampled_from(["decimal(17,3)", "decimal(18,4)", "decimal(32,10)", "decimal(20)"]),
)
def test_a_decimal_is_exact(number: Decimal, kind: str) -> None:
    column, written = described(kind)
    text = text_of(column, written.encode(number))
    assert text is not None
    assert Decimal(text) == number


@examples(100)
@given(st.datetimes(), st.integers(0, 5))
def test_a_moment_keeps_every_digit_of_its_fraction(moment: datetime.datetime, digits: int) -> None:
    kind = f"datetime year to fraction({digits})" if digits else "datetime year to second"
    column, written = described(kind)
    fraction = f".{moment.microsecond:06}"[: digits + 1] if digits else ""
    text = f"{moment.replace(microsecond=0).isoformat(' ')}{fraction}"
    assert text_of(column, written.encode(text)) == text


def test_values_follow_each_other_without_alignment() -> None:
    columns = [GOLDEN[1][0], GOLDEN[0][0], GOLDEN[7][0]]
    assert SqliRowReader(columns, UTF8).row(b"\1x\0\0\0\5\0\7") == ("x", "5", "7")


def test_text_is_read_in_the_database_s_code_set() -> None:
    column = SqliColumn("c", 13, 20)
    assert text_of(column, b"\2\xe9\x80", "cp1252") == "é€"
    assert text_of(column, b"\2\xe9x", UTF8) == "\ufffdx"


@pytest.mark.parametrize(
    "column",
    [
        SqliColumn("b", 11, 56),
        SqliColumn("t", 12, 56),
        SqliColumn("l", 41, 72, 777),
        SqliColumn("u", 40, 9, 999),
    ],
)
def test_a_type_that_is_not_carried_is_refused_by_name(column: SqliColumn) -> None:
    with pytest.raises(ServerRefused, match=f"Column '{column.name}' has type"):
        SqliRowReader([column], UTF8)


@pytest.mark.parametrize(
    ("column", "content"),
    [
        (SqliColumn("i", 2, 4), "000001"),
        (SqliColumn("i", 2, 4), "0000000100"),
        (SqliColumn("vc", 13, 40), "056868"),
        (SqliColumn("lv", 40, 9, 1), "00ffffffff61"),
        (SqliColumn("bo", 41, 1, 5), "000000000102"),
        (SqliColumn("bo", 41, 1, 5), "00000000020101"),
        (SqliColumn("d", 5, 4 << 8 | 2), "c16400"),
        (SqliColumn("d", 5, 4 << 8), "c00150"),
        (SqliColumn("dt", 7, 4), "7fffffff"),
        (SqliColumn("ts", 10, 0x0E0A), "3814180205060708"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_bytes(column: SqliColumn, content: str) -> None:
    with pytest.raises(ProtocolViolation, match=f"begins with {content}"):
        text_of(column, bytes.fromhex(content))


@pytest.mark.parametrize(
    "column",
    [
        SqliColumn("d", 5, 0),
        SqliColumn("d", 5, 33 << 8),
        SqliColumn("t", 10, 0x04FF),
        SqliColumn("t", 14, 0),
    ],
)
def test_a_type_whose_length_means_nothing_is_refused(column: SqliColumn) -> None:
    with pytest.raises(ProtocolViolation, match=f"column '{column.name}'"):
        SqliRowReader([column], UTF8)
