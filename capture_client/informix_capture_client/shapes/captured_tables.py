"""The captured tables as the stream describes them, and their rows as columns.

Rule: a table's id in the stream is its place in the list of tables. What a TABSCHEMA record announces
must be what the catalog said: a row is never read by a layout that nobody has compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import show
from informix_capture_client.records import BOUNDS, ROW_HEADER_BYTES, Bits, Kind, TableSchema, gather
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.values import Column, Payloads, TableDecoder, compile_type, parse_columns


class CapturedTables:
    """Decodes the rows of a fixed list of tables.

    Raises:
        UnsupportedColumn: a column's type cannot be carried.
    """

    def __init__(self, tables: Sequence[Table], rules: DecodeRules) -> None:
        self.tables = tuple(tables)
        self.schemas = [table_schema(table, rules) for table in tables]
        self._layouts = [_layout(table.columns, rules) for table in tables]
        self._rules = rules
        self._decoders: dict[int, TableDecoder] = {}

    def __len__(self) -> int:
        return len(self.tables)

    def announce(self, announced: TableSchema) -> None:
        """Take a TABSCHEMA record: from here on rows of that table can be decoded.

        Raises:
            ProtocolViolation: the layout is not that of the catalog, or contradicts itself.
        """
        known = 0 <= announced.table_id < len(self.tables)
        name = str(self.tables[announced.table_id].name) if known else f"number {announced.table_id}"
        decoder = TableDecoder(announced.columns, name, self._rules)
        layout = _layout(parse_columns(announced.columns), self._rules)
        if not known or layout != self._layouts[announced.table_id]:
            raise ProtocolViolation(
                f"the server announces table {name} with other columns than its catalog:"
                f" {announced.columns[:500]!r}.",
                "The table was altered: start a new stream.",
                table=name,
            )
        if (decoder.fixed_bytes, decoder.variable_count) != (
            announced.fixed_bytes,
            announced.variable_columns,
        ):
            raise ProtocolViolation(
                f"the server announces {announced.fixed_bytes} fixed bytes and"
                f" {announced.variable_columns} variable columns for table {name}, but its column list"
                f" makes {decoder.fixed_bytes} and {decoder.variable_count}.",
                "Report this with the table's definition.",
                table=name,
            )
        self._decoders[announced.table_id] = decoder

    def require_known(self, changes: Changes) -> None:
        """Refuse records of tables that were not asked for.

        Raises:
            ProtocolViolation: names the first of them.
        """
        foreign = (changes.table_ids < 0) | (changes.table_ids >= len(self.tables))
        foreign &= ~BOUNDS[changes.kinds]
        if foreign.any():
            row = int(np.flatnonzero(foreign)[0])
            raise ProtocolViolation(
                f"the row at {show(int(changes.sequence_numbers[row]))} belongs to table number"
                f" {int(changes.table_ids[row])}, which was not asked for.",
                "The stream is corrupt; the same bytes would come again.",
            )

    def rows_of(self, table_id: int, changes: Changes) -> Bits:
        """Return which records hold a row of a table; a TRUNCATE does not."""
        mine: Bits = (changes.table_ids == table_id) & (changes.kinds != Kind.TRUNCATE)
        return mine

    def columns_of(self, table_id: int, changes: Changes, wanted: Bits) -> list[pa.Array]:
        """Return a table's columns for all of `changes`, NULL where a record is not `wanted`.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        schema = self.schemas[table_id]
        if not wanted.any():
            return [pa.nulls(len(wanted), field.type) for field in schema]
        decoder = self._decoder(table_id, changes)
        all_wanted = bool(wanted.all())
        decoded = decoder.decode(*_payloads(changes if all_wanted else changes.only(wanted), decoder))
        columns = [decoded.column(name) for name in schema.names]
        if all_wanted:
            return columns
        places = pa.array(np.cumsum(wanted) - 1, mask=~wanted)
        return [column.take(places) for column in columns]

    def struct_of(self, table_id: int, changes: Changes, wanted: Bits) -> pa.StructArray:
        """Return a table's columns as one struct, NULL where a record is not `wanted`."""
        return pa.StructArray.from_arrays(
            self.columns_of(table_id, changes, wanted),
            fields=list(self.schemas[table_id]),
            mask=None if wanted.all() else pa.array(~wanted),
        )

    def _decoder(self, table_id: int, changes: Changes) -> TableDecoder:
        decoder = self._decoders.get(table_id)
        if decoder is None:
            raise ProtocolViolation(
                f"a row of table {self.tables[table_id].name} at"
                f" {show(int(changes.sequence_numbers[0]))} came before the table was described.",
                "The stream is corrupt; the same bytes would come again.",
            )
        return decoder


def table_schema(table: Table, rules: DecodeRules) -> pa.Schema:
    """Return a table's columns in table order.

    Raises:
        UnsupportedColumn: a column's type cannot be carried.
    """
    name = str(table.name)
    return pa.schema(
        [(column.name, compile_type(column, name, rules).arrow_type) for column in table.columns]
    )


def _layout(columns: Sequence[Column], rules: DecodeRules) -> list[tuple[str, str, str]]:
    """Return names with everything that decides how their bytes are read, in no order.

    The catalog lists columns in table order, the stream those of fixed width first.
    """
    kinds = [(column.name, compile_type(column, "?", rules)) for column in columns]
    return sorted(
        (name, str(kind.arrow_type), str(getattr(kind, "layout", ""))) for name, kind in kinds
    )


def _payloads(changes: Changes, decoder: TableDecoder) -> tuple[Payloads, Any]:
    def where(row: int) -> str:
        return show(int(changes.sequence_numbers[row]))

    short = changes.header_sizes < ROW_HEADER_BYTES + 4 * decoder.variable_count
    if short.any():
        raise ProtocolViolation(
            f"a row of {decoder.table} at {where(int(np.flatnonzero(short)[0]))} has no room for the"
            f" sizes of {decoder.variable_count} variable columns.",
            "The stream is corrupt; the same bytes would come again.",
        )
    sizes = np.zeros((len(changes.starts), 0), np.int64)
    if decoder.variable_count:
        layout = np.dtype([("sizes", ">u4", (decoder.variable_count,))])
        stated = gather(changes.data, layout, changes.starts + ROW_HEADER_BYTES)
        sizes = stated["sizes"].astype(np.int64)
    starts = changes.starts + changes.header_sizes
    return Payloads(changes.data, starts, changes.payload_sizes, sizes), where
