from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pytest

from informix_emulator.column_types.column_list import parse_column_list
from informix_emulator.column_types.decimals import fixed_point
from informix_emulator.tables.tables import Capture, EmulatedTable, make_table

RECORDED = json.loads((Path(__file__).parent / "recorded_rows.json").read_text())
ROWS = [(table, row) for table in RECORDED["tables"] for row in table["rows"]]


def table(columns: str, locale: str = "en_US.utf8") -> EmulatedTable:
    return make_table("stores:informix.t", columns, locale, 100, "table")


def encoded(column_type: str, value: object, locale: str = "en_US.utf8") -> str:
    return table(f"a {column_type}", locale).encode({"a": value})[1].hex()


@pytest.mark.parametrize(("recorded", "row"), ROWS, ids=lambda item: item.get("name", ""))
def test_rows_recorded_from_a_server_are_reproduced(recorded: dict, row: dict) -> None:
    names = [column.name for column in parse_column_list(recorded["schema"])]
    sizes, payload = table(recorded["schema"]).encode(dict(zip(names, row["expect"], strict=True)))
    assert payload.hex() == row["hex"]
    assert sizes == b"".join(size.to_bytes(4) for size in row["sizes"])


@pytest.mark.parametrize("recorded", RECORDED["tables"], ids=["all types", "four columns"])
def test_the_schema_text_is_printed_as_a_server_prints_it(recorded: dict) -> None:
    target = table(recorded["schema"])
    capture = Capture(target, [column.name for column in target.columns], 1)
    assert capture.schema_text == recorded["schema"].encode() + b"\0"
    if "fixed" in recorded:
        assert capture.counts == (recorded["fixed"], recorded["nfixed"], recorded["nvar"])


@pytest.mark.parametrize("number", RECORDED["decimals"])
def test_known_decimals_are_reproduced(number: str) -> None:
    expected = RECORDED["decimals"][number]
    places = len(number.partition(".")[2])
    _, encode = fixed_point(20, max(places, 2))
    assert encode(number).hex().startswith(expected.rstrip("0"))
    assert encode(Decimal(number)) == encode(number)


@pytest.mark.parametrize(
    ("column_type", "value", "expected"),
    [
        ("datetime year to day", "2024-03-15", "c71418030f"),
        ("datetime year to day", datetime.date(2024, 3, 15), "c71418030f"),
        ("datetime year to fraction(3)", "2024-03-15 10:20:30.125", "c71418030f0a141e0c32"),
        (
            "datetime year to fraction(3)",
            datetime.datetime(2024, 3, 15, 10, 20, 30, 125000),
            "c71418030f0a141e0c32",
        ),
        ("datetime year to day", "0001-01-01", "c601010100"),
        ("datetime hour to minute", "07:05", "c30705"),
        ("datetime hour to minute", "00:00", "800000"),
        ("interval year to month", "3-07", "c6030700"),
        ("interval year to month", "-3-07", "39605d00"),
        ("interval day(3) to second", "12 03:04:05", "c40c03040500"),
        ("interval second(2) to fraction(1)", "0.7", "c04600"),
        ("decimal(4,2)", "12.34", "c10c22"),
        ("decimal(4,2)", "-12.34", "3e5742"),
        ("int8", -1, "ffff0000000100000000"),
        ("boolean", True, "0001"),
        ("blob", b"\1" * 76, "01" * 76),
        ("lvarchar(9)", "", "000100"),
        ("varchar(9)", "", "00"),
        ("smallfloat", 0.5, "3f000000"),
        ("date", "1899-12-31", "00000000"),
        ("date", datetime.date(1900, 1, 1), "00000001"),
    ],
)
def test_single_values_are_encoded_as_the_manual_says(
    column_type: str, value: object, expected: str
) -> None:
    assert encoded(column_type, value) == expected


def test_character_data_is_in_the_locale_of_the_database() -> None:
    assert encoded("char(2)", "ñ", "es_ES.8859-1") == "f120"
    assert encoded("char(2)", "ñ", "en_US.utf8") == "c3b1"


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        ("smallint", 1 << 15),
        ("smallint", -(1 << 15)),
        ("integer", "1"),
        ("int8", 1 << 63),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "1.234"),
        ("decimal(4)", "12345"),
        ("decimal(4,2)", "a"),
        ("decimal(4,2)", Decimal("NaN")),
        ("float", float("nan")),
        ("char(2)", "abc"),
        ("varchar(2)", "ñü"),
        ("lvarchar(2)", 5),
        ("boolean", 1),
        ("blob", b"short"),
        ("date", "2024-02-30"),
        ("datetime year to day", "2024-02-30"),
        ("datetime year to day", datetime.datetime(2024, 2, 3, 4)),
        ("datetime hour to minute", "24:00"),
        ("datetime year to fraction(2)", "2024-03-15 10:20:30.125"),
        ("interval day to hour", "1 24"),
        ("interval day to hour", "123 01"),
        ("serial", None),
        ("integer not null", None),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_name_of_its_column(
    column_type: str, value: object
) -> None:
    with pytest.raises(ValueError, match=r"column a of stores:informix\.t"):
        encoded(column_type, value)


def test_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no columns"):
        table("a integer").encode({"b": 1})


def test_commas_quotes_and_constraints_in_a_column_list_are_understood() -> None:
    columns = parse_column_list(
        "a decimal(10,2) not null, \"B, c\" VARCHAR(20,4) default 'x,y', "
        "d datetime hour to fraction(2), e double precision primary key, primary key (a)"
    )
    assert [(c.name, c.type.name, c.not_null) for c in columns] == [
        ("a", "decimal", True),
        ("B, c", "varchar", False),
        ("d", "datetime", False),
        ("e", "double precision", True),
    ]


@pytest.mark.parametrize(
    "columns",
    ["", "a", "a integer, a integer", "a point", "a interval month to day", "a varchar(300)"],
)
def test_a_column_list_that_means_nothing_is_refused(columns: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        table(columns)
