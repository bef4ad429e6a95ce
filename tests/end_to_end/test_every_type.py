"""Every type of the manual's table as a column, from the emulator's log to values that Spark collects.

A row with usual values, one with the lowest, one with the highest, and one that is NULL wherever a
column can be.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from harness.servers.stores import listening_stores, source_options
from harness.spark.collected import Collected
from manual.type_table import TYPE_FAMILIES

pytestmark = pytest.mark.spark

INT16, INT32, INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1
LARGEST_REAL, LARGEST_DOUBLE = 3.4028234663852886e38, 1.7976931348623157e308
WIDE = Decimal("99999999999999999.999999999999999")
# More than this many days do not fit into Spark's INTERVAL DAY TO SECOND.
LONGEST = timedelta(days=106_751_991, hours=4, seconds=54, microseconds=775_800)
HANDLE = bytes(4) + bytes(range(72))

# Usual, lowest, highest; a pair is what is written and what is collected, where these differ.
USUAL, LOWEST, HIGHEST = range(3)
VALUES: dict[str, tuple[Any, Any, Any]] = {
    "smallint": (12, -INT16, INT16),
    "integer": (-7, -INT32, INT32),
    "serial": (1, 2, INT32),
    "bigint": (10**10, -INT64, INT64),
    "bigserial": (1, 2, INT64),
    "int8": (1234567890123, -INT64, INT64),
    "serial8": (1, 2, INT64),
    "smallfloat": (-1.5, -LARGEST_REAL, LARGEST_REAL),
    "float": (3.25, -LARGEST_DOUBLE, LARGEST_DOUBLE),
    "decimal(16,2)": (Decimal("12.34"), -Decimal(10**16 - 1) / 100, Decimal(10**16 - 1) / 100),
    "decimal(5,5)": (Decimal("0.00010"), Decimal("-0.99999"), Decimal("0.99999")),
    "decimal(32,0)": (Decimal(2**64), Decimal("-" + "9" * 32), Decimal("9" * 32)),
    "decimal(32,15)": (Decimal("-1.000000000000001"), WIDE.copy_negate(), WIDE),
    "money(16,2)": (Decimal("99.95"), -Decimal(10**16 - 1) / 100, Decimal(10**16 - 1) / 100),
    "decimal(16)": (
        (Decimal("0.000123"), "0.000123"),
        (Decimal("-1E+124"), "-1" + "0" * 124),
        (Decimal("1E-130"), "0." + "0" * 129 + "1"),
    ),
    "decimal(32)": (
        (Decimal("-1234.5"), "-1234.5"),
        (Decimal("-" + "9" * 32), "-" + "9" * 32),
        (Decimal("9" * 32), "9" * 32),
    ),
    "boolean": (True, False, True),
    "date": (date(2024, 3, 15), date.min, date.max),
    "datetime year to day": (date(1899, 12, 30), date.min, date.max),
    "datetime year to hour": (
        datetime(2024, 3, 15, 7),
        datetime.min,
        datetime(9999, 12, 31, 23),
    ),
    "datetime year to minute": (
        datetime(2024, 3, 15, 7, 5),
        datetime.min,
        datetime(9999, 12, 31, 23, 59),
    ),
    "datetime year to second": (
        datetime(2024, 3, 15, 7, 5, 6),
        datetime.min,
        datetime(9999, 12, 31, 23, 59, 59),
    ),
    "datetime year to fraction(3)": (
        datetime(2024, 3, 15, 7, 5, 6, 125_000),
        datetime.min,
        datetime(9999, 12, 31, 23, 59, 59, 999_000),
    ),
    "datetime year to fraction(5)": (
        datetime(1969, 12, 31, 23, 59, 59, 999_990),
        datetime.min,
        datetime(9999, 12, 31, 23, 59, 59, 999_990),
    ),
    "datetime year to month": ("2024-03", "0001-01", "9999-12"),
    "datetime month to day": ("02-29", "01-01", "12-31"),
    "datetime hour to minute": ("07:05", "00:00", "23:59"),
    "datetime second to fraction(1)": ("05.7", "00.0", "59.9"),
    "datetime fraction to fraction(4)": (".1250", ".0000", ".9999"),
    "interval year to month": (("3-07", 43), ("-9999-11", -119_999), ("9999-11", 119_999)),
    "interval year(9) to year": (
        ("5", 60),
        ("-178956970", -178_956_970 * 12),
        ("178956970", 178_956_970 * 12),
    ),
    "interval month(3) to month": (("7", 7), ("-999", -999), ("999", 999)),
    "interval day to second": (
        ("12 03:04:05", timedelta(days=12, hours=3, minutes=4, seconds=5)),
        ("-99 23:59:59", timedelta(seconds=1) - timedelta(days=100)),
        ("99 23:59:59", timedelta(days=100) - timedelta(seconds=1)),
    ),
    "interval day(9) to fraction(5)": (
        ("0 00:00:00.00001", timedelta(microseconds=10)),
        ("-106751991 04:00:54.77580", -LONGEST),
        ("106751991 04:00:54.77580", LONGEST),
    ),
    "interval hour(9) to minute": (
        ("7:05", timedelta(hours=7, minutes=5)),
        ("-999999999:59", -timedelta(hours=999_999_999, minutes=59)),
        ("999999999:59", timedelta(hours=999_999_999, minutes=59)),
    ),
    "interval second(9) to fraction(2)": (
        ("5.25", timedelta(seconds=5.25)),
        ("-999999999.99", -timedelta(seconds=999_999_999, milliseconds=990)),
        ("999999999.99", timedelta(seconds=999_999_999, milliseconds=990)),
    ),
    "char(12)": (("ab  ", "ab"), "", "\U0010ffff" * 3),
    "nchar(40)": ("ñü 中", "", "ñ" * 20),
    "varchar(40,0)": ("a b  ", "", "é" * 20),
    "nvarchar(255,10)": ("größe", "", "x" * 255),
    "lvarchar(32739)": ("long text", "", "é" * 16_369 + "x"),
    "blob": (HANDLE, bytes(75) + b"\1", bytes(4) + b"\xff" * 72),
    "clob": (HANDLE, bytes(75) + b"\1", bytes(4) + b"\xff" * 72),
}


def name_of(declaration: str) -> str:
    return "".join(mark if mark.isalnum() else "_" for mark in declaration)


def pair(value: Any) -> tuple[Any, Any]:
    return value if isinstance(value, tuple) else (value, value)


def row(which: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a row as it is written and as it must be collected."""
    pairs = {name_of(text): pair(values[which]) for text, values in VALUES.items()}
    return {name: both[0] for name, both in pairs.items()}, {n: both[1] for n, both in pairs.items()}


def null_row() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a row of NULLs; serials, which cannot be NULL, are 3."""
    written = {name_of(text): 3 for text in VALUES if "serial" in text}
    return written, {name_of(text): written.get(name_of(text)) for text in VALUES}


def test_there_are_values_for_every_type_of_the_table() -> None:
    assert list(VALUES) == [text for family in TYPE_FAMILIES for text in family.declarations]


def test_every_type_arrives_with_its_exact_values(collect: Callable[..., Collected]) -> None:
    columns = ", ".join(f"{name_of(text)} {text}" for text in VALUES)
    rows = [row(USUAL), row(LOWEST), row(HIGHEST), null_row()]
    with listening_stores() as (server, listening):
        server.create_table("stores:informix.every_type", columns)
        stream = collect(source_options(listening.port, table="informix.every_type")).start()
        stream.wait_for_start()
        with server.transaction(user_id=1001) as transaction:
            for written, _ in rows:
                transaction.insert("stores:informix.every_type", written)
        stream.wait_until(lambda: len(stream.rows) == len(rows))

    for collected, (_, expected) in zip(stream.rows, rows, strict=True):
        found = {name: collected[name] for name in expected}
        assert found == expected
        assert {name: type(value) for name, value in found.items() if name not in ("blob", "clob")} == {
            name: type(value) for name, value in expected.items() if name not in ("blob", "clob")
        }
