"""Decode the rows of captured tables into delivered columns.

Rule: all columns, in table order. Stream layouts are handled in `announced_tables.py`, large objects in
`content_columns.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.object_readers import Reselecting, is_content_type
from informix_capture_client.records import Bits
from informix_capture_client.shapes.announced_tables import AnnouncedTables, mixed_rows
from informix_capture_client.shapes.change_columns import Changes, ChunkRows
from informix_capture_client.shapes.content_columns import ContentColumns
from informix_capture_client.values import TypedCells


class CapturedTables:
    """Decodes the rows of a fixed list of tables into delivered columns.

    Args:
        tables: the tables.
        rules: how values are decoded.
        reselecting: by table id, how to find large objects by the keys of their rows.
        definitions: of each table, as text, if rows contain them.

    Raises:
        UnsupportedColumn: a column's type is not supported.

    Attributes:
        announced: the tables as the stream describes them.
        contents: their columns of large objects.
        schemas, structs: the delivered ones of each table.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        rules: DecodeRules,
        reselecting: Mapping[int, Reselecting] | None = None,
        definitions: Sequence[str] = (),
    ) -> None:
        self.announced = AnnouncedTables(tables, rules)
        self.contents = ContentColumns(self.announced, rules, reselecting or {})
        self.definitions = definitions
        self.tables = self.announced.tables
        self.schemas = self.contents.schemas
        self.structs = [pa.struct(list(schema)) for schema in self.schemas]

    def __len__(self) -> int:
        return len(self.tables)

    def row_of_nulls(self, number: int) -> pa.Table:
        """Return one row of a table, whose captured columns are all NULL."""
        schema = self.announced.captured[number]
        return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)

    def require_columns(self, chunk: ChunkRows) -> None:
        """Reject snapshot rows whose columns differ from those of their table.

        Raises:
            ValueError: names the table.
        """
        found, wanted = chunk.rows.schema, self.announced.captured[chunk.number]
        if (found.names, found.types) != (wanted.names, wanted.types):
            table = self.tables[chunk.number].name
            raise ValueError(f"rows of {table} were read as {found} instead of {wanted}")

    def columns_of(self, table_id: int, changes: Changes, wanted: Bits) -> list[pa.Array]:
        """Return a table's columns for all `changes`, NULL for records that are not `wanted`.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        schema = self.schemas[table_id]
        if not wanted.any():
            return [pa.nulls(len(wanted), field.type) for field in schema]
        all_wanted = bool(wanted.all())
        mine = changes if all_wanted else changes.only(wanted)
        captured = self.announced.all_columns(table_id, mine)
        columns = self.contents.filled(table_id, captured, mine)
        if all_wanted:
            return columns
        places = pa.array(np.cumsum(wanted) - 1, mask=~wanted)
        return [column.take(places) for column in columns]

    def struct_of(self, table_id: int, changes: Changes, wanted: Bits) -> pa.StructArray:
        """Return a table's columns as one struct, NULL for records that are not `wanted`."""
        return pa.StructArray.from_arrays(
            self.columns_of(table_id, changes, wanted),
            fields=list(self.schemas[table_id]),
            mask=None if wanted.all() else pa.array(~wanted),
        )

    def rows_by_table(self, images: Changes) -> dict[int, pa.StructArray]:
        """Return the rows of each table that occurs, in order; each record must have a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        if images.read is not None:
            number = int(images.table_ids[0])
            return {number: self.struct_of(number, images, np.ones(len(images), bool))}
        decoded = self.announced.decoder_of_all(images).by_table(mixed_rows(images), images.where)
        return {number: self._struct(number, columns, images) for number, columns in decoded.items()}

    def _struct(self, number: int, columns: Sequence[pa.Array], images: Changes) -> pa.StructArray:
        """Return a table's rows, whose columns are in the stream's order."""
        delivered = self.announced.in_table_order(number, columns)
        if self.contents.has(number):
            delivered = self.contents.filled(number, delivered, images.only(images.table_ids == number))
        count = len(columns[0])
        return pa.Array.from_buffers(self.structs[number], count, [None], 0, children=delivered)

    def cells(self, images: Changes) -> Iterator[TypedCells]:
        """Yield the cells of all rows, type by type; each record must have a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        for cells in self.announced.decoder_of_all(images).cells(mixed_rows(images), images.where):
            yield self._cells_filled(cells, images)
        for number, table in enumerate(self.tables):
            for place, (_, column) in enumerate(table.reselected, len(table.columns)):
                yield from self._cells_of_no_handle(number, place, column.name, images)

    def _cells_of_no_handle(
        self, number: int, place: int, name: str, images: Changes
    ) -> Iterator[TypedCells]:
        """Yield the cells of a TEXT or BYTE, which is not in the stream."""
        where = np.flatnonzero(images.table_ids == number)
        if len(where):
            declared = self.schemas[number].field(name)
            values = self.contents.contents(number, declared, None, images.only(where))
            slot = np.array([number]), np.array([place])
            yield TypedCells(values, where, *slot, np.array([0, len(where)]))

    def _cells_filled(self, cells: TypedCells, images: Changes) -> TypedCells:
        """Return cells of one type with contents instead of handles."""
        # Of the first one alone: with hundreds of tables each type has thousands of columns.
        if not is_content_type(self._field(int(cells.tables[0]), int(cells.columns[0])).type):
            return cells
        slots = zip(cells.tables.tolist(), cells.columns.tolist(), strict=True)
        fields = [self._field(table, column) for table, column in slots]
        bounds = pairwise(cells.bounds.tolist())
        parts = [
            self.contents.contents(
                table, field, cells.values[first:end], images.only(cells.rows[first:end])
            )
            for table, field, (first, end) in zip(cells.tables.tolist(), fields, bounds, strict=True)
        ]
        return replace(cells, values=pa.concat_arrays(parts))

    def _field(self, table_id: int, column: int) -> pa.Field:
        return self.schemas[table_id].field(self.announced.stream_columns(table_id)[column])
