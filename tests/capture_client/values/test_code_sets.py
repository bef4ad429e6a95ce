"""Text of many code sets, with bytes that are valid in them and bytes that are not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.decoding import EncodedRow, assert_bitmaps_only_where_needed, decode_rows
from harness.runs.examples import examples
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.values.table_decoder import Payloads, TableDecoder

CODECS = ["utf-8", "ascii", "iso8859-1", "iso8859-15", "iso8859-7", "cp1252", "cp1251", "cp850",
          "gb18030", "gbk", "cp932", "euc_jp", "big5", "cp949"]  # fmt: skip
TYPES = ("char(30)", "varchar(30,0)", "lvarchar(30)")


def encoded(type_text: str, value: bytes | None) -> EncodedRow:
    """Put bytes into a column, as the server would."""
    if type_text.startswith("char"):
        return [], (b"\0" if value is None else value).ljust(30)
    if type_text.startswith("varchar"):
        payload = b"\1\0" if value is None else bytes([len(value)]) + value
    else:
        payload = b"\0\1\1" if value is None else (len(value) + 1).to_bytes(2) + b"\0" + value
    return [len(payload)], payload


def decoded(type_text: str, values: list[bytes | None], rules: DecodeRules) -> list[Any]:
    batch = decode_rows(f"a {type_text}", [encoded(type_text, value) for value in values], rules)
    assert_bitmaps_only_where_needed(batch)
    return list(batch.column(0).to_pylist())


def usual_bytes() -> st.SearchStrategy[bytes]:
    """Return bytes that a row may hold: no NUL, and no blank at the end that CHAR would lose."""
    some = st.one_of(st.integers(0x20, 0x7F), st.integers(0x80, 0xFF))
    return st.lists(some, max_size=30).map(bytes).map(lambda value: value.rstrip(b" "))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("type_text", TYPES)
@given(values=st.lists(st.one_of(st.none(), usual_bytes()), min_size=1, max_size=6))
@examples(25)
def test_any_bytes_are_what_python_reads_or_the_first_bad_row_is_named(
    codec: str, type_text: str, values: list[bytes | None]
) -> None:
    replaced = [None if value is None else value.decode(codec, "replace") for value in values]
    assert decoded(type_text, values, DecodeRules(codec=codec, bad_characters="replace")) == replaced
    for row, value in enumerate(values):
        try:
            (value or b"").decode(codec)
        except UnicodeDecodeError as reason:
            where = rf"t\.a at row {row} has bytes that are not {codec}, at byte {reason.start}\."
            with pytest.raises(ProtocolViolation, match=where) as refused:
                decoded(type_text, values, DecodeRules(codec=codec))
            assert "badCharacters=replace" in str(refused.value)
            return
    assert decoded(type_text, values, DecodeRules(codec=codec)) == replaced


CHARACTERS = [
    ("iso8859-15", "a4", "€"),
    ("cp1252", "80", "€"),
    ("iso8859-1", "a4", "¤"),
    ("utf-8", "f09f92a9", "\U0001f4a9"),
    ("gb18030", "9439da33", "\U0001f4a9"),
    ("cp932", "8abf8e9a", "漢字"),
]


@pytest.mark.parametrize(("codec", "packed", "text"), CHARACTERS)
def test_a_character_of_a_code_set_among_others_and_nulls(codec: str, packed: str, text: str) -> None:
    value = bytes.fromhex(packed)
    for type_text in TYPES:
        rows = [b"abc", None, value, b"", value + b"x" + value, None]
        assert decoded(type_text, rows, DecodeRules(codec=codec)) == [
            "abc", None, text, "", f"{text}x{text}", None,
        ]  # fmt: skip


def test_a_nul_inside_a_varchar_is_a_character() -> None:
    assert decoded("varchar(30,0)", [b"a\0b", b"\0b", b"\0\0"], DecodeRules()) == [
        "a\0b",
        "\0b",
        "\0\0",
    ]
    assert decoded("lvarchar(30)", [b"\0"], DecodeRules()) == ["\0"]


def test_the_blanks_of_a_char_are_kept_if_asked_in_any_code_set() -> None:
    for codec in CODECS:
        rules = DecodeRules(codec=codec, keep_blanks=True)
        assert decoded("char(30)", [b"ab", None, b""], rules) == ["ab".ljust(30), None, " " * 30]


def test_only_blanks_are_cut_not_other_white_space() -> None:
    values = [b"a\t", b"a\xa0", b"a\n"]
    assert decoded("char(30)", values, DecodeRules(codec="iso8859-1")) == ["a\t", "a\xa0", "a\n"]


@pytest.mark.parametrize("codec", ["utf-8", "iso8859-1", "cp1252"])
def test_no_python_runs_per_row(codec: str) -> None:
    columns = "a char(10), b varchar(30,0), c lvarchar(30)"
    decoder = TableDecoder(columns, "t", DecodeRules(codec=codec))
    few, many = (made_of(codec, range(count)) for count in (10, 5000))
    assert decoder.decode(many).column(2).to_pylist() == [f"é{number}" for number in range(5000)]
    assert calls_of(lambda: decoder.decode(many)) == calls_of(lambda: decoder.decode(few))


def made_of(codec: str, numbers: range) -> Payloads:
    """Return rows whose three columns all hold a different text."""
    rows, sizes = [], []
    for number in numbers:
        text = f"é{number}".encode(codec)
        rows.append(text.ljust(10) + bytes([len(text)]) + text + bytes([0, len(text) + 1, 0]) + text)
        sizes.append([len(text) + 1, len(text) + 3])
    lengths = np.array([len(row) for row in rows])
    return Payloads(b"".join(rows), np.cumsum(lengths) - lengths, lengths, np.array(sizes))


def calls_of(work: Callable[[], object]) -> int:
    """Count the Python functions that run."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    work()  # what is cached is not counted
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
