"""Write rows of any tables as JSON texts such as `{"id":1,"note":null}`, one per row.

Rule: the cost depends on cells, not on tables. One call converts all cells of a type to texts. Then
every text, and the name before it, is a piece with a position, and Arrow concatenates all pieces of all
rows in one call; a row is a range of the result.

    number or boolean   ,"name":   12.50            NULL  ,"name":      null
    quoted value        ,"name":"  text   "         NULL  ,"name":null  (nothing)  (nothing)
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from informix_capture_client.records import Bits, Integers
from informix_capture_client.shapes.json_values import json_kind
from informix_capture_client.shapes.stored_changes import ChangeGroup

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
    """Writes rows of the tables of a group."""

    def __init__(self, group: ChangeGroup) -> None:
        self._group = group
        rows = [group.rows_at(place).type for place in range(len(group.tables))]
        heads = list(map(_heads, rows))
        # With a type, because a group may have no tables.
        counts = np.array([row.num_fields for row in rows], np.int64)
        self._first = np.cumsum(counts) - counts  # of each table's columns among those of all tables
        self._is_quoted = np.array([one for of in heads for one in of.is_quoted], bool)
        widths = 2 + self._is_quoted  # pieces of a cell
        begins = np.cumsum(widths) - widths
        self._piece = begins - np.repeat(begins[self._first], counts)
        self._pieces = np.add.reduceat(widths, self._first) + 1  # of a row, with its end
        self._counts = counts
        of_values = [text for of in heads for text in of.of_values]
        of_nulls = [text for of in heads for text in of.of_nulls]
        self._constants = pa.array(["null", "", '"', "}", *of_values, *of_nulls], pa.string())

    def texts(self, changes: Integers) -> JsonTexts:
        """Return each change's row as JSON, with columns in table order; each must have a row."""
        parts = [self._texts(changes[first:end]) for first, end in self._parts(changes)]
        return _joined(parts)

    def _parts(self, changes: Integers) -> Iterator[tuple[int, int]]:
        """Split rows of wide tables into parts: a name is written with every cell."""
        ends = np.cumsum(self._counts[self._group.places[changes]])
        at = before = 0
        while at < len(changes):
            end = int(np.searchsorted(ends, before + _CELLS_AT_ONCE, side="right"))
            yield at, (at := max(end, at + 1))
            before = int(ends[at - 1])

    def _texts(self, changes: Integers) -> JsonTexts:
        pieces = self._pieces[self._group.places[changes]]
        ends = np.cumsum(pieces)
        begins = ends - pieces
        order = np.full(int(ends[-1]) if len(ends) else 0, _END)
        found, base = [self._constants], len(self._constants)
        for rows, columns, values in self._cells(changes):
            found.append(json_kind(values.type).texts(values))
            self._place(order, begins[rows] + self._piece[columns], columns, values, base)
            base += len(values)
        return _laid(found, order, begins)

    def _cells(self, changes: Integers) -> Iterator[tuple[Integers, Integers, pa.Array]]:
        """Yield the cells of all rows by type: their rows, columns and values."""
        by_type: dict[pa.DataType, list[tuple[Integers, int, pa.Array]]] = {}
        for place, mine in self._group.by_table(changes):
            rows = self._group.rows_of(place, changes[mine])
            for number, values in enumerate(rows.flatten(), int(self._first[place])):
                by_type.setdefault(values.type, []).append((mine, number, values))
        for cells in by_type.values():
            lengths = [len(mine) for mine, _, _ in cells]
            yield (
                np.concatenate([mine for mine, _, _ in cells]),
                np.repeat([number for _, number, _ in cells], lengths),
                pa.concat_arrays([values for _, _, values in cells]),
            )

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


class _Heads(NamedTuple):
    """What is written before the values of a table's columns, and in place of a quoted NULL."""

    of_values: list[str]
    of_nulls: list[str]
    is_quoted: list[bool]


@functools.lru_cache(maxsize=4096)  # a millisecond for hundreds of tables, and groups may be small
def _heads(row: pa.StructType) -> _Heads:
    named = [
        f"{',' if place else '{'}{json.dumps(field.name, ensure_ascii=False)}:"
        for place, field in enumerate(row)
    ]
    is_quoted = [json_kind(field.type).is_quoted for field in row]
    heads = [name + '"' * quoted for name, quoted in zip(named, is_quoted, strict=True)]
    return _Heads(heads, [f"{name}null" for name in named], is_quoted)


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
