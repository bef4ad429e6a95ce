"""Fields behind the header to rows: typed by a declared table, or each with its text and its quotes.

Rule: what a column's type asks for is asked of every value: strings are quoted, numbers are not, and
NULL is neither. A row with one value that breaks this is bad as a whole, and comes back as bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.db2.changes import Integers
from informix_capture_client.db2.code_pages import CodePage
from informix_capture_client.db2.declared_tables import (
    BYTES,
    CHARACTERS,
    GRAPHIC,
    NUMBERS,
    Column,
    DeclaredTable,
)
from informix_capture_client.db2.refused_bytes import BadValue
from informix_capture_client.db2.text_values import read_what_can_be, reader_of

FIELD = pa.struct([("text", pa.string()), ("quoted", pa.bool_())])
UNDECLARED = pa.list_(FIELD)
_NO_DIGITS = "?"  # what a point becomes where the decimal character is another one


class RowReader:
    """Makes rows of one declared table.

    Args:
        decimal_point: the character in front of a number's fraction.
        source_encoding: the code page of characters that came as hexadecimal digits, if known.
    """

    def __init__(
        self,
        table: DeclaredTable,
        encoding: CodePage,
        decimal_point: str,
        source_encoding: CodePage | None,
    ) -> None:
        self.table = table
        self._encoding = encoding
        self._decimal_point = decimal_point
        self._source_encoding = source_encoding
        self._readers = {c.name: reader_of(c) for c in table.columns if c.kind not in BYTES}

    def read(
        self,
        values: pa.Array,
        is_quoted: NDArray[np.bool_],
        fields: Integers,
        is_hex: NDArray[np.bool_],
    ) -> tuple[pa.Array, dict[int, str]]:
        """Return rows, and of rows that are bad what is wrong.

        Args:
            values: all fields of a window.
            is_quoted: whether each of them is.
            fields: the first field of each row.
            is_hex: of each row whether its characters came as hexadecimal digits.
        """
        columns: list[pa.Array] = []
        wrong: dict[int, str] = {}
        for number, column in enumerate(self.table.columns):
            places = fields + number
            raw = values.take(pa.array(places))
            for place in self._wrongly_quoted(column, raw, is_quoted[places]):
                wrong.setdefault(place, _reason(column, "is quoted as its type is not"))
            columns.append(self._column(column, raw, is_hex, wrong))
        rows = pa.StructArray.from_arrays(columns, fields=list(self.table.type))
        return rows, wrong

    @staticmethod
    def _wrongly_quoted(column: Column, raw: pa.Array, is_quoted: NDArray[np.bool_]) -> list[int]:
        wanted = column.kind not in NUMBERS
        wrong = (is_quoted != wanted) & np.asarray(raw.is_valid())
        return np.flatnonzero(wrong).tolist()

    def _column(
        self, column: Column, raw: pa.Array, is_hex: NDArray[np.bool_], wrong: dict[int, str]
    ) -> pa.Array:
        if column.kind in BYTES:
            values, bad = _bytes_of_digits(raw)
            _add(wrong, bad, _reason(column, "is no even number of hexadecimal digits"))
            return values
        if column.kind in CHARACTERS | GRAPHIC and is_hex.any() and self._source_encoding:
            return self._mixed(column, raw, is_hex, self._source_encoding, wrong)
        texts, undecoded = self._encoding.texts_and_bad(raw)
        for place, reason in undecoded.items():
            wrong.setdefault(place, _reason(column, reason))
        if column.kind in NUMBERS and self._decimal_point != ".":
            texts = pc.replace_substring(texts, ".", _NO_DIGITS)
            texts = pc.replace_substring(texts, self._decimal_point, ".")
        values, bad = read_what_can_be(texts, self._readers[column.name], column.type)
        _add(wrong, bad, _reason(column, f"is no {column.kind} as declared"))
        return values

    def _mixed(
        self,
        column: Column,
        raw: pa.Array,
        is_hex: NDArray[np.bool_],
        source: CodePage,
        wrong: dict[int, str],
    ) -> pa.Array:
        texts: list[str | None] = []
        for place, (value, hexadecimal) in enumerate(
            zip(raw.to_pylist(), is_hex.tolist(), strict=True)
        ):
            try:
                texts.append(
                    value if value is None else self._character(value, source if hexadecimal else None)
                )
            except BadValue as bad:
                texts.append(None)
                wrong.setdefault(place, _reason(column, bad.reason))
        return pa.array(texts, pa.string())

    def _character(self, value: bytes, source: CodePage | None) -> str:
        text = self._encoding.decode(value)
        if source is None:
            return text
        try:
            return source.decode(_unhex(text))
        except ValueError:
            raise BadValue("is no even number of hexadecimal digits") from None


def _reason(column: Column, what: str) -> str:
    return f"column {column.name} {what}"


def _add(wrong: dict[int, str], places: list[int], reason: str) -> None:
    for place in places:
        wrong.setdefault(place, reason)


def _unhex(text: str) -> bytes:
    if not text.isalnum():  # bytes.fromhex passes over blanks
        raise ValueError(text) if text else BadValue("is empty")
    return bytes.fromhex(text)


def _bytes_of_digits(raw: pa.Array) -> tuple[pa.Array, list[int]]:
    values: list[bytes | None] = []
    bad = []
    for place, text in enumerate(raw.to_pylist()):
        try:
            values.append(text if not text else _unhex(text.decode("ascii")))
        except ValueError:
            values.append(None)
            bad.append(place)
    return pa.array(values, pa.binary()), bad


def undeclared_rows(
    values: pa.Array,
    is_quoted: NDArray[np.bool_],
    fields: Integers,
    counts: Integers,
    encoding: CodePage,
) -> tuple[pa.Array, dict[int, str]]:
    """Return the fields of rows as they are, and of rows that are bad what is wrong."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + np.repeat(fields - (ends - counts), counts)
    texts, bad = encoding.texts_and_bad(values.take(pa.array(places)))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    pairs = pa.StructArray.from_arrays([texts, pa.array(is_quoted[places])], fields=list(FIELD))
    rows_of_bad = np.searchsorted(ends, list(bad), side="right").tolist()
    wrong = {row: f"a value: {reason}" for row, reason in zip(rows_of_bad, bad.values(), strict=True)}
    return pa.ListArray.from_arrays(offsets, pairs), wrong
