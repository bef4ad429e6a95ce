from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from harness import GOLDEN
from harness.capture.decoding import (
    EncodedRow,
    assert_bitmaps_only_where_needed,
    decode_hex,
    decode_rows,
)
from informix_capture_client import decode_payloads
from informix_capture_client.choices import DecodeRules
from informix_capture_client.values.column_list import parse_columns
from informix_capture_client.values.table_decoder import TableDecoder

RECORDED = json.loads((GOLDEN / "informix_rows.json").read_text())
ROWS = [(table, row) for table in RECORDED["tables"] for row in table["rows"]]

# How the recorded texts map to values: what a column becomes, by the name of its type.
AS_VALUE: dict[str, Callable[[Any], object]] = {
    "decimal(12,3)": Decimal,
    "decimal(10,2)": Decimal,
    "money(10,2)": Decimal,
    "date": datetime.date.fromisoformat,
    "datetime year to second": datetime.datetime.fromisoformat,
    "datetime year to fraction(3)": datetime.datetime.fromisoformat,
    "interval day(3) to second": lambda _: datetime.timedelta(days=12, hours=3, minutes=4, seconds=5),
    "interval year to month": lambda _: 3 * 12 + 7,
    "char(5)": str.rstrip,  # trailing blanks are cut
    "nchar(4)": str.rstrip,
}


def as_value(type_text: str, recorded: object) -> object:
    if recorded is None or type_text not in AS_VALUE:
        return recorded
    return AS_VALUE[type_text](recorded)


@pytest.mark.parametrize(("table", "row"), ROWS, ids=lambda item: item.get("name", ""))
def test_a_row_recorded_from_a_server_is_read(table: dict[str, Any], row: dict[str, Any]) -> None:
    batch = decode_payloads(table["schema"], [(row["sizes"], bytes.fromhex(row["hex"]))])
    columns = parse_columns(table["schema"])
    expected = [as_value(c.type_text, v) for c, v in zip(columns, row["expect"], strict=True)]
    assert list(batch.to_pylist()[0].values()) == expected
    assert batch.schema.names == [column.name for column in columns]
    assert_bitmaps_only_where_needed(batch)


@pytest.mark.parametrize("table", RECORDED["tables"][:1], ids=["all types"])
def test_the_sizes_announced_with_recorded_rows_are_ours(table: dict[str, Any]) -> None:
    decoder = TableDecoder(table["schema"])
    assert (decoder.fixed_bytes, decoder.variable_count) == (table["fixed"], table["nvar"])


def test_recorded_rows_of_one_table_are_read_together() -> None:
    table = RECORDED["tables"][0]
    rows = [(row["sizes"], bytes.fromhex(row["hex"])) for row in table["rows"]] * 100
    batch = decode_payloads(table["schema"], rows)
    single = [decode_payloads(table["schema"], [row]).to_pylist()[0] for row in rows[:2]]
    assert batch.to_pylist() == single * 100


def test_recorded_payloads_are_read_by_the_rules_given() -> None:
    rules = DecodeRules(codec="cp1252", intervals="string", floating_decimal="double")
    row = ([2], bytes.fromhex("c6030700" + "bf011700000000" + "0180"))
    batch = decode_payloads("ym interval year to month, f decimal(10), v varchar(9,0)", [row], rules)
    assert batch.to_pylist() == [{"ym": "3-07", "f": 0.000123, "v": "€"}]


def test_no_rows_are_a_batch_without_rows() -> None:
    for table in RECORDED["tables"]:
        assert decode_payloads(table["schema"], []).num_rows == 0


PACKED = [
    *RECORDED["decimals"].items(),
    ("12.34", "c10c22"),
    ("-12.34", "3e5742"),
    ("0.000123", "bf011700000000"),
]


@pytest.mark.parametrize(("value", "packed"), PACKED)
def test_a_known_decimal_is_read(value: str, packed: str) -> None:
    size = len(packed) // 2
    assert decode_hex(f"decimal({2 * size - 3})", packed) == value
    digits = 2 * (size - 1)
    if digits < 12:
        scale = digits // 4 * 2
        assert decode_hex(f"decimal({digits},{scale})", packed) == Decimal(value)


GOLDEN = [
    ("smallint 12", "smallint", "000c", 12),
    ("smallint NULL", "smallint", "8000", None),
    ("integer -1", "integer", "ffffffff", -1),
    ("integer NULL", "integer", "80000000", None),
    ("bigint NULL", "bigint", "8000000000000000", None),
    ("int8: sign, low word, high word", "int8", "0001 71fb04cb 0000011f", 1234567890123),
    ("int8 below zero", "int8", "ffff 00000001 00000000", -1),
    ("int8 NULL", "int8", "0000 00000000 00000000", None),
    ("int8 zero has a sign", "int8", "0001 00000000 00000000", 0),
    ("date 0 is 1899-12-31", "date", "00000000", datetime.date(1899, 12, 31)),
    ("date 1 is 1900-01-01", "date", "00000001", datetime.date(1900, 1, 1)),
    ("date NULL", "date", "80000000", None),
    ("float NULL is all ones", "float", "ffffffffffffffff", None),
    ("boolean true", "boolean", "0001", True),
    ("boolean false", "boolean", "0000", False),
    ("boolean NULL", "boolean", "0100", None),
    ("char blanks are cut", "char(5)", "6162202020", "ab"),
    ("char blanks inside and in front stay", "char(5)", "2061206220", " a b"),
    ("char of blanks is empty, not NULL", "char(3)", "202020", ""),
    ("char NULL", "char(5)", "0020202020", None),
    ("nchar counts bytes", "nchar(4)", "c3b1c3bc", "ñü"),
    ("varchar", "varchar(20,0)", "02 6869", "hi"),
    ("varchar keeps trailing blanks", "varchar(20,0)", "03 682020", "h  "),
    ("varchar empty is not NULL", "varchar(20,0)", "00", ""),
    ("varchar NULL is one NUL byte", "varchar(20,0)", "0100", None),
    ("varchar that only begins with a NUL byte", "varchar(20,0)", "02 0061", "\0a"),
    ("lvarchar", "lvarchar(200)", "000a 00 6c6f6e672074657874", "long text"),
    ("lvarchar empty is not NULL", "lvarchar(200)", "0001 00", ""),
    ("lvarchar NULL", "lvarchar(200)", "0001 01", None),
    ("decimal NULL", "decimal(10,2)", "000000000000", None),
    ("decimal zero", "decimal(10,2)", "800000000000", Decimal("0.00")),
    ("decimal with a 00 as first digit byte", "decimal(10,2)", "3e0001000000", Decimal("-99.99")),
    ("floating -1e124: byte 0 is 00, but not NULL", "decimal(2)", "006300", "-1" + "0" * 124),
    ("floating 1e-130, the smallest", "decimal(2)", "800100", "0." + "0" * 129 + "1"),
    ("datetime year to day", "datetime year to day", "c71418030f", datetime.date(2024, 3, 15)),
    ("year 1", "datetime year to day", "c601010100", datetime.date(1, 1, 1)),
    ("hour to minute", "datetime hour to minute", "c30705", "07:05"),
    ("midnight", "datetime hour to minute", "800000", "00:00"),
    ("hour to second", "datetime hour to second", "c30c2238", "12:34:56"),
    ("hour to fraction(5)", "datetime hour to fraction(5)", "c2210b1f4d1e00", "00:33:11.31773"),
    ("fraction(1) is left-aligned", "datetime second to fraction(1)", "c10546", "05.7"),
    ("year to month as text", "datetime year to month", "c7141801", "2024-01"),
    (
        "year to fraction(5)",
        "datetime year to fraction(5)",
        "c7141801020304050c2232",
        datetime.datetime(2024, 1, 2, 3, 4, 5, 123450),
    ),
    ("interval year to month", "interval year to month", "c6030700", 43),
    ("interval year to month below zero", "interval year to month", "39605d00", -43),
    ("a large object's handle", "blob", "00000000" + "ab" * 72, bytes(4) + b"\xab" * 72),
    ("a large object NULL is a zeroed locator", "blob", "00000000" + "00" * 72, None),
    ("a large object NULL with a flag in front", "clob", "01000000" + "00" * 72, None),
    ("a large object NULL with a flag behind", "clob", "00000001" + "00" * 72, None),
    ("a large object NULL with an indicator of -1", "blob", "ffffffff" + "00" * 72, None),
    ("a large object whose locator is nearly zeros", "blob", "00" * 75 + "01", bytes(75) + b"\1"),
    ("nchar NULL", "nchar(3)", "002020", None),
    ("char of NUL bytes alone is NULL", "char(5)", "0000000000", None),
    ("nchar of NUL bytes alone is NULL", "nchar(3)", "000000", None),
    ("char of one NUL byte", "char(1)", "00", None),
    ("interval zero", "interval day(3) to second", "800000000000", datetime.timedelta(0)),
    ("interval NULL", "interval day(3) to second", "000000000000", None),
    (
        "interval day(3) to second",
        "interval day(3) to second",
        "c40c03040500",
        datetime.timedelta(days=12, hours=3, minutes=4, seconds=5),
    ),
]


@pytest.mark.parametrize(
    ("type_text", "packed", "value"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN]
)
def test_bytes_of_a_value(type_text: str, packed: str, value: object) -> None:
    found = decode_hex(type_text, packed)
    assert (found, type(found)) == (value, type(value))


def test_char_keeps_its_blanks_if_asked() -> None:
    keep = DecodeRules(keep_blanks=True)
    assert decode_hex("char(5)", "6162202020", keep) == "ab   "
    assert decode_hex("char(3)", "002020", keep) is None
    assert decode_hex("char(3)", "000000", keep) is None


CODE_SETS = [
    ("8859-1", "iso8859-1", "e9", "é"),
    ("CP1252", "cp1252", "80", "€"),
    ("GB18030, two bytes", "gb18030", "d6d0", "中"),
    ("GB18030, four bytes", "gb18030", "9439da33", "\U0001f4a9"),
]


@pytest.mark.parametrize(
    ("codec", "packed", "value"), [c[1:] for c in CODE_SETS], ids=[c[0] for c in CODE_SETS]
)
def test_text_of_a_code_set_becomes_unicode(codec: str, packed: str, value: str) -> None:
    size = len(packed) // 2
    rules = DecodeRules(codec=codec)
    assert decode_hex(f"char({size})", packed, rules) == value
    assert decode_hex("varchar(20,0)", f"{size:02x}{packed}", rules) == value
    assert decode_hex("lvarchar(20)", f"{size + 1:04x}00{packed}", rules) == value


def test_nulls_among_transcoded_text_stay_null() -> None:
    rows: list[EncodedRow] = [
        ([], bytes.fromhex(value)) for value in ("e920", "0020", "6120", "0000", "e920")
    ]
    batch = decode_rows("a char(2)", rows, DecodeRules(codec="iso8859-1"))
    assert batch.column(0).to_pylist() == ["é", None, "a", None, "é"]
