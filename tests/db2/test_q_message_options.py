"""Delimited messages of Q Replication: options and declarations that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from db2.test_q_messages import decoder
from informix_capture_client.errors import BadOption, UnsupportedColumn

REFUSED = [
    ("a letter as a delimiter", {"column_delimiter": "a"}, "column_delimiter"),
    ("a digit as a delimiter", {"column_delimiter": "5"}, "column_delimiter"),
    ("two bytes as a delimiter", {"column_delimiter": "é"}, "column_delimiter"),
    ("two characters as a delimiter", {"string_delimiter": '""'}, "string_delimiter"),
    ("the same delimiter twice", {"column_delimiter": ";", "string_delimiter": ";"}, "equal"),
    ("a decimal character that delimits", {"decimal_point": ","}, "equal"),
    ("the byte of a digit of EBCDIC", {"column_delimiter": "0xF1", "encoding": 37}, "column_delimiter"),
    (
        "the byte of a letter of EBCDIC",
        {"record_delimiter": "0xC1", "encoding": 37},
        "record_delimiter",
    ),
    ("a byte of a longer character", {"column_delimiter": "0xC3"}, "column_delimiter"),
    ("a byte of a longer point", {"decimal_point": "0xC3"}, "decimal_point"),
    ("a code page that is none", {"encoding": "klingon"}, "encoding"),
    ("a shape that is none", {"shape": "json"}, "shape"),
    ("bad bytes passed over", {"bad": "skip"}, "bad"),
    ("other tables taken for granted", {"other_tables": "guess"}, "other_tables"),
]


@pytest.mark.parametrize(("name", "given_", "word"), REFUSED, ids=[case[0] for case in REFUSED])
def test_an_option_that_cannot_be_is_refused_before_the_first_byte(
    name: str, given_: dict[str, Any], word: str
) -> None:
    with pytest.raises(BadOption, match=word):
        decoder(**given_)


def test_a_type_that_the_format_does_not_carry_is_refused_by_its_column() -> None:
    with pytest.raises(UnsupportedColumn, match=r"column a of TEST\.T has type BOOLEAN"):
        decoder({"TEST.T": "a BOOLEAN"})


@pytest.mark.parametrize(
    "columns",
    [
        *("", "a", "a INT,", "a INT b INT", "a DECIMAL(32,2)", "a INT, A INT"),
        *("a DECIMAL(5,6)", "a TIMESTAMP(13)", "a CHAR(0)"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(columns: str) -> None:
    with pytest.raises(BadOption, match=r"TEST\.T"):
        decoder({"TEST.T": columns})


def test_a_name_in_quotes_keeps_its_characters() -> None:
    names = decoder({"TEST.T": '"a ""b"", c" INT, "D(1)" CHAR(1)'}).schema.names
    assert names[:2] == ['a "b", c', "D(1)"]
