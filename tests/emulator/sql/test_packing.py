"""Whole columns are packed to the bytes that their values are encoded to, one by one."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_emulator.sql.language.families import named_type
from informix_emulator.sql.language.packing import packer
from informix_emulator.sql.language.values import Stored, load, store
from informix_emulator.sql_errors import SqlError

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))
CASES: list[tuple[str, st.SearchStrategy[object]]] = [
    ("smallint", st.integers(-32767, 32767)),
    ("integer", st.integers(1 - 2**31, 2**31 - 1)),
    ("bigint", st.integers(1 - 2**63, 2**63 - 1)),
    ("int8", st.integers(1 - 2**63, 2**63 - 1)),
    ("serial", st.integers(1, 2**31 - 1)),
    ("float", st.floats(allow_nan=False, allow_infinity=False)),
    ("smallfloat", st.floats(allow_nan=False, allow_infinity=False, width=32)),
    ("decimal(10,2)", st.decimals(-99999999, 99999999, places=2)),
    ("decimal(9,3)", st.decimals(-999999, 999999, places=3)),
    ("decimal(32,32)", st.decimals(Decimal("-0.9"), Decimal("0.9"), places=30)),
    ("decimal(16)", st.decimals(-(10**12), 10**12, places=3)),
    ("money(16,2)", st.decimals(-(10**9), 10**9, places=2)),
    ("date", DATES),
    ("datetime year to second", MOMENTS),
    ("datetime year to day", MOMENTS),
    ("datetime year to fraction(3)", MOMENTS),
    ("datetime year to fraction(5)", MOMENTS),
    ("datetime hour to minute", MOMENTS),
    ("interval day(3) to second", st.integers(-999, 999).map(lambda n: f"{n} 01:02:03")),
    ("interval year to month", st.integers(-99, 99).map(lambda n: f"{n}-07")),
    ("boolean", st.booleans()),
    ("char(40)", TEXTS),
    ("nchar(40)", TEXTS),
    ("varchar(40)", TEXTS),
    ("nvarchar(40)", TEXTS),
    ("lvarchar(60)", TEXTS),
]


@pytest.mark.parametrize(("spelling", "values"), CASES, ids=[spelling for spelling, _ in CASES])
@given(st.data())
def test_a_column_is_packed_to_what_its_values_are_encoded_to(
    spelling: str, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    kind = named_type(spelling)
    column: list[Stored] = [
        store(kind, value) for value in data.draw(st.lists(st.none() | values, max_size=6))
    ]
    expected = [None if v is None else kind.encode(load(kind, v)) for v in column]
    assert list(packer(kind)(column)) == expected


def test_a_text_with_a_nul_is_packed_too() -> None:
    kind = named_type("varchar(10)")
    assert list(packer(kind)(["a\0b", "c"])) == [b"\3a\0b", b"\1c"]


def test_a_date_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(SqlError) as refused:
        packer(named_type("date"))([3_000_000])
    assert refused.value.native == -1210


def test_an_empty_column_is_packed() -> None:
    for spelling, _ in CASES:
        assert list(packer(named_type(spelling))([])) == []
