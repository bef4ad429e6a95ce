"""Build the delivered rows of groups: one struct column per table, NULL except the change's own.

Rule: a table without rows costs a delivered batch one reference to a shared column of NULLs, and all of
these share one buffer of zeros. Only a few rows are delivered at a time, so that a batch for Spark,
which gets each NULL written out, stays within a few MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import DataLoss
from informix_checkpoints.spool.groups import (
    GroupImages,
    GroupSchema,
    Int64Array,
    changes_in,
    changes_of,
    images_of,
    listed,
    rows_at,
    schema_of,
    table_column,
    table_numbers,
    transactions_of_group,
)

_VALUES_AT_ONCE = 1 << 19  # of a delivered batch, NULLs counted
_MOST_ROWS = 8192


@dataclass(frozen=True, slots=True, eq=False)
class OpenedGroup:
    """A group, with values shared by all its pieces."""

    batch: pa.RecordBatch
    known: GroupSchema
    images: GroupImages
    transactions: Int64Array

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> OpenedGroup:
        """Open a group."""
        _, counts = transactions_of_group(batch)
        which = np.repeat(np.arange(len(counts)), counts)
        return cls(batch, schema_of(batch), images_of(batch), which)


class DeliveredTables:
    """Delivers groups of one stream.

    Args:
        schema: of delivered rows, with all tables.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._step = max(min(_VALUES_AT_ONCE // max(_leaves(schema), 1), _MOST_ROWS), 1)
        self._nulls: dict[str, list[pa.Array]] = {}
        self._null_rows = 0

    def pieces(self, group: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group in small batches."""
        opened, count = OpenedGroup.of(group), changes_in(group)
        for first, end in pairwise([*range(0, count, self._step), count]):
            yield self._piece(opened, first, end)

    def whole(self, group: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a group in one batch."""
        return self._piece(OpenedGroup.of(group), 0, changes_in(group))

    def _piece(self, group: OpenedGroup, first: int, end: int) -> pa.RecordBatch:
        columns = about(group, first, end)
        arrays: list[pa.Array] = []
        for name in group.known.delivered:
            if name is None:
                arrays += self._tables(group, "", first, end)[0]
            elif name in group.images.names:
                arrays.append(self._image(group, name, first, end))
            else:
                arrays.append(columns[name])
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _image(self, group: OpenedGroup, name: str, first: int, end: int) -> pa.StructArray:
        """Return a column of one struct per table, NULL for changes without this image."""
        columns, has = self._tables(group, name, first, end)
        mask = None if has.all() else pa.array(~has)
        return pa.StructArray.from_arrays(
            columns, fields=list(self._schema.field(name).type), mask=mask
        )

    def _tables(
        self, group: OpenedGroup, name: str, first: int, end: int
    ) -> tuple[list[pa.Array], np.ndarray]:
        """Return each table's rows of one image, and which changes have the image."""
        images, length = group.images, end - first
        chosen = np.arange(*images.bounds[[first, end]])
        chosen = chosen[images.columns[chosen] == images.names.index(name)]
        has = np.zeros(length, bool)
        has[images.changes[chosen] - first] = True
        columns = self._of_nulls(name, length)
        place_of = {number: place for place, number in enumerate(group.known.tables)}
        fields = _table_fields(self._schema, name)
        for number, mine in _by_table(images.tables[chosen], chosen):
            place = place_of[number]
            rows, column = rows_at(group.batch, place), _column_of(group, place, fields)
            spread = _spread(rows, images.places[mine], images.changes[mine] - first, length)
            columns[column] = in_layout(spread, fields[column].type)
        return columns, has

    def _of_nulls(self, name: str, length: int) -> list[pa.Array]:
        """Return a column of NULLs for each table; `name` is the delivered column."""
        if length > self._null_rows:
            self._null_rows, self._nulls = max(length, self._step), {}
        if name not in self._nulls:
            fields = _table_fields(self._schema, name)
            nulls = pa.nulls(self._null_rows, pa.struct(fields))
            self._nulls[name] = [nulls.field(place) for place in range(len(fields))]
        return [nulls.slice(0, length) for nulls in self._nulls[name]]


def _table_fields(schema: pa.Schema, name: str) -> list[pa.Field]:
    """Return the fields of the tables: those of a column, or the leading structs for ""."""
    if name:
        return list(schema.field(name).type)
    kinds = [pa.types.is_struct(field.type) for field in schema]
    return [schema.field(place) for place in range(kinds.index(False))]


def _column_of(group: OpenedGroup, place: int, fields: Sequence[pa.Field]) -> int:
    """Return the current delivered column of a group's table; tables may have joined or left since.

    A table that shares its name with one that joined later is delivered with its owner as prefix.

    Raises:
        DataLoss: its rows are no longer delivered.
    """
    owner, _, table = group.known.table_names[place].partition(":")[2].rpartition(".")
    names = [field.name for field in fields]
    for name in (table_column(group.batch, place), f"{owner}_{table}"):
        if name in names:
            return names.index(name)
    raise DataLoss(
        f"the spool has rows of {group.known.table_names[place]}, which option table does not name.",
        "Run the query once with the previous options, then change them.",
    )


def in_layout(rows: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    """Return a table's rows with its current columns: later columns are NULL."""
    if rows.type == wanted:
        return rows
    missing = [pa.nulls(len(rows), field.type) for field in wanted]
    columns = [
        rows.field(field.name) if rows.type.get_field_index(field.name) >= 0 else nulls
        for field, nulls in zip(wanted, missing, strict=True)
    ]
    mask = rows.is_null() if rows.null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=mask)


def about(group: OpenedGroup, first: int, end: int) -> dict[str, pa.Array]:
    """Return the metadata of some changes, by delivered column."""
    known, transactions = group.known, listed(group.batch, 0)
    changes = changes_of(group.batch).slice(first, end - first)
    columns = {
        field.name: _texts(values, known.codes[field.name]) if field.name in known.codes else values
        for field, values in zip(changes.type, changes.flatten(), strict=True)
    }
    which = pa.array(group.transactions[first:end])
    for field, values in zip(transactions.type, transactions.flatten(), strict=True):
        columns[field.name] = without_idle_bitmap(values.take(which))
    if known.named is not None:
        numbers = table_numbers(group.batch)[first:end]
        places = np.searchsorted(known.tables, numbers)
        columns[known.named] = _texts(pa.array(places, pa.int32()), known.table_names)
    return columns


def _by_table(tables: Int64Array, chosen: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """Yield table numbers, each with its images in order."""
    order = np.argsort(tables, kind="stable")
    begins = np.flatnonzero(np.diff(tables[order], prepend=-1, append=-1))
    for begin, end in pairwise(begins.tolist()):
        yield int(tables[order[begin]]), chosen[order[begin:end]]


def _spread(
    rows: pa.StructArray, places: Int64Array, positions: Int64Array, length: int
) -> pa.StructArray:
    """Return rows at the given positions of a column, NULL elsewhere."""
    if len(places) == length and places[-1] - places[0] == length - 1:
        return rows.slice(int(places[0]), length)
    taken, absent = np.zeros(length, np.int64), np.ones(length, bool)
    taken[positions], absent[positions] = places, False
    return rows.take(pa.array(taken, mask=absent))


def _texts(codes: pa.Array, texts: list[str] | tuple[str, ...]) -> pa.Array:
    return without_codes(pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string())))


def without_codes(column: pa.Array) -> pa.Array:
    """Return the values of a dictionary column; any other column unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    return without_idle_bitmap(column.dictionary_decode())


def without_idle_bitmap(values: pa.Array) -> pa.Array:
    """Return values without the validity bitmap if there is no NULL."""
    if values.null_count:
        return values
    _, *buffers = values.buffers()
    return pa.Array.from_buffers(values.type, len(values), [None, *buffers], 0, values.offset)


def _leaves(schema: pa.Schema) -> int:
    return sum(_values_in(field.type) for field in schema)


def _values_in(kind: pa.DataType) -> int:
    """Return how many values a row has in a column: one, or those of a struct's fields."""
    return sum(_values_in(field.type) for field in kind) if pa.types.is_struct(kind) else 1
