"""Texts as a driver prints them, and what they become; what is not quite of its form is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from informix_capture_client.choices import DecodeRules
from informix_capture_client.row_fetch.odbc_columns import bound_column
from informix_capture_client.values import BadValue, Column

AS_TEXT = DecodeRules(intervals="string", floating_decimal="double")


def read(type_text: str, *texts: str | None, rules: DecodeRules = DecodeRules()) -> pa.Array:  # noqa: B008
    """Return what becomes of texts that a driver has put into a column's cells."""
    column = bound_column(Column("v", type_text), "t", rules)
    raw = [(text or "").encode() for text in texts]
    cells = np.frombuffer(b"".join(each.ljust(column.room, b"\0") for each in raw), np.uint8)
    lengths = np.array([-1 if text is None else len(text.encode()) for text in texts], np.int64)
    return column.read(cells.reshape(-1, column.room), lengths)


GOLDEN = [
    ("decimal(10,2)", "-1234.50", Decimal("-1234.50")),
    ("decimal(10,2)", ".01", Decimal("0.01")),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("money(10,2)", " 7.00 ", Decimal("7.00")),
    ("decimal(32,0)", "-" + "9" * 32, Decimal("-" + "9" * 32)),
    ("decimal(16)", "0.000123", "0.000123"),
    ("decimal(16)", "1.50E+3", "1500"),
    ("decimal(16)", "-0", "0"),
    ("decimal(16)", "1e-130", "0." + "0" * 129 + "1"),
    ("datetime hour to minute", "07:05", "07:05"),
    ("datetime year to month", "2024-03", "2024-03"),
    ("datetime fraction to fraction(4)", ".1250", ".1250"),
    ("interval year to month", "-3-07", -43),
    ("interval month(3) to month", "   7", 7),
    (
        "interval day to second",
        "12 03:04:05",
        datetime.timedelta(days=12, hours=3, minutes=4, seconds=5),
    ),
    (
        "interval day(9) to fraction(5)",
        "-106751991 04:00:54.77580",
        -datetime.timedelta(days=106_751_991, hours=4, seconds=54, microseconds=775_800),
    ),
    ("interval second(9) to fraction(2)", "-0.25", -datetime.timedelta(microseconds=250_000)),
]


@pytest.mark.parametrize(("type_text", "text", "value"), GOLDEN)
def test_a_text_is_the_value_that_it_stands_for(type_text: str, text: str, value: object) -> None:
    assert read(type_text, None, text, None).to_pylist() == [None, value, None]


def test_an_interval_as_text_has_no_blanks_and_no_zeros_in_front() -> None:
    found = read("interval day(3) to second", " 012 03:04:05", "-000 00:00:01", None, rules=AS_TEXT)
    assert found.to_pylist() == ["12 03:04:05", "-0 00:00:01", None]


def test_a_floating_decimal_is_a_double_if_asked() -> None:
    assert read("decimal(16)", "1.5E-3", rules=AS_TEXT).to_pylist() == [0.0015]


REFUSED = [
    ("decimal(10,2)", "1.234", "a valid decimal128"),
    ("decimal(5,2)", "1234.00", "a valid decimal128"),
    ("decimal(10,2)", "$7.00", "a valid decimal128"),
    ("decimal(10,2)", "7,00", "a valid decimal128"),
    ("decimal(16)", "abc", "as a number"),
    ("decimal(16)", "NaN", "as a number"),
    ("datetime hour to minute", "7:05", "a valid DATETIME"),
    ("datetime hour to minute", "07:05:00", "a valid DATETIME"),
    ("interval day to second", "12 3:04:05", "a valid INTERVAL"),
    ("interval day to second", "12 24:00:00", "HOUR outside 0 to 23"),
    ("interval year to month", "1-12", "MONTH outside 0 to 11"),
    ("interval year(9) to year", "178956971", "more months than an INT holds"),
    ("interval day(9) to second", "106751992 00:00:00", "106,751,991 days"),
    ("interval day(9) to second", "106751991 04:00:55", "106,751,991 days"),
    ("interval second(9) to fraction(2)", "5.250", "a valid INTERVAL"),
    ("interval day to second", "12 03:04:0é", "a valid INTERVAL"),
]


@pytest.mark.parametrize(("type_text", "text", "why"), REFUSED)
def test_a_text_that_is_none_of_its_type_is_refused_with_its_row(
    type_text: str, text: str, why: str
) -> None:
    with pytest.raises(BadValue, match=why) as refused:
        read(type_text, None, text)
    assert refused.value.row == 1


def test_a_char_whose_blanks_a_driver_has_cut_has_them_again() -> None:
    column = bound_column(Column("v", "char(4)"), "t", DecodeRules(keep_blanks=True))
    cells = np.frombuffer(b"ab\0\xff\xffabcd\0\0\xff\xff\xff\xff", np.uint8).reshape(-1, 5)
    assert column.read(cells, np.array([2, 4, 0])).to_pylist() == ["ab  ", "abcd", "    "]


def moments(*parts: tuple[int, ...]) -> pa.Array:
    column = bound_column(Column("v", "datetime year to fraction(5)"), "t", DecodeRules())
    layout = np.dtype("i2,u2,u2,u2,u2,u2,u4")
    cells = np.array([tuple(each) for each in parts], layout).view(np.uint8).reshape(-1, 16)
    return column.read(cells, np.full(len(parts), 16))


def test_a_moment_is_the_microsecond_that_it_names() -> None:
    first, last = (1, 1, 1, 0, 0, 0, 0), (9999, 12, 31, 23, 59, 59, 999_990_000)
    leap = (2024, 2, 29, 7, 5, 6, 123_450_000)
    assert moments(first, leap, last).to_pylist() == [
        datetime.datetime(1, 1, 1),
        datetime.datetime(2024, 2, 29, 7, 5, 6, 123_450),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_990),
    ]


NO_MOMENTS = [
    (0, 1, 1, 0, 0, 0, 0),
    (10_000, 1, 1, 0, 0, 0, 0),
    (2023, 2, 29, 0, 0, 0, 0),
    (2024, 13, 1, 0, 0, 0, 0),
    (2024, 0, 1, 0, 0, 0, 0),
    (2024, 4, 31, 0, 0, 0, 0),
    (2024, 4, 0, 0, 0, 0, 0),
    (2024, 4, 1, 24, 0, 0, 0),
    (2024, 4, 1, 0, 60, 0, 0),
    (2024, 4, 1, 0, 0, 60, 0),
    (2024, 4, 1, 0, 0, 0, 1),
]


@pytest.mark.parametrize("parts", NO_MOMENTS)
def test_a_moment_that_no_calendar_has_is_refused(parts: tuple[int, ...]) -> None:
    with pytest.raises(BadValue):
        moments((2024, 1, 1, 0, 0, 0, 0), parts)


def test_an_integer_beyond_its_type_is_refused_and_so_is_the_one_that_means_null() -> None:
    column = bound_column(Column("v", "smallint"), "t", DecodeRules())
    for number in (32_768, -32_768):
        cells = np.array([1, number], np.int64).view(np.uint8).reshape(-1, 8)
        with pytest.raises(BadValue, match="out of range for its type"):
            column.read(cells, np.array([8, 8]))
