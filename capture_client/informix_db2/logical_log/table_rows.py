"""Row images to the columns of a declared table.

Rule: columns stand in the order of the catalogue, nothing between them, and must end where the image
ends. A cursor a row goes from column to column, for all rows at once.

    nullable   a null byte in front, 00 or FF       string  u16 length, then the bytes; NULL: FF 0000
    numbers    big-endian, decimals packed          dates   characters: 10, 8, and 26 of a TIMESTAMP(6)

That a NULL of fixed width keeps its bytes, and that floats are System/360's unless told, is inferred.
(BMC, "Logical log data file".)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_db2.binary_values import (
    binaries_of,
    decimal_reader,
    fields_of,
    number_reader,
    width_of,
)
from informix_db2.changes import IntArray
from informix_db2.code_pages import CodePage, placed_bytes
from informix_db2.declared_tables import (
    BYTES,
    GRAPHIC,
    LONG,
    MOMENTS,
    Db2Column,
    DeclaredTable,
)
from informix_db2.text_values import read_what_can_be, reader_of

_Bools = NDArray[np.bool_]
_Wrong = dict[int, str]
_STRINGS = {"VARCHAR", "VARGRAPHIC", "VARBINARY"} | LONG
_ELSEWHERE = {"CLOB", "DBCLOB", "BLOB", "XML", "DECFLOAT"}
_NULL = 0xFF


@dataclass(frozen=True)
class ValueForm:
    """How values are written: code pages, hex floats or IEEE's, strings with all their room or not."""

    encoding: CodePage
    graphic: CodePage
    is_hex_float: bool
    is_expanded: bool


@dataclass
class _Cursor:
    """Where each row is read on, and whether it is sound so far."""

    data: NDArray[np.uint8]
    at: IntArray
    ends: IntArray
    good: _Bools
    wrong: _Wrong

    def take(self, width: IntArray | int, column: Db2Column) -> IntArray:
        """Step over bytes and return where they began; rows without so many bytes are bad."""
        is_there = self.at + width <= self.ends
        self.refuse(self.good & ~is_there, column, "the row ends inside of it")
        begun = np.where(self.good, self.at, 0)
        self.at = np.where(self.good, self.at + width, self.at)
        return begun

    def refuse(self, bad: _Bools, column: Db2Column, reason: str) -> None:
        """Take note of bad rows."""
        for place in np.flatnonzero(bad).tolist():
            self.wrong.setdefault(place, f"column {column.name}: {reason}")
        self.good = self.good & ~bad

    def fields(self, at: IntArray, width: int) -> NDArray[np.uint8]:
        """Return a field of each row, zeros of those that are bad."""
        fields = np.zeros((len(at), width), np.uint8)
        fields[self.good] = fields_of(self.data, at[self.good], width)
        return fields


class ImageReader:
    """Reads images of one declared table.

    Raises:
        UnsupportedColumn: a type whose values are elsewhere, or have no public layout.
        BadOption: a string has no length, and all strings have the room that was declared.
    """

    def __init__(self, table: DeclaredTable, form: ValueForm) -> None:
        self.table = table
        self._form = form
        for column in table.columns:
            if column.kind in _ELSEWHERE:
                raise UnsupportedColumn(
                    f"tables: column {column.name} of {table.name} is {column.kind}, whose value is not"
                    " in the row or has an undocumented layout.",
                    "Do not declare the table: its images are then delivered as bytes.",
                )
            if form.is_expanded and column.kind in _STRINGS and not column.is_length_given:
                raise BadOption(
                    f"tables: column {column.name} of {table.name} has no length, but expanded strings"
                    " are padded to the declared length.",
                    "Declare it as VARCHAR(n).",
                )

    def read(
        self, data: NDArray[np.uint8], starts: IntArray, sizes: IntArray
    ) -> tuple[pa.Array, _Wrong]:
        """Return rows, and of images that are bad what is wrong."""
        cursor = _Cursor(data, starts, starts + sizes, np.ones(len(starts), bool), {})
        columns = [self._column(column, cursor) for column in self.table.columns]
        for place in np.flatnonzero(cursor.good & (cursor.at != cursor.ends)).tolist():
            left = int(cursor.ends[place] - cursor.at[place])
            cursor.wrong.setdefault(place, f"{left} bytes remain after the last column")
        return pa.StructArray.from_arrays(columns, fields=list(self.table.type)), cursor.wrong

    def _column(self, column: Db2Column, cursor: _Cursor) -> pa.Array:
        valid = np.ones(len(cursor.at), bool)
        if column.is_nullable:
            marks = cursor.fields(cursor.take(1, column), 1).ravel()
            is_mark = (marks == 0) | (marks == _NULL)
            cursor.refuse(cursor.good & ~is_mark, column, "its null byte is neither 00 nor FF")
            valid = marks == 0
        if column.kind in _STRINGS:
            return self._string(column, cursor, valid)
        width = self._width(column)
        begun = cursor.take(width, column)
        fields = cursor.fields(begun, width)
        valid = valid & cursor.good
        if column.kind in BYTES | GRAPHIC | MOMENTS | {"CHAR"}:
            return self._text(column, binaries_of(fields, valid), cursor)
        if column.kind == "DECIMAL":
            reader = decimal_reader(column)
        else:
            reader = number_reader(column, "big", is_hex_float=self._form.is_hex_float)
        values, bad = reader(fields, valid)
        self._add_reason(column, bad, cursor)
        return values

    @staticmethod
    def _width(column: Db2Column) -> int:
        widths = {
            "CHAR": column.length,
            "BINARY": column.length,
            "GRAPHIC": 2 * column.length,
            "DATE": 10,
            "TIME": 8,
            "TIMESTAMP": 20 + column.length if column.length else 19,
        }
        return widths[column.kind] if column.kind in widths else width_of(column)

    def _string(self, column: Db2Column, cursor: _Cursor, valid: _Bools) -> pa.Array:
        lengths = cursor.fields(cursor.take(2, column), 2).astype(np.int64)
        # Bytes, of graphic strings too: in DB2's log the null byte is counted with them.
        sizes = lengths[:, 0] << 8 | lengths[:, 1]
        room = sizes
        if self._form.is_expanded:
            room = np.full(len(sizes), (2 if column.kind in GRAPHIC else 1) * column.length, np.int64)
            cursor.refuse(cursor.good & (sizes > room), column, "it is longer than declared")
        begun = cursor.take(room, column)
        is_there = valid & cursor.good
        texts = placed_bytes(cursor.data, np.where(is_there, begun, 0), np.where(is_there, sizes, 0))
        raw = pa.compute.if_else(pa.array(is_there), texts, None)
        return self._text(column, raw, cursor)

    def _text(self, column: Db2Column, raw: pa.Array, cursor: _Cursor) -> pa.Array:
        if column.kind in BYTES:
            return raw
        page = self._form.graphic if column.kind in GRAPHIC else self._form.encoding
        texts, undecoded = page.texts_and_bad(raw)
        for place, reason in undecoded.items():
            cursor.wrong.setdefault(place, f"column {column.name}: {reason}")
        values, bad = read_what_can_be(texts, reader_of(column), column.type)
        self._add_reason(column, bad, cursor)
        return values

    @staticmethod
    def _add_reason(column: Db2Column, bad: list[int], cursor: _Cursor) -> None:
        for place in bad:
            cursor.wrong.setdefault(place, f"column {column.name} is not a {column.kind} as declared")
