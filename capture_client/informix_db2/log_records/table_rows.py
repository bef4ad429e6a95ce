"""Decode the user data of rows into the columns of a declared table.

Rule: the layout is that of a table without VALUE COMPRESSION: consecutive columns in the fixed part, a
null byte after each nullable one, and for a string its offset and length. Every offset is checked
before bytes are read.

    CHAR, numbers, dates   their bytes
    string                 u16 place in the user data, u16 length
    LOB                    69 00 00 00 and the value, or 80 ... if it has no bytes; else a descriptor

(IBM's manual as quoted on bytes.com, topic 942367, with a real row; Apache-licensed samples of IBM.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.errors import UnsupportedColumn
from informix_db2.binary_values import (
    Bools,
    Order,
    binaries_of,
    decimal_reader,
    fields_of,
    number_reader,
    numbers_of,
    packed_moment_reader,
    width_of,
)
from informix_db2.changes import IntArray
from informix_db2.code_pages import CodePage, placed_bytes
from informix_db2.declared_tables import (
    BYTES,
    GRAPHIC,
    LOBS,
    LONG,
    MOMENTS,
    Db2Column,
    DeclaredTable,
)
from informix_db2.log_records.lob_records import (
    ADDED,
    DELETE_DATA,
    STRINGS_COLUMN,
    LobValue,
    LobValues,
    strings_of,
)
from informix_db2.refused_bytes import BadDb2Value

# Whether the value of a column is elsewhere than in its row, None where it is NULL; by number, and only
# of columns that may be elsewhere.
Elsewhere = dict[int, bool | None]


def misfits_of(
    lobs: LobValues, columns: Sequence[Db2Column], elsewhere: Elsewhere, is_old: bool
) -> list[str]:
    """Yield an error for each value that does not match the declared row."""
    found: list[str] = []
    for value in lobs.values():
        if value.column == STRINGS_COLUMN:
            if value.data is not None and is_old == (value.operation == DELETE_DATA):
                found += _of_strings(value.data, columns, elsewhere)
        elif misfit := _of_column(value, columns, elsewhere, is_old):
            found.append(f"large-object records of column {misfit}")
    return found


def _of_column(
    value: LobValue, columns: Sequence[Db2Column], elsewhere: Elsewhere, is_old: bool
) -> str | None:
    if value.column >= len(columns):
        return f"{value.column}, counted from 0: the table is declared with {len(columns)} columns"
    column = columns[value.column]
    if column.kind not in LOBS:
        return f"{column.name}, which is declared {column.kind}"
    if is_old or value.operation not in ADDED or elsewhere[value.column]:
        return None
    where = "says is NULL" if elsewhere[value.column] is None else "has in itself"
    return f"{column.name}, which the row {where}"


def _of_strings(data: bytes, columns: Sequence[Db2Column], elsewhere: Elsewhere) -> Iterator[str]:
    try:
        strings = strings_of(data, len(columns), ("little", "big"))
    except BadDb2Value as bad:
        yield bad.reason
        return
    for number, string in enumerate(strings):
        if string and (columns[number].kind in LOBS or not elsewhere.get(number)):
            size, name = len(string), columns[number].name
            yield f"column 65535 has {size} bytes of column {name}, which contradicts the row"


_STRINGS = {"VARCHAR", "VARGRAPHIC", "VARBINARY"} | LOBS
_NOT_READ = {
    **dict.fromkeys(("DECFLOAT", "XML"), "its layout in the log is not documented"),
    **dict.fromkeys(LONG, "its values are in records of the long field manager, which are not read"),
}
_INLINE, _EMPTY = b"\x69\x00\x00\x00", 0x80
_OUT_OF_ROW = 0x8000

_Wrong = dict[int, str]


@dataclass
class Notes:
    """Further facts of rows, by their place; columns are numbered from 0.

    Attributes:
        wrong: why a row cannot be delivered.
        not_in_log: large objects whose value is neither in the row nor in the log.
        warnings: records that do not match a delivered row.
    """

    wrong: _Wrong = field(default_factory=dict)
    not_in_log: dict[int, list[int]] = field(default_factory=dict)
    warnings: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LocatedRows:
    """The positions of user data of one table's rows, and further facts of some rows.

    Attributes:
        fixed_sizes: the size of the fixed part stated by each row.
    """

    data: NDArray[np.uint8]
    starts: IntArray
    sizes: IntArray
    fixed_sizes: IntArray
    lobs: Mapping[int, LobValues]
    is_old: bool


class LoggedRowReader:
    """Decodes rows of one declared table.

    Raises:
        UnsupportedColumn: values of a type are incomplete in the log, or have an undocumented layout.
    """

    def __init__(
        self, table: DeclaredTable, order: Order, encoding: CodePage, graphic: CodePage
    ) -> None:
        self.table = table
        self._order: Order = order
        self._encodings = {True: graphic, False: encoding}
        for column in table.columns:
            if column.kind in _NOT_READ:
                raise UnsupportedColumn(
                    f"tables: column {column.name} of {table.name} is {column.kind};"
                    f" {_NOT_READ[column.kind]}.",
                    "Do not declare the table: its rows are then delivered as bytes.",
                )
        self._widths = [self._width(column) for column in table.columns]
        self._fixed = sum(self._widths) + sum(column.is_nullable for column in table.columns)

    @staticmethod
    def _width(column: Db2Column) -> int:
        if column.kind in _STRINGS:
            return 4
        if column.kind in ("CHAR", "BINARY"):
            return column.length
        return 2 * column.length if column.kind == "GRAPHIC" else width_of(column)

    def read(self, rows: LocatedRows) -> tuple[pa.Array, Notes]:
        """Return rows, and further facts of them."""
        notes = Notes()
        wrong, elsewhere = notes.wrong, {row: Elsewhere() for row in rows.lobs}
        good = (rows.fixed_sizes == self._fixed) & (rows.sizes >= self._fixed)
        for place in np.flatnonzero(~good).tolist():
            wrong[place] = self._other_layout(int(rows.sizes[place]), int(rows.fixed_sizes[place]))
        columns, at = [], 0
        for number, (column, width) in enumerate(zip(self.table.columns, self._widths, strict=True)):
            valid = good
            if column.is_nullable:
                marks = self._fields(rows, good, at + width, 1).ravel()
                for place in np.flatnonzero(good & (marks > 1)).tolist():
                    wrong.setdefault(place, f"column {column.name}: its null byte is neither 00 nor 01")
                valid = good & (marks == 0)
            fields = self._fields(rows, good, at, width)
            if column.kind in _STRINGS:
                columns.append(self._strings(number, column, fields, valid, rows, notes, elsewhere))
            else:
                columns.append(self._column(column, fields, valid, wrong))
            at += width + column.is_nullable
        for row, lobs in rows.lobs.items():
            if found := misfits_of(lobs, self.table.columns, elsewhere[row], rows.is_old):
                notes.warnings[row] = found
        return pa.StructArray.from_arrays(columns, fields=list(self.table.type)), notes

    def _other_layout(self, size: int, fixed_size: int) -> str:
        """Return why a row does not match the declared columns."""
        if fixed_size == self._fixed:
            return f"a row of {size} bytes, but its columns need {self._fixed}"
        ends = np.cumsum(
            [w + c.is_nullable for w, c in zip(self._widths, self.table.columns, strict=True)]
        )
        wherefore = "the declared columns, lengths or NOT NULL do not match the row"
        if fixed_size in ends:
            count = int(np.flatnonzero(ends == fixed_size)[0]) + 1
            wherefore = f"it may have {count} of the {len(ends)}, from before ALTER TABLE ADD COLUMN"
        return f"its fixed part has {fixed_size} bytes, but the columns need {self._fixed}: {wherefore}"

    @staticmethod
    def _fields(rows: LocatedRows, good: Bools, at: int, width: int) -> NDArray[np.uint8]:
        fields = np.zeros((len(rows.sizes), width), np.uint8)
        fields[good] = fields_of(rows.data, rows.starts[good] + at, width)
        return fields

    def _column(
        self, column: Db2Column, fields: NDArray[np.uint8], valid: Bools, wrong: _Wrong
    ) -> pa.Array:
        if column.kind in ("CHAR", "BINARY", "GRAPHIC"):
            return self._text(column, binaries_of(fields, valid), wrong)
        reader = (
            decimal_reader(column)
            if column.kind == "DECIMAL"
            else packed_moment_reader(column)
            if column.kind in MOMENTS
            else number_reader(column, self._order)
        )
        values, bad = reader(fields, valid)
        for place in bad:
            wrong.setdefault(place, f"column {column.name} is not a {column.kind} as declared")
        return values

    def _text(self, column: Db2Column, raw: pa.Array, wrong: _Wrong) -> pa.Array:
        if column.kind in BYTES:
            return raw
        texts, bad = self._encodings[column.kind in GRAPHIC].texts_and_bad(raw)
        for place, reason in bad.items():
            wrong.setdefault(place, f"column {column.name}: {reason}")
        return texts

    def _strings(
        self,
        number: int,
        column: Db2Column,
        fields: NDArray[np.uint8],
        valid: Bools,
        rows: LocatedRows,
        notes: Notes,
        elsewhere: Mapping[int, Elsewhere],
    ) -> pa.Array:
        at = numbers_of(fields[:, :2], "u2", self._order).astype(np.int64)
        length = numbers_of(fields[:, 2:4], "u2", self._order).astype(np.int64)
        is_outside, is_lob = at & _OUT_OF_ROW != 0, column.kind in LOBS
        if not is_lob and (~is_outside & (at + length <= rows.sizes))[valid].all():
            for row, known in elsewhere.items():
                known[number] = False if valid[row] else None
            begins, sizes = np.where(valid, rows.starts + at, 0), np.where(valid, length, 0)
            raw = pc.if_else(pa.array(valid), placed_bytes(rows.data, begins, sizes), None)
            return self._text(column, raw, notes.wrong)
        found: list[bytes | None] = []
        places = zip(valid.tolist(), at.tolist(), length.tolist(), strict=True)
        for row, (is_there, begin, size) in enumerate(places):
            value = None
            try:
                if is_there and is_lob:
                    value, is_outside[row] = self._lob(rows, row, number, begin, size, notes)
                elif is_there:
                    value = self._string(rows, row, number, begin, size)
            except BadDb2Value as bad:
                notes.wrong.setdefault(row, f"column {column.name}: {bad.reason}")
            found.append(value)
            if row in elsewhere:
                elsewhere[row][number] = bool(is_outside[row]) if is_there else None
        return self._text(column, pa.array(found, pa.binary()), notes.wrong)

    @staticmethod
    def _piece(rows: LocatedRows, row: int, begin: int, size: int) -> bytes:
        if begin + size > rows.sizes[row]:
            raise BadDb2Value("its position is outside of the row")
        start = int(rows.starts[row]) + begin
        return rows.data[start : start + size].tobytes()

    def _string(self, rows: LocatedRows, row: int, number: int, begin: int, size: int) -> bytes | None:
        """Return a string, of the row or of column 65535; None where the log tells of it without data.

        Record 67 says that an update left the strings as they are, and 66 may come without what it took
        away ("LOB manager log records"); `_lobs` tells of both.
        """
        if not begin & _OUT_OF_ROW:
            return self._piece(rows, row, begin, size)
        all_strings = [v for v in rows.lobs.get(row, {}).values() if v.column == STRINGS_COLUMN]
        for value in all_strings:
            if _is_of_side(value, rows.is_old) and value.data is not None:
                return strings_of(value.data, len(self.table.columns), ("little", "big"))[number]
        if any(v.status == "unchanged" or (rows.is_old and v.status == "old") for v in all_strings):
            return None
        raise BadDb2Value("it is stored outside of the row, and the log has no record of it")

    def _lob(
        self, rows: LocatedRows, row: int, number: int, begin: int, size: int, notes: Notes
    ) -> tuple[bytes | None, bool]:
        """Return a large object, None where the log has not all of it, and whether the row has it not.

        Db2 writes no record of a large object that an update leaves alone: the row's null byte is all
        that tells it from one that is set to NULL.
        """
        inline = self._piece(rows, row, begin & ~_OUT_OF_ROW, size)
        if inline.startswith(_INLINE):
            return inline[len(_INLINE) :], False
        if inline and inline[0] == _EMPTY:
            return b"", False
        mine = [value for value in rows.lobs.get(row, {}).values() if value.column == number]
        if rows.is_old or not any(value.operation in ADDED for value in mine):
            notes.not_in_log.setdefault(row, []).append(number)
            return None, True
        return next((value.data for value in mine if value.status == "complete"), None), True


def _is_of_side(value: LobValue, is_old: bool) -> bool:
    return value.status == ("old" if is_old else "complete")
