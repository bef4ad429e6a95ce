"""Values that clients bind: what IBM's driver was seen to send, and what becomes of them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from emulator.sqli.spoken import packed
from emulator.sqli.told import types
from informix_emulator.sql_errors import SqlError
from informix_emulator.sqli.binds import read_binds, value_of
from informix_emulator.sqli.packed import datetime_of, in_fields, interval_of, unpack
from informix_emulator.sqli.reading import Malformed, RequestReader, take_from

TYPED = datetime.datetime(2024, 2, 29, 13, 14, 15, 123450)

# what IBM's JDBC drivers 4.50.11 and 15.0.1.0 send, alike
GOLDEN = [
    ("an int", "integer", "0002 0000 0a00 00000005", 5),
    ("a String for an LVARCHAR", "lvarchar(100)", "002b 0000 0000 0000 0000 00000003 61626300", "abc"),
    ("a BigDecimal", "decimal(12,2)", "0005 0000 0002 0003 3e574200", Decimal("-12.34")),
    ("a Date", "date", "0007 0000 0000 0000b126", datetime.date(2024, 2, 29)),
    ("a Timestamp", "datetime year to fraction(5)",
     "000a 0000 130f 000b c71418021d0d0e0f0c223200", TYPED),
    ("a long", "bigint", "0034 0000 1300 0000010000000000", 2**40),
    ("a double", "float", "0003 0000 0000 3ff8000000000000", 1.5),
    ("a long for an INT8", "int8", "0011 0000 1300 ffff 00000005 00000002", -(2**33 + 5)),
    ("a boolean", "boolean",
     "002d 0008 696e666f726d6978 0007 626f6f6c65616e00 0000 0001 00000001 0100", True),
    ("a short", "smallint", "0001 0000 0500 fff9", -7),
    ("a float", "smallfloat", "0004 0000 0000 40100000", 2.25),
    ("a NULL", "integer", "0002 ffff 0000", None),
    ("a String for an INTERVAL", "interval day to second",
     "0000 0000 0000 000a 322030333a30343a3035", "2 03:04:05"),
    ("a String for a CHAR", "char(10)", "0000 0000 0000 0001 7800", "x"),
    ("a BigDecimal for a MONEY", "money(16,2)", "0008 0000 0000 0003 c1630a00", Decimal("99.10")),
]  # fmt: skip


def value(kind: str, sent: str) -> object:
    reader = RequestReader(take_from(packed("0001", sent)))
    (bound,) = read_binds(reader)
    assert len(reader.seen) == 2 + len(packed(sent)), "something is left"
    (parameter,) = types(f"x {kind}")
    return value_of(bound, parameter, "iso8859-1")


@pytest.mark.parametrize(
    ("kind", "sent", "expected"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN]
)
def test_a_bound_value_becomes_one_of_its_parameters_type(
    kind: str, sent: str, expected: object
) -> None:
    found = value(kind, sent)
    assert found == expected
    assert type(found) is type(expected)
    (parameter,) = types(f"x {kind}")
    if found is not None:
        parameter.encode(found)  # the engine can write it


FITTED = [
    ("a text into an INTEGER", "integer", "0000 0000 0000 0003 20343200", 42),
    ("a DECIMAL into a BIGINT", "bigint", "0005 0000 0000 0002 c12a", 42),
    ("an INTEGER into a DECIMAL", "decimal(8,2)", "0002 0000 0a00 0000002a", Decimal(42)),
    ("an INTEGER into a FLOAT", "float", "0002 0000 0a00 0000002a", 42.0),
    ("an INTEGER into a VARCHAR", "varchar(9)", "0002 0000 0a00 0000002a", "42"),
    ("a text into a DATE, which DBDATE reads", "date", "0000 0000 0000 000a 323032342d30322d3239",
     "2024-02-29"),
    ("a DATETIME into a DATE", "date", "000a 0000 130f 000b c71418021d0d0e0f0c223200",
     datetime.date(2024, 2, 29)),
    ("a text into a BOOLEAN", "boolean", "0000 0000 0000 0001 7400", True),
    ("a boolean into a CHAR", "char(1)",
     "002d 0008 696e666f726d6978 0007 626f6f6c65616e00 0000 0001 00000001 0000", "f"),
    ("the NULL pattern of an INTEGER", "integer", "0002 0000 0a00 80000000", None),
    ("a Timestamp into YEAR TO MONTH", "datetime year to month",
     "000a 0000 130f 000b c71418021d0d0e0f0c223200", "2024-02"),
    ("a Timestamp into HOUR TO FRACTION(2)", "datetime hour to fraction(2)",
     "000a 0000 130f 000b c71418021d0d0e0f0c223200", "13:14:15.12"),
    ("a Timestamp into YEAR TO FRACTION(3)", "datetime year to fraction(3)",
     "000a 0000 130f 000b c71418021d0d0e0f0c223200", TYPED.replace(microsecond=123000)),
    ("an INTERVAL of gbase8sdb", "interval day to second", "000e 0000 0d4f 0005 c402030405 00",
     "2 03:04:05"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "sent", "expected"), [g[1:] for g in FITTED], ids=[g[0] for g in FITTED]
)
def test_a_value_of_another_type_is_converted(kind: str, sent: str, expected: object) -> None:
    found = value(kind, sent)
    assert found == expected
    assert type(found) is type(expected)
    if kind.startswith("datetime"):
        types(f"x {kind}")[0].encode(found)


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("integer", "0000 0000 0000 0003 61626300"),
        ("decimal(5,2)", "0000 0000 0000 0003 61626300"),
        ("boolean", "002d 0000 0000 0000 0001 00000000"),
        ("decimal(5,2)", "0005 0000 0000 0002 c1ff"),
        ("datetime year to second", "000a 0000 0000 0002 c10c"),
        ("datetime year to second", "000a 0000 130f 0002 ff0c"),
    ],
)
def test_a_value_that_has_no_meaning_there_is_refused_with_1213(kind: str, sent: str) -> None:
    with pytest.raises(SqlError) as refused:
        value(kind, sent)
    assert refused.value.native == -1213


def test_a_type_that_nobody_binds_ends_the_conversation_with_its_bytes() -> None:
    with pytest.raises(Malformed, match=r"type 99 .* 0001006300000000"):
        read_binds(RequestReader(take_from(packed("0001 0063 0000 0000 01"))))


def test_a_lying_number_of_values_is_refused() -> None:
    with pytest.raises(Malformed, match="65535 values"):
        read_binds(RequestReader(take_from(packed("ffff"))))


@pytest.mark.parametrize(
    ("sent", "number"),
    [
        ("c3 01 17 2d 43", "12345.67"),
        ("3e 57 42", "-12.34"),
        ("80", "0"),
        ("c1 0a", "10"),
        ("00", None),
    ],
)
def test_a_packed_number_is_read(sent: str, number: str | None) -> None:
    assert unpack(packed(sent)) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("interval day to second", "-2 03:04:05"),
        ("interval year to month", "3-07"),
        ("interval hour to fraction(2)", "12:00:01.50"),
        ("interval minute to minute", "59"),
    ],
)
def test_an_interval_is_read_as_it_is_written(kind: str, written: str) -> None:
    (column,) = types(f"x {kind}")
    assert interval_of(column.encode(written), column.collength) == written


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("datetime year to day", datetime.datetime(2024, 2, 29)),
        ("datetime year to month", datetime.datetime(2024, 2, 1)),
        ("datetime year to fraction(3)", datetime.datetime(1, 1, 1, 0, 0, 0, 1000)),
        ("datetime hour to second", "00:04:05"),
        ("datetime month to day", "02-29"),
        ("datetime second to fraction(2)", "09.25"),
    ],
)
def test_a_datetime_is_read_as_it_is_written(kind: str, written: datetime.datetime | str) -> None:
    (column,) = types(f"x {kind}")
    value = written
    if isinstance(written, datetime.datetime):
        value = in_fields(written, column.collength)
    assert datetime_of(column.encode(value), column.collength) == written
