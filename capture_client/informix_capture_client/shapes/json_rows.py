"""Write rows of any tables as JSON texts such as `{"id":1,"note":null}`, one per row.

Rule: the cost depends on cells, not on tables. One call converts all cells of a type to texts. Then
every text, and the name before it, is a piece with a position, and Arrow concatenates all pieces of all
rows in one call; a row is a range of the result.

    number or boolean   ,"name":   12.50            NULL  ,"name":      null
    quoted value        ,"name":"  text   "         NULL  ,"name":null  (nothing)  (nothing)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from informix_capture_client.records import Bits, Integers
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.json_values import json_kind
from informix_capture_client.values import TypedCells

_CELLS_AT_ONCE = 1 << 19
_NULL, _NOTHING, _QUOTE, _END, _CONSTANTS = range(5)


class JsonTexts(NamedTuple):
    """Concatenated texts: the start of each in `content`, and the end of the last one."""

    bounds: Integers
    content: memoryview

    def part(self, first: int, end: int, where: Bits) -> pa.StringArray:
        """Return texts `first` to `end`, one for each set bit, and NULL for the other bits."""
        begin, finish = int(self.bounds[first]), int(self.bounds[end])
        lengths = np.zeros(len(where) + 1, np.int64)
        lengths[1:][where] = np.diff(self.bounds[first : end + 1])
        validity = None if where.all() else pa.py_buffer(np.packbits(where, bitorder="little"))
        offsets = pa.py_buffer(np.cumsum(lengths).astype(np.int32))
        content = pa.py_buffer(self.content[begin:finish])
        return pa.Array.from_buffers(
            pa.string(), len(where), [validity, offsets, content], int(np.count_nonzero(~where))
        )


class JsonRows:
    """Writes rows of a fixed list of tables."""

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = tables
        names = [schema.names for schema in tables.schemas]
        # With a type, because a stream whose only table is being altered has none for a while.
        counts = np.array([len(of_table) for of_table in names], np.int64)
        self._first = np.cumsum(counts) - counts  # of each table's columns among those of all tables
        quoted = [json_kind(kind).is_quoted for schema in tables.schemas for kind in schema.types]
        self._is_quoted = np.array(quoted, bool)
        widths = 2 + self._is_quoted  # pieces of a cell
        ends = np.cumsum(widths)
        begins = ends - widths
        self._piece = begins - np.repeat(begins[self._first], counts)
        self._pieces = np.add.reduceat(widths, self._first) + 1  # of a row, with its end
        self._counts = counts
        heads = [name + '"' * is_quoted for name, is_quoted in zip(_named(names), quoted, strict=True)]
        self._constants = pa.array(
            ["null", "", '"', "}", *heads, *(f"{name}null" for name in _named(names))], pa.string()
        )
        self._column_of_slot = np.zeros(len(quoted), np.int64)
        self._announcements = -1
        self._is_mapped = np.zeros(len(names), bool)

    def texts(self, images: Changes) -> JsonTexts:
        """Return each record's row as JSON, with columns in table order; each must have a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        parts = [self._texts(images.only(slice(*bounds))) for bounds in self._parts(images)]
        return _joined(parts)

    def _parts(self, images: Changes) -> Iterator[tuple[int, int]]:
        """Split records of wide tables into parts: a name is written with every cell."""
        ends = np.cumsum(self._counts[images.table_ids])
        at = before = 0
        while at < len(images):
            end = int(np.searchsorted(ends, before + _CELLS_AT_ONCE, side="right"))
            yield at, (at := max(end, at + 1))
            before = int(ends[at - 1])

    def _texts(self, images: Changes) -> JsonTexts:
        pieces = self._pieces[images.table_ids]
        ends = np.cumsum(pieces)
        begins = ends - pieces
        order = np.full(int(ends[-1]) if len(ends) else 0, _END)
        found, base = [self._constants], len(self._constants)
        for rows, columns, values in self._cells(images):
            found.append(json_kind(values.type).texts(values))
            self._place(order, begins[rows] + self._piece[columns], columns, values, base)
            base += len(values)
        return _laid(found, order, begins)

    def _cells(self, images: Changes) -> Iterator[tuple[Integers, Integers, pa.Array]]:
        """Yield the cells of all rows by type: their rows, columns and values."""
        if images.read is None:
            for cells in self._tables.cells(images):
                yield (
                    cells.rows,
                    np.repeat(self._columns_of(cells), np.diff(cells.bounds)),
                    cells.values,
                )
            return
        # What a snapshot has read is in table order, whether or not the stream has announced the table.
        number, rows = int(images.table_ids[0]), np.arange(len(images))
        first = int(self._first[number])
        columns = self._tables.columns_of(number, images, np.ones(len(images), bool))
        for place, values in enumerate(columns):
            yield rows, np.full(len(images), first + place), values

    def _place(
        self, order: Integers, at: Integers, columns: Integers, values: pa.Array, base: int
    ) -> None:
        """Set the pieces of a type's cells: name, value, and a quote if the value is quoted."""
        texts = base + np.arange(len(values))
        heads = _CONSTANTS + columns
        is_quoted = len(columns) > 0 and bool(self._is_quoted[columns[0]])
        quotes: Integers | int = _QUOTE
        if values.null_count:
            nulls = np.asarray(values.is_null())
            if is_quoted:
                heads = np.where(nulls, heads + len(self._is_quoted), heads)
                quotes = np.where(nulls, _NOTHING, _QUOTE)
            texts = np.where(nulls, _NOTHING if is_quoted else _NULL, texts)
        order[at] = heads
        order[at + 1] = texts
        if is_quoted:
            order[at + 2] = quotes

    def _columns_of(self, cells: TypedCells) -> Integers:
        """Return the number of each slot's column among all columns in table order."""
        if self._announcements != self._tables.announced.announcements:
            self._announcements = self._tables.announced.announcements
            self._is_mapped[:] = False
        for table in np.unique(cells.tables[~self._is_mapped[cells.tables]]).tolist():
            self._map(table)
        numbers: Integers = self._column_of_slot[self._first[cells.tables] + cells.columns]
        return numbers

    def _map(self, table: int) -> None:
        """Record the table position of each column of the stream."""
        first = int(self._first[table])
        places = {name: place for place, name in enumerate(self._tables.schemas[table].names)}
        for slot, name in enumerate(self._tables.announced.stream_columns(table)):
            self._column_of_slot[first + slot] = first + places[name]
        self._is_mapped[table] = True


def _named(names: list[list[str]]) -> Iterator[str]:
    for of_table in names:
        for place, name in enumerate(of_table):
            yield f"{',' if place else '{'}{json.dumps(name, ensure_ascii=False)}:"


def _laid(pieces: Sequence[pa.Array], order: Integers, begins: Integers) -> JsonTexts:
    """Return the texts made of pieces.

    Args:
        pieces: all pieces, numbered across all arrays.
        order: the numbers of all pieces of all texts, text after text.
        begins: the start of each text in `order`.
    """
    whole = pa.concat_arrays(pieces).take(pa.array(order))
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[: len(order) + 1]
    bounds = offsets[np.append(begins, len(order))].astype(np.int64)
    return JsonTexts(bounds, memoryview(whole.buffers()[2] or b"")[: int(bounds[-1])])


def _joined(parts: Sequence[JsonTexts]) -> JsonTexts:
    """Concatenate several texts."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.content) for part in parts]
    bases = np.repeat(np.cumsum([0, *sizes])[: len(parts)], [len(part.bounds) - 1 for part in parts])
    ends = np.concatenate([np.zeros(0, np.int64), *(part.bounds[1:] for part in parts)]) + bases
    return JsonTexts(np.append(0, ends), memoryview(b"".join(part.content for part in parts)))
