"""What a live server would be sent, word for word."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from informix_cdc.proving import sql_text
from informix_cdc.proving.sql_text import ContractTable

TABLE = ContractTable("live", "informix", "t7", (("id", "integer"), ("v", "date"), ("w", "char(9)")))

LITERALS = [
    ("integer", "-7", "-7"),
    ("decimal(12,3)", "12345.678", "12345.678"),
    ("float", "1.5e+300", "1.5e+300"),
    ("date", "2024-03-05", "MDY(3, 5, 2024)"),
    ("boolean", "t", "'t'"),
    ("char(9)", "O'Hara", "'O''Hara'"),
    ("varchar(9,0)", "", "''"),
    ("datetime year to fraction(3)", "2024-03-15 07:05:06.125",
     "DATETIME (2024-03-15 07:05:06.125) YEAR TO FRACTION(3)"),
    ("interval day(3) to second", "-12 03:04:05", "INTERVAL (-12 03:04:05) DAY(3) TO SECOND"),
    ("lvarchar(20)", None, "NULL"),
]  # fmt: skip

PRINTED = [
    ("integer", 7, "7"),
    ("decimal(12,3)", Decimal("0.100"), "0.100"),
    ("boolean", True, "t"),
    ("boolean", False, "f"),
    ("date", date(1, 2, 3), "0001-02-03"),
    ("datetime year to hour", datetime(2024, 3, 15, 7), "2024-03-15 07"),
    ("datetime year to second", datetime(1, 2, 3, 4, 5, 6), "0001-02-03 04:05:06"),
    (
        "datetime year to fraction(3)",
        datetime(2024, 3, 15, 7, 5, 6, 120_000),
        "2024-03-15 07:05:06.120",
    ),
    ("interval year to month", "-3-07", "-3-07"),
    ("varchar(9,0)", None, None),
]


@pytest.mark.parametrize(("type_text", "text", "expected"), LITERALS)
def test_a_value_is_a_literal_of_its_type(type_text: str, text: str | None, expected: str) -> None:
    assert sql_text.literal(type_text, text) == expected


@pytest.mark.parametrize(("type_text", "value", "expected"), PRINTED)
def test_a_decoded_value_is_rendered_as_informix_prints_it(
    type_text: str, value: object, expected: str | None
) -> None:
    assert sql_text.rendered(type_text, value) == expected


def test_each_change_is_one_statement() -> None:
    assert sql_text.create_table(TABLE) == "CREATE TABLE t7 (id integer, v date, w char(9))"
    row = {"id": "1", "w": None}
    assert sql_text.insert(TABLE, row) == "INSERT INTO t7 (id, w) VALUES (1, NULL)"
    assert sql_text.update(TABLE, 4, {"w": "x"}) == "UPDATE t7 t SET w = 'x' WHERE t.id = 4"
    assert sql_text.delete(TABLE, 4) == "DELETE FROM t7 t WHERE t.id = 4"
    assert sql_text.select(TABLE) == (
        "SELECT t.id, TO_CHAR(t.v, '%Y-%m-%d'), t.w FROM t7 t ORDER BY t.id"
    )


@pytest.mark.parametrize(
    ("type_text", "one", "other", "are_equal"),
    [
        ("decimal(5,2)", "1.50", "1.5", True),
        ("decimal(5,2)", "1.51", "1.5", False),
        ("char(4)", "ab  ", "ab", True),
        ("varchar(4,0)", "ab  ", "ab", False),
        ("interval day to second", " 3 04:05:06", "3 04:05:06", True),
        ("char(4)", "", None, False),
    ],
)
def test_only_what_means_the_same_compares_equal(
    type_text: str, one: str | None, other: str | None, are_equal: bool
) -> None:
    pair = [sql_text.comparable(type_text, text) for text in (one, other)]
    assert (pair[0] == pair[1]) is are_equal
