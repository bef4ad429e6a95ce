"""Bytes of rows as they cross the wire: what they become, and what is refused of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.row_fetch.declared import declared_form, described_form, require_declared
from informix_capture_client.row_fetch.tuple_columns import TupleDecoder
from informix_capture_client.transport.sqli import SqliColumn as Described
from informix_capture_client.transport.sqli import Tuples
from informix_capture_client.values import Column, parse_columns


def run_of(rows: Sequence[bytes]) -> Tuples:
    lengths = np.array([len(row) for row in rows], np.int64)
    return Tuples(b"".join(rows), np.cumsum(lengths) - lengths, lengths)


def decoded(columns: str, *rows: str, rules: DecodeRules = DecodeRules()) -> list[dict[str, Any]]:  # noqa: B008
    declared = parse_columns(columns)
    decoder = TupleDecoder(declared, "t", rules)
    return decoder.decode([run_of([bytes.fromhex(row) for row in rows])]).to_pylist()


LOCATOR = "ab" * 72
GOLDEN = [
    (
        "a VARCHAR between two numbers",
        "a smallint, v varchar(9,0), b smallint",
        "0001 02 6869 0002",
        {"a": 1, "v": "hi", "b": 2},
    ),
    (
        "an empty VARCHAR and one that is NULL",
        "v varchar(9,0), w varchar(9,0)",
        "00 0100",
        {"v": "", "w": None},
    ),
    ("an LVARCHAR with 4 bytes of length", "v lvarchar(9)", "00 00000002 6869", {"v": "hi"}),
    ("an LVARCHAR that is NULL", "v lvarchar(9), b smallint", "01 00000000 0002", {"v": None, "b": 2}),
    ("an empty LVARCHAR is not NULL", "v lvarchar(9)", "00 00000000", {"v": ""}),
    (
        "a BOOLEAN has a head",
        "t boolean, f boolean",
        "00 00000001 01 00 00000001 00",
        {"t": True, "f": False},
    ),
    (
        "a BOOLEAN that is NULL has no byte",
        "t boolean, b smallint",
        "01 00000000 0002",
        {"t": None, "b": 2},
    ),
    (
        "a locator is the handle behind four zeros",
        "h blob",
        "00 00000048" + LOCATOR,
        {"h": bytes(4) + b"\xab" * 72},
    ),
    ("a large object that is NULL", "h clob, b smallint", "01 00000000 0002", {"h": None, "b": 2}),
    ("a locator of zeros is NULL, as in the log", "h blob", "00 00000048" + "00" * 72, {"h": None}),
]


@pytest.mark.parametrize(
    ("columns", "row", "value"), [each[1:] for each in GOLDEN], ids=[each[0] for each in GOLDEN]
)
def test_a_row_is_cut_into_its_values(columns: str, row: str, value: dict[str, Any]) -> None:
    assert decoded(columns, row) == [value]
    assert decoded(columns, row, row, row) == [value] * 3


def test_runs_of_rows_are_one_block() -> None:
    columns = parse_columns("a smallint, v varchar(9,0)")
    decoder = TupleDecoder(columns, "t", DecodeRules())
    runs = [run_of([b"\0\1\1x", b"\0\2\0"]), run_of([b"\0\3\2yz"])]
    assert decoder.decode(runs).to_pylist() == [
        {"a": 1, "v": "x"},
        {"a": 2, "v": ""},
        {"a": 3, "v": "yz"},
    ]


MALFORMED = [
    (
        "a fixed column beyond the row",
        "a integer",
        "0001",
        r"t\.a at row 1 .* beyond the end of its row",
    ),
    ("a VARCHAR without its length", "a smallint, v varchar(9,0)", "0001", r"t\.v at row 1 .* beyond"),
    ("a VARCHAR beyond the row", "v varchar(9,0)", "03 6869", r"t\.v at row 1 .* beyond"),
    ("an LVARCHAR without its head", "v lvarchar(9)", "00 0000", r"t\.v at row 1 .* beyond"),
    ("an LVARCHAR of 4 GB", "v lvarchar(9)", "00 ffffffff 61", r"t\.v at row 1 .* beyond"),
    ("a flag that is none", "v lvarchar(9)", "02 00000000", r"t\.v at row 1 .* unknown NULL flag"),
    ("a BOOLEAN of no byte", "b boolean", "00 00000000", r"t\.b at row 1 .* BOOLEAN of 0 bytes"),
    ("a BOOLEAN of two bytes", "b boolean", "00 00000002 0101", r"t\.b at row 1 .* BOOLEAN of 2 bytes"),
    ("a BOOLEAN of 2", "b boolean", "00 00000001 02", r"t\.b at row 1 .* not 0 or 1"),
    ("half a locator", "h blob", "00 00000024" + "ab" * 36, r"t\.h at row 1 .* locator of 36 bytes"),
    ("bytes behind the last column", "a smallint", "0001 00", r"has 1 bytes after its last column"),
    ("bytes that are no UTF-8", "v lvarchar(9)", "00 00000001 ff", r"t\.v at row 1 .* not utf-8"),
]
WHOLE = {
    "a integer": "00000001",
    "v varchar(9,0)": "00",
    "v lvarchar(9)": "00 00000000",
    "b boolean": "01 00000000",
    "h blob": "01 00000000",
    "a smallint": "0001",
    "a smallint, v varchar(9,0)": "0001 00",
}


@pytest.mark.parametrize(
    ("columns", "row", "why"), [each[1:] for each in MALFORMED], ids=[each[0] for each in MALFORMED]
)
def test_a_row_that_its_columns_do_not_add_up_to_is_refused(columns: str, row: str, why: str) -> None:
    with pytest.raises(ProtocolViolation, match=why):
        decoded(columns, WHOLE[columns], row)


def test_characters_that_are_not_of_the_code_set_are_replaced_if_asked() -> None:
    rules = DecodeRules(bad_characters="replace")
    assert decoded("v lvarchar(9), c char(2)", "00 00000001 ff ff61", rules=rules) == [
        {"v": "\ufffd", "c": "\ufffda"}
    ]


FORMS = [
    ("serial", Described("v", 6, 4)),
    ("integer", Described("v", 6, 4)),
    ("serial", Described("v", 2, 4)),
    ("bigserial", Described("v", 52, 8)),
    ("serial8", Described("v", 17, 10)),
    ("decimal(12,2)", Described("v", 5, 0x0C02)),
    ("money(12,2)", Described("v", 5, 0x0C02)),
    ("decimal(16)", Described("v", 5, 0x10FF)),
    ("money(16)", Described("v", 8, 0x1002)),
    ("nchar(4)", Described("v", 15, 4)),
    ("char(4)", Described("v", 15, 4)),
    ("nvarchar(9,0)", Described("v", 13, 9)),
    ("lvarchar(300)", Described("v", 40, 300, 1)),
    ("lvarchar(300)", Described("v", 43, 300)),
    ("boolean", Described("v", 41, 1, 5)),
    ("boolean", Described("v", 45, 1)),
    ("blob", Described("v", 41, 72, 10)),
    ("datetime year to fraction(3)", Described("v", 10, 0x110D)),
    ("datetime hour to minute", Described("v", 10, 0x0468)),
    ("interval day(3) to second", Described("v", 14, 0x094A)),
]


@pytest.mark.parametrize(("type_text", "described"), FORMS)
def test_a_type_is_known_in_the_numbers_of_a_server(type_text: str, described: Described) -> None:
    require_declared([described], [Column("v", type_text)], "t")


ALTERED = [
    ("integer", Described("v", 52, 8)),
    ("integer", Described("v", 1, 2)),
    ("bigint", Described("v", 17, 10)),
    ("decimal(12,2)", Described("v", 5, 0x0C03)),
    ("decimal(12,2)", Described("v", 5, 0x0CFF)),
    ("char(4)", Described("v", 0, 5)),
    ("char(4)", Described("v", 13, 4)),
    ("date", Described("v", 2, 4)),
    ("datetime year to fraction(3)", Described("v", 10, 0x120E)),
    ("datetime year to minute", Described("v", 10, 0x0E0A)),
    ("interval day(3) to second", Described("v", 14, 0x084A)),
    ("lvarchar(9)", Described("v", 41, 9, 5)),
    ("blob", Described("v", 41, 72, 11)),
    ("integer", Described("v", 99, 4)),
    ("datetime year to day", Described("v", 10, 0x00FF)),
]


@pytest.mark.parametrize(("type_text", "described"), ALTERED)
def test_a_column_that_is_described_as_another_is_refused(type_text: str, described: Described) -> None:
    assert described_form(described) != declared_form(type_text)
    with pytest.raises(ProtocolViolation, match=r"column v of table t has type .* altered"):
        require_declared([described], [Column("v", type_text)], "t")


def test_a_column_more_or_less_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="returned 0 columns instead of 1"):
        require_declared([], [Column("v", "integer")], "t")
