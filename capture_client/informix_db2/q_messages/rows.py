"""Fields behind the header to rows: typed by a declared table, or each with its text and its quotes.

Rule: what a column's type asks for is asked of every value: strings are quoted, numbers are not, and
NULL is neither. A row with one value that breaks this is bad as a whole, and comes back as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_db2.changes import IntArray
from informix_db2.code_pages import CodePage
from informix_db2.declared_tables import (
    BYTES,
    NUMBERS,
    Db2Column,
    DeclaredTable,
)
from informix_db2.refused_bytes import BadDb2Value
from informix_db2.text_values import read_what_can_be, reader_of

NO_DIGITS = "is not an even number of hexadecimal digits"
_NO_NIBBLE = 255
_NIBBLES = np.full(256, _NO_NIBBLE, np.uint8)
for _digits in ("0123456789abcdef", "0123456789ABCDEF"):
    _NIBBLES[np.frombuffer(_digits.encode(), np.uint8)] = np.arange(16)


def bytes_of_digits(texts: pa.Array) -> pa.Array:
    r"""Return the bytes that digits stand for.

    >>> bytes_of_digits(pa.array(["00fF", None, ""])).to_pylist()
    [b'\x00\xff', None, b'']

    Raises:
        BadValue: a text does not have an even number of digits.
    """
    if not len(texts):
        return pa.array([], pa.binary())
    _, bounds, held = texts.buffers()
    offsets = np.frombuffer(bounds, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(held, np.uint8)[first:end] if end > first else np.empty(0, np.uint8)
    nibbles = _NIBBLES[data]
    if ((offsets - first) & 1).any() or (nibbles == _NO_NIBBLE).any():
        raise BadDb2Value(NO_DIGITS)
    made = nibbles[0::2] << 4 | nibbles[1::2]
    validity = pa.array(np.asarray(texts.is_valid())).buffers()[1]
    return pa.Array.from_buffers(
        pa.binary(),
        len(texts),
        [validity, pa.py_buffer((offsets - first) // 2), pa.py_buffer(np.ascontiguousarray(made))],
    )


FIELD = pa.struct([("text", pa.string()), ("quoted", pa.bool_())])
UNDECLARED = pa.list_(FIELD)
_OTHER_POINT = "?"  # what a point becomes where the decimal character is another one


class MessageRows:
    """Makes rows of one declared table.

    Args:
        decimal_point: the character in front of a number's fraction.
        sources: by type, the code page of characters that came as hexadecimal digits, where known.
    """

    def __init__(
        self,
        table: DeclaredTable,
        encoding: CodePage,
        decimal_point: str,
        sources: Mapping[str, CodePage],
    ) -> None:
        self.table = table
        self._encoding = encoding
        self._decimal_point = decimal_point
        self._sources = sources
        self._readers = {c.name: reader_of(c) for c in table.columns if c.kind not in BYTES}

    def read(
        self,
        values: pa.Array,
        is_quoted: NDArray[np.bool_],
        fields: IntArray,
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
                wrong.setdefault(place, _reason(column, "is quoted unlike its type"))
            columns.append(self._column(column, raw, is_hex, wrong))
        rows = pa.StructArray.from_arrays(columns, fields=list(self.table.type))
        return rows, wrong

    @staticmethod
    def _wrongly_quoted(column: Db2Column, raw: pa.Array, is_quoted: NDArray[np.bool_]) -> list[int]:
        wanted = column.kind not in NUMBERS
        wrong = (is_quoted != wanted) & np.asarray(raw.is_valid())
        return np.flatnonzero(wrong).tolist()

    def _column(
        self, column: Db2Column, raw: pa.Array, is_hex: NDArray[np.bool_], wrong: dict[int, str]
    ) -> pa.Array:
        texts, undecoded = self._encoding.texts_and_bad(raw)
        for place, reason in undecoded.items():
            wrong.setdefault(place, _reason(column, reason))
        if column.kind in BYTES:
            values, bad = read_what_can_be(texts, bytes_of_digits, pa.binary())
            _add(wrong, bad, _reason(column, NO_DIGITS))
            return values
        source = self._sources.get(column.kind)
        if source is not None and is_hex.any():
            return _with_decoded_digits(column, texts, is_hex, source, wrong)
        if column.kind in NUMBERS and self._decimal_point != ".":
            texts = pc.replace_substring(texts, ".", _OTHER_POINT)
            texts = pc.replace_substring(texts, self._decimal_point, ".")
        values, bad = read_what_can_be(texts, self._readers[column.name], column.type)
        _add(wrong, bad, _reason(column, f"is not a {column.kind} as declared"))
        return values


def _with_decoded_digits(
    column: Db2Column,
    texts: pa.Array,
    is_hex: NDArray[np.bool_],
    source: CodePage,
    wrong: dict[int, str],
) -> pa.Array:
    """Return texts, those that are digits as the characters that they stand for."""
    places = np.flatnonzero(is_hex)
    values, bad = read_what_can_be(texts.take(pa.array(places)), bytes_of_digits, pa.binary())
    _add(wrong, places[bad].tolist(), _reason(column, NO_DIGITS))
    decoded, undecoded = source.texts_and_bad(values)
    for place, reason in undecoded.items():
        wrong.setdefault(int(places[place]), _reason(column, reason))
    return pc.replace_with_mask(texts, pa.array(is_hex), decoded)


def _reason(column: Db2Column, what: str) -> str:
    return f"column {column.name} {what}"


def _add(wrong: dict[int, str], places: list[int], reason: str) -> None:
    for place in places:
        wrong.setdefault(place, reason)


def undeclared_rows(
    values: pa.Array,
    is_quoted: NDArray[np.bool_],
    fields: IntArray,
    counts: IntArray,
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
