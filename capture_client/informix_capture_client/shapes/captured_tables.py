"""Decode the rows of captured tables into delivered columns.

Rule: all columns, in table order. Stream layouts are handled in `announced_tables.py`, large objects in
`content_columns.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.object_readers import Reselecting
from informix_capture_client.shapes.announced_tables import AnnouncedTables, mixed_rows
from informix_capture_client.shapes.change_columns import Changes, ChunkRows
from informix_capture_client.shapes.content_columns import ContentColumns


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

    def rows_by_table(self, images: Changes) -> dict[int, pa.StructArray]:
        """Return the rows of each table that occurs, in order; each record must have a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        number = int(images.table_ids[0])
        if (images.table_ids == number).all():  # half the cost of decoding several tables together
            return {number: self._struct(number, self.announced.all_columns(number, images), images)}
        decoded = self.announced.decoder_of_all(images).by_table(mixed_rows(images), images.where)
        ordered = {n: self.announced.in_table_order(n, columns) for n, columns in decoded.items()}
        return {number: self._struct(number, columns, images) for number, columns in ordered.items()}

    def _struct(self, number: int, captured: list[pa.Array], images: Changes) -> pa.StructArray:
        """Return a table's rows, given its captured columns in table order."""
        is_mine = images.table_ids == number
        if self.contents.has(number):
            mine = images if is_mine.all() else images.only(is_mine)
            captured = self.contents.filled(number, captured, mine)
        count = int(np.count_nonzero(is_mine))
        return pa.Array.from_buffers(self.structs[number], count, [None], 0, children=captured)
