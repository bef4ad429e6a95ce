"""The captured tables, and the row layouts that the stream announces for them.

Rule: a table's id in the stream is its index in the list of tables. The layout in a TABSCHEMA record
must match the catalog: a row is never decoded with an unchecked layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import NEW_STREAM, ProtocolViolation
from informix_capture_client.positions import show
from informix_capture_client.records import ROW_HEADER_BYTES, TableSchema
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.values import (
    Column,
    MixedRows,
    MixedRowsDecoder,
    TableDecoder,
    compile_type,
    parse_columns,
    payloads,
)


class AnnouncedTables:
    """A fixed list of tables, with a decoder for each that the stream has announced.

    Raises:
        UnsupportedColumn: a column's type is not supported.

    Attributes:
        tables: the tables.
        captured: the captured schema of each table, with handles for large objects.
    """

    def __init__(self, tables: Sequence[Table], rules: DecodeRules) -> None:
        self.tables = tuple(tables)
        self.captured = [table_schema(table, rules) for table in tables]
        self._layouts = [_layout(table.columns, rules) for table in tables]
        self._masks = [
            {column.name: column.mask for column in table.columns if column.mask} for table in tables
        ]
        self._rules = rules
        self._decoders: dict[int, TableDecoder] = {}
        self._places: dict[int, list[int]] = {}  # of catalog columns in the stream's order
        self._together: MixedRowsDecoder | None = None  # of all decoders, once there is need

    def __len__(self) -> int:
        return len(self.tables)

    def announce(self, announced: TableSchema) -> None:
        """Accept a TABSCHEMA record: rows of its table can be decoded from now on.

        Raises:
            ProtocolViolation: the layout differs from the catalog, or is inconsistent.
        """
        known = 0 <= announced.table_id < len(self.tables)
        name = str(self.tables[announced.table_id].name) if known else f"number {announced.table_id}"
        masks = self._masks[announced.table_id] if known else {}
        decoder = TableDecoder(announced.columns, name, self._rules, masks)
        layout = _layout(parse_columns(announced.columns), self._rules)
        if not known or layout != self._layouts[announced.table_id]:
            raise ProtocolViolation(
                f"the server announces table {name} with columns that differ from its catalog:"
                f" {announced.columns[:500]!r}.",
                f"The table was altered: {NEW_STREAM}.",
                table=name,
            )
        if (decoder.fixed_bytes, decoder.variable_count) != (
            announced.fixed_bytes,
            announced.variable_columns,
        ):
            raise ProtocolViolation(
                f"the server announces {announced.fixed_bytes} fixed bytes and"
                f" {announced.variable_columns} variable columns for table {name}, but its column list"
                f" has {decoder.fixed_bytes} and {decoder.variable_count}.",
                "Report this error with the table's definition.",
                table=name,
            )
        self._decoders[announced.table_id] = decoder
        streamed = [column.name for column in decoder.columns]
        names = self.captured[announced.table_id].names
        self._places[announced.table_id] = [streamed.index(name) for name in names]
        self._together = None

    def require_known(self, changes: Changes) -> Changes:
        """Return the records; reject records of tables that are not captured.

        Raises:
            ProtocolViolation: names the first of them.
        """
        foreign = (changes.table_ids < 0) | (changes.table_ids >= len(self.tables))
        if foreign.any():
            row = int(np.flatnonzero(foreign)[0])
            raise ProtocolViolation(
                f"the row at {show(int(changes.sequence_numbers[row]))} belongs to table number"
                f" {int(changes.table_ids[row])}, which is not captured.",
                "The stream is corrupt, and a retry would read the same bytes: report the server's"
                " version.",
            )
        return changes

    def captured_columns(self, number: int, names: Sequence[str], rows: Changes) -> list[pa.Array]:
        """Return some columns of records that all have a row of a table; other columns are not decoded.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        if rows.read is not None:
            return [rows.read.column(name) for name in names]
        decoder = self.decoder(number, rows)
        where = rows.where
        return decoder.decode_only(names, payloads(mixed_rows(rows), decoder, where), where)

    def all_columns(self, number: int, rows: Changes) -> list[pa.Array]:
        """Return all captured columns of such records in table order.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        if rows.read is not None:
            return list(rows.read.columns)
        decoder, where = self.decoder(number, rows), rows.where
        decoded = decoder.decode(payloads(mixed_rows(rows), decoder, where), where)
        return [decoded.column(name) for name in self.captured[number].names]

    def in_table_order(self, number: int, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Reorder a table's captured columns from stream order to table order."""
        return [columns[place] for place in self._places[number]]

    def decoder(self, number: int, changes: Changes) -> TableDecoder:
        """Return the decoder of one table's rows.

        Raises:
            ProtocolViolation: the stream has not announced the table.
        """
        decoder = self._decoders.get(number)
        if decoder is None:
            raise ProtocolViolation(
                f"a row of table {self.tables[number].name} at"
                f" {changes.where(int(np.argmax(changes.table_ids == number)))} arrived before the"
                " table's description.",
                "The stream is corrupt, and a retry would read the same bytes: report the server's"
                " version.",
            )
        return decoder

    def decoder_of_all(self, changes: Changes) -> MixedRowsDecoder:
        """Return the decoder of the rows of all tables that occur.

        Raises:
            ProtocolViolation: the stream has not announced one of them.
        """
        for number in np.flatnonzero(np.bincount(changes.table_ids)).tolist():
            self.decoder(number, changes)
        if self._together is None:
            self._together = MixedRowsDecoder(self._decoders)
        return self._together


def table_schema(table: Table, rules: DecodeRules) -> pa.Schema:
    """Return a table's columns in table order.

    Raises:
        UnsupportedColumn: a column's type is not supported.
    """
    name = str(table.name)
    return pa.schema(
        [(column.name, compile_type(column, name, rules).arrow_type) for column in table.columns]
    )


def _layout(columns: Sequence[Column], rules: DecodeRules) -> list[tuple[str, str, str]]:
    """Return names with everything that determines how their bytes are decoded, sorted.

    The catalog lists columns in table order, the stream lists fixed-width columns first.
    """
    plain = (replace(column, mask=None) for column in columns)
    kinds = [(column.name, compile_type(column, "?", rules)) for column in plain]
    return sorted(
        (name, str(kind.arrow_type), str(getattr(kind, "layout", ""))) for name, kind in kinds
    )


def mixed_rows(changes: Changes) -> MixedRows:
    """Return the rows of records of any tables, for a decoder."""
    return MixedRows(
        changes.data,
        changes.table_ids,
        changes.starts + ROW_HEADER_BYTES,
        changes.starts + changes.header_sizes,
        changes.payload_sizes,
    )
