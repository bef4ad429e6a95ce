"""Every type with its boundary values, each written as Informix prints it.

Rule: a row of the table is a type and its values, NULL among them where the type has one. A case that
rests on an assumption of docs/assumptions.md carries its number.
"""

from __future__ import annotations

from typing import NamedTuple


class TypeCase(NamedTuple):
    """A type, values of it, and the assumption that they rest on, if any."""

    type_text: str
    values: tuple[str | None, ...]
    assumption: int | None = None


_SERIALS = ("1", "2147483646")
_BIG_SERIALS = ("1", "9223372036854775806")
_INT64 = ("9223372036854775807", "-9223372036854775807", "0", "4294967296", "-4294967295", None)

TYPE_CASES = (
    TypeCase("smallint", ("32767", "-32767", "0", None)),
    TypeCase("integer", ("2147483647", "-2147483647", "0", None)),
    TypeCase("serial", _SERIALS),
    TypeCase("bigint", _INT64),
    TypeCase("bigserial", _BIG_SERIALS),
    TypeCase("int8", _INT64),
    TypeCase("serial8", _BIG_SERIALS),
    # values that a float has exactly, so that printing them cannot round
    TypeCase("smallfloat", ("3.25", "-1.5", "0.0", "1048576.0", None)),
    TypeCase("float", ("3.25", "-1.5", "0.0", "1e+300", "-1e-300", None)),
    TypeCase(
        "decimal(16,2)", ("99999999999999.99", "-99999999999999.99", "0.00", "-0.01", "1.50", None)
    ),
    TypeCase("decimal(5,5)", ("0.99999", "-0.99999", "0.00001", "0.10000", None)),
    TypeCase("decimal(5,1)", ("9999.9", "-9999.9", "0.1", "-10.0", None)),
    TypeCase("decimal(32,0)", ("9" * 32, "-" + "9" * 32, "1" + "0" * 31, "0", None)),
    TypeCase("decimal(32,15)", ("1.000000000000001", "-" + "9" * 17 + "." + "9" * 15, None)),
    TypeCase("money(16,2)", ("99.95", "-99.95", "0.00", None)),
    TypeCase("decimal(16)", ("0.000123", "-1234567890.123456", "0", "1000000", None)),
    TypeCase("decimal(32)", ("1." + "0" * 30 + "1", "-" + "9" * 32, None)),
    TypeCase("boolean", ("t", "f", None)),
    TypeCase("date", ("2024-02-29", "0001-01-01", "9999-12-31", "1899-12-31", "1969-12-31", None)),
    TypeCase("datetime year to day", ("2024-03-15", "0001-01-01", "9999-12-31", None)),
    TypeCase("datetime year to hour", ("2024-03-15 07", "0001-01-01 00", "9999-12-31 23", None)),
    TypeCase("datetime year to minute", ("2024-03-15 07:05", "0001-01-01 00:00", None)),
    TypeCase("datetime year to second", ("2024-03-15 07:05:06", "9999-12-31 23:59:59", None)),
    TypeCase(
        "datetime year to fraction(3)", ("2024-03-15 07:05:06.125", "0001-01-01 00:00:00.000", None)
    ),
    TypeCase(
        "datetime year to fraction(5)", ("1969-12-31 23:59:59.99999", "9999-12-31 23:59:59.10000", None)
    ),
    TypeCase("datetime year to month", ("2024-03", "0001-01", "9999-12", None)),
    TypeCase("datetime month to day", ("02-29", "01-01", "12-31", None)),
    TypeCase("datetime hour to minute", ("07:05", "00:00", "23:59", None)),
    TypeCase("datetime second to fraction(1)", ("05.7", "00.0", "59.9", None)),
    TypeCase("datetime fraction to fraction(4)", (".1250", ".0000", ".9999", None), assumption=18),
    TypeCase("interval year to month", ("3-07", "-9999-11", "9999-11", "0-00", None)),
    TypeCase("interval year(9) to year", ("5", "-178956970", "0", None)),
    TypeCase("interval month(3) to month", ("7", "-999", "999", None)),
    TypeCase("interval day to second", ("12 03:04:05", "-99 23:59:59", "0 00:00:00", None)),
    TypeCase("interval day(9) to fraction(5)", ("0 00:00:00.00001", "-106751991 04:00:54.77580", None)),
    TypeCase("interval hour(9) to minute", ("7:05", "-999999999:59", None)),
    TypeCase("interval second(9) to fraction(2)", ("5.25", "-999999999.99", None)),
    TypeCase("char(12)", ("ab  ", "", "zwölf", "O'Hara", None)),
    TypeCase("nchar(40)", ("ñü 中", "", "ñ" * 20, None)),
    TypeCase("varchar(40,0)", ("a b  ", "", "é" * 20, "x", None)),
    TypeCase("nvarchar(255,10)", ("größe", "", "x" * 255, None)),
    TypeCase("lvarchar(32739)", ("long text", "", "é" * 500, "x" * 30_000, None)),
    TypeCase("blob", (None,), assumption=18),
    TypeCase("clob", (None,), assumption=18),
)
