"""Golden vectors of values in a tuple: a sentence, the type, the value, the bytes."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from emulator.sqli.spoken import hexed
from emulator.sqli.told import columns, types
from informix_emulator.sql_errors import SqlError
from informix_emulator.sqli.dialect import MessageLayout
from informix_emulator.sqli.tuples import encode_row, encoder, place_bytes

NOW = datetime.datetime(2024, 2, 29, 13, 4, 5, 123450)
LOCATOR = bytes(range(72))

GOLDEN = [
    ("a CHAR is padded with blanks", "char(5)", "abc", "616263 2020"),
    ("a NULL CHAR begins with NUL", "char(5)", None, "00 20202020"),
    ("a SMALLINT has 2 bytes", "smallint", -7, "fff9"),
    ("a NULL SMALLINT is the lowest", "smallint", None, "8000"),
    ("an INTEGER has 4 bytes", "integer", 1, "00000001"),
    ("a NULL INTEGER is the lowest", "integer", None, "80000000"),
    ("a SERIAL is an INTEGER", "serial", 7, "00000007"),
    ("a FLOAT is IEEE", "float", 1.5, "3ff8000000000000"),
    ("a NULL FLOAT has all bits", "float", None, "ffffffffffffffff"),
    ("a SMALLFLOAT is IEEE", "smallfloat", 2.25, "40100000"),
    ("a DECIMAL is packed", "decimal(12,2)", Decimal("12345.67"), "c3 01 17 2d 43 00 00"),
    ("a negative DECIMAL is a complement", "decimal(12,2)", Decimal("-12.34"), "3e 57 42 00000000"),
    ("a DECIMAL without scale has one byte more", "decimal(16)", Decimal("3.14"), "c1030e" + "00" * 7),
    ("a NULL DECIMAL is zeros", "decimal(12,2)", None, "00" * 7),
    ("a MONEY is a DECIMAL", "money(16,2)", Decimal("99.10"), "c1 63 0a 000000000000"),
    ("a DATE counts days since 1899", "date", datetime.date(2024, 2, 29), "0000b126"),
    ("a NULL DATE is the lowest", "date", None, "80000000"),
    ("a DATETIME is a decimal of its digits", "datetime year to fraction(5)", NOW,
     "c7 14 18 02 1d 0d 04 05 0c 22 32"),
    ("a DATETIME YEAR TO MONTH keeps the exponent", "datetime year to month", "2024-02", "c7 14 18 02"),
    ("an INTERVAL is one too", "interval day to second", "2 03:04:05", "c4 02 03 04 05"),
    ("a VARCHAR has a length of one byte", "varchar(40)", "hello", "05 68656c6c6f"),
    ("an empty VARCHAR is not NULL", "varchar(40)", "", "00"),
    ("a NULL VARCHAR is one NUL", "varchar(40)", None, "01 00"),
    ("an NVARCHAR is a VARCHAR", "nvarchar(30)", "nv", "02 6e76"),
    ("an INT8 is sign, low and high word", "int8", -(2**33 + 5), "ffff 00000005 00000002"),
    ("a NULL INT8 is zeros", "int8", None, "00" * 10),
    ("a BIGINT has 8 bytes", "bigint", 2**40, "0000010000000000"),
    ("a NULL BIGINT is the lowest", "bigint", None, "8000000000000000"),
    ("an LVARCHAR has a flag and a length of 4 bytes", "lvarchar(200)", "long", "00 00000004 6c6f6e67"),
    ("an empty LVARCHAR is not NULL", "lvarchar(200)", "", "00 00000000"),
    ("a NULL LVARCHAR is a flag", "lvarchar(200)", None, "01 00000000"),
    ("a BOOLEAN has the head of an opaque type", "boolean", True, "00 00000001 01"),
    ("a false BOOLEAN", "boolean", False, "00 00000001 00"),
    ("a NULL BOOLEAN is a flag", "boolean", None, "01 00000000"),
    ("a BLOB is its locator", "blob", bytes(4) + LOCATOR, "00 00000048" + LOCATOR.hex()),
    ("a NULL CLOB is a flag", "clob", None, "01 00000000"),
    ("a TEXT is a descriptor", "text", "anything",
     "00000000 00000001 00000000 00000007 00000008" + "00" * 18 + "0000" + "00" * 16),
    ("a NULL BYTE is a flag", "byte", None, "00" * 12 + "ffffffff" + "00" * 22 + "0001" + "00" * 16),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "expected"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN]
)
def test_a_value_is_laid_out_as_clients_read_it(kind: str, value: object, expected: str) -> None:
    (column,) = types(f"x {kind}")
    assert encoder(column, MessageLayout())(value).hex() == hexed(expected)


GBASE = MessageLayout(bytes.fromhex("fffc7ffc3c84aa8710"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("varchar(40)", "hello", "0005 68656c6c6f"),
        ("nvarchar(40)", "", "0000"),
        ("varchar(40)", None, "0001 00"),
        ("integer", 1, "00000001"),
    ],
)
def test_with_gbase_a_varchar_has_a_length_of_two_bytes(
    kind: str, value: object, expected: str
) -> None:
    (column,) = types(f"x {kind}")
    assert encoder(column, GBASE)(value).hex() == hexed(expected)


def test_a_row_is_dense_in_the_order_of_its_columns() -> None:
    encoders = [
        encoder(kind, MessageLayout())
        for kind in types("a varchar(9), b smallint, c boolean, d integer")
    ]
    assert encode_row(encoders, ("x", 2, None, 3)).hex() == hexed("01 78 0002 01 00000000 00000003")


def test_a_value_of_another_type_is_an_error_of_the_statement() -> None:
    encoders = [encoder(kind, MessageLayout()) for kind in types("a smallint")]
    for wrong in (1 << 20, "x", Decimal(1)):
        with pytest.raises(SqlError) as refused:
            encode_row(encoders, (wrong,))
        assert refused.value.native == -1213


def test_text_goes_out_in_the_code_set_of_the_database() -> None:
    (column,) = types("x varchar(9)", "utf-8")
    assert encoder(column, MessageLayout())("é€").hex() == hexed("05 c3a9 e282ac")


def test_places_of_columns_count_what_each_may_fill() -> None:
    described = columns(
        "a integer, b varchar(40,5), c lvarchar(200), d boolean, e char(9), f text, g int8"
    )
    assert [place_bytes(column) for column in described] == [4, 41, 200, 1, 9, 56, 10]
