"""The captured tables as the stream describes them, and their rows as columns.

Rule: a table's id in the stream is its place in the list of tables. What a TABSCHEMA record announces
must be what the catalog said: a row is never read by a layout that nobody has compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import NEW_STREAM, ProtocolViolation
from informix_capture_client.object_readers import (
    LOCATOR_BYTES,
    NOWHERE,
    FoundContents,
    ObjectPlace,
    Reselecting,
    contents_of,
    delivered_schema,
    is_content_type,
)
from informix_capture_client.positions import show
from informix_capture_client.records import (
    BOUNDS,
    ROW_HEADER_BYTES,
    Bits,
    RecordKind,
    TableSchema,
    is_one_of,
)
from informix_capture_client.shapes.change_columns import Changes, ChunkRows, KeyObserver
from informix_capture_client.values import (
    BadValue,
    Column,
    MixedRows,
    TableDecoder,
    TablesDecoder,
    TypedCells,
    bad_value,
    compile_type,
    parse_columns,
    payloads,
)

_WITH_CONTENTS = is_one_of(
    RecordKind.INSERT, RecordKind.UPDAFT
)  # rows whose objects may be there still


class CapturedTables:
    """Decodes the rows of a fixed list of tables.

    Raises:
        UnsupportedColumn: a column's type cannot be carried.
    """

    def __init__(self, tables: Sequence[Table], rules: DecodeRules) -> None:
        self.tables = tuple(tables)
        self._captured = [table_schema(table, rules) for table in tables]
        self.schemas = [
            delivered_schema(table, schema, rules)
            for table, schema in zip(tables, self._captured, strict=True)
        ]
        names = ([one.name for one in schema if is_content_type(one.type)] for schema in self.schemas)
        self._content_names = {number: found for number, found in enumerate(names) if found}
        self.contents = FoundContents()
        self.reselecting: Mapping[int, Reselecting] = {}  # of tables whose handles are not used
        self.definitions: Sequence[str] = ()  # of all tables, where rows carry them
        self.structs = [pa.struct(list(schema)) for schema in self.schemas]
        self._places: dict[int, list[int]] = {}  # of catalog columns in the stream's order
        self._layouts = [_layout(table.columns, rules) for table in tables]
        self._rules = rules
        self._decoders: dict[int, TableDecoder] = {}
        self.announcements = 0  # so far: what was made of a table's description may be old
        self._together: TablesDecoder | None = None  # of all decoders, once there is need

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
                f" makes {decoder.fixed_bytes} and {decoder.variable_count}.",
                "Report this with the table's definition.",
                table=name,
            )
        self._decoders[announced.table_id] = decoder
        self.announcements += 1
        streamed = self.stream_columns(announced.table_id)
        names = self._captured[announced.table_id].names
        self._places[announced.table_id] = [streamed.index(name) for name in names]
        self._together = None

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

    def row_of_nulls(self, number: int) -> pa.Table:
        """Return one row of a table, whose captured columns are all NULL."""
        schema = self._captured[number]
        return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)

    def require_columns(self, chunk: ChunkRows) -> None:
        """Refuse rows that a snapshot has read with other columns than those of their table.

        Raises:
            ValueError: names the table.
        """
        found, wanted = chunk.rows.schema, self._captured[chunk.number]
        if (found.names, found.types) != (wanted.names, wanted.types):
            table = self.tables[chunk.number].name
            raise ValueError(f"rows of {table} were read as {found}, not as {wanted}")

    def rows_of(self, table_id: int, changes: Changes) -> Bits:
        """Return which records hold a row of a table; a TRUNCATE does not."""
        mine: Bits = (changes.table_ids == table_id) & (changes.kinds != RecordKind.TRUNCATE)
        return mine

    def columns_of(self, table_id: int, changes: Changes, wanted: Bits) -> list[pa.Array]:
        """Return a table's columns for all of `changes`, NULL where a record is not `wanted`.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        schema = self.schemas[table_id]
        if not wanted.any():
            return [pa.nulls(len(wanted), field.type) for field in schema]
        all_wanted = bool(wanted.all())
        mine = changes if all_wanted else changes.only(wanted)
        columns = self._columns(table_id, mine)
        if all_wanted:
            return columns
        places = pa.array(np.cumsum(wanted) - 1, mask=~wanted)
        return [column.take(places) for column in columns]

    def _columns(self, table_id: int, rows: Changes) -> list[pa.Array]:
        """Return a table's columns of records that all hold a row of it."""
        if rows.read is not None:
            return self._filled(table_id, list(rows.read.columns), rows)
        decoder = self._decoder(table_id, rows)
        decoded = decoder.decode(payloads(_mixed_rows(rows), decoder, rows.where), rows.where)
        columns = [decoded.column(name) for name in self._captured[table_id].names]
        return self._filled(table_id, columns, rows)

    def _filled(self, table_id: int, columns: list[pa.Array], rows: Changes) -> list[pa.Array]:
        """Return columns in table order, with contents in the place of handles, and of no handle."""
        columns = list(columns)
        for place, _ in self.tables[table_id].reselected:
            columns.insert(place, None)
        for place, declared in enumerate(self.schemas[table_id]):
            if is_content_type(declared.type):
                columns[place] = self._contents_of(table_id, declared, columns[place], rows)
        return columns

    def _contents_of(
        self, table_id: int, declared: pa.Field, handles: pa.Array | None, rows: Changes
    ) -> pa.StructArray:
        unchanged = self.contents.unchanged.get((table_id, declared.name), ())
        wanted = _WITH_CONTENTS[rows.kinds] & ~np.isin(rows.sequence_numbers, unchanged)
        places = self._object_places(table_id, declared.name, handles, rows)
        try:
            return contents_of(places, wanted, self.contents.found, declared.type, self._rules)
        except BadValue as bad:
            name = str(self.tables[table_id].name)
            raise bad_value(name, declared.name, rows.where(bad.row), bad) from None

    def _object_places(
        self, number: int, name: str, handles: pa.Array | None, rows: Changes
    ) -> Sequence[ObjectPlace | None]:
        """Return where the objects of rows are: behind their handles, or in the rows of their keys."""
        again = self.reselecting.get(number)
        if handles is None:
            if again is None:
                return [NOWHERE] * len(rows)
            return again.of_rows(name, self._only(number, again.key, rows))
        found = handles.to_pylist()
        if again is None or name not in again.statements:
            return [handle and handle[-LOCATOR_BYTES:] for handle in found]
        by_key = again.of_rows(name, self._only(number, again.key, rows))
        return [handle and place for handle, place in zip(found, by_key, strict=True)]

    def objects(self, changes: Changes, *, skips_unchanged: bool) -> list[list[ObjectPlace]]:
        """Return which objects are to be read for each record, and take down which are not.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        found: list[list[ObjectPlace]] = [[] for _ in range(len(changes))]
        self.contents = FoundContents()
        for number, names in self._content_names.items():
            if not len(where := np.flatnonzero(self.rows_of(number, changes))):
                continue
            rows = changes.only(where)
            for name, handles in self._handles(number, names, rows):
                places = self._object_places(number, name, handles, rows)
                known = handles.to_pylist() if handles is not None and skips_unchanged else []
                unchanged = _unchanged(known, rows) if known else set()
                sequences = rows.sequence_numbers.tolist()
                self.contents.unchanged[number, name] = [sequences[row] for row in unchanged]
                for row in np.flatnonzero(_WITH_CONTENTS[rows.kinds]).tolist():
                    if (place := places[row]) and row not in unchanged:  # neither NULL nor NOWHERE
                        found[where[row]].append(place)
        return found

    def _handles(
        self, number: int, names: Sequence[str], rows: Changes
    ) -> Iterator[tuple[str, pa.Array | None]]:
        """Yield columns of contents with their handles; a TEXT or BYTE has none."""
        captured = [name for name in names if name in self._captured[number].names]
        yield from zip(captured, self._only(number, captured, rows) if captured else (), strict=True)
        yield from ((column.name, None) for _, column in self.tables[number].reselected)

    def _only(self, number: int, names: Sequence[str], rows: Changes) -> list[pa.Array]:
        """Return some columns of records that all hold a row of a table, as they were captured."""
        if rows.read is not None:
            return [rows.read.column(name) for name in names]
        decoder = self._decoder(number, rows)
        return decoder.decode_only(names, payloads(_mixed_rows(rows), decoder, rows.where), rows.where)

    def struct_of(self, table_id: int, changes: Changes, wanted: Bits) -> pa.StructArray:
        """Return a table's columns as one struct, NULL where a record is not `wanted`."""
        return pa.StructArray.from_arrays(
            self.columns_of(table_id, changes, wanted),
            fields=list(self.schemas[table_id]),
            mask=None if wanted.all() else pa.array(~wanted),
        )

    def rows_by_table(self, images: Changes) -> dict[int, pa.StructArray]:
        """Return the rows of each table that occurs, in their order; each record is to hold a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        if images.read is not None:
            number = int(images.table_ids[0])
            return {number: self.struct_of(number, images, np.ones(len(images), bool))}
        decoder = self._decoder_of_all(images)
        return {
            number: self._in_table_order(number, columns, images)
            for number, columns in decoder.by_table(_mixed_rows(images), images.where).items()
        }

    def show_keys(self, changes: Changes, observer: KeyObserver) -> None:
        """Show an observer the keys of changes, of both images of each; nothing else is decoded.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        for number, names in observer.key_columns().items():
            images = self.rows_of(number, changes)
            if images.any():
                mine = changes.only(images)
                decoder, where = self._decoder(number, mine), mine.where
                rows = payloads(_mixed_rows(mine), decoder, where)
                observer.touch(number, decoder.decode_only(names, rows, where), mine.commits)
            truncates = changes.only(
                (changes.table_ids == number) & (changes.kinds == RecordKind.TRUNCATE)
            )
            if len(truncates):
                observer.truncate(number, int(truncates.commits.max()))

    def cells(self, images: Changes) -> Iterator[TypedCells]:
        """Yield the cells of all rows, type by type; each record is to hold a row.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        for cells in self._decoder_of_all(images).cells(_mixed_rows(images), images.where):
            yield self._cells_filled(cells, images)
        for number, table in enumerate(self.tables):
            for place, (_, column) in enumerate(table.reselected, len(table.columns)):
                yield from self._cells_beside(number, place, column.name, images)

    def _cells_beside(
        self, number: int, place: int, name: str, images: Changes
    ) -> Iterator[TypedCells]:
        """Yield the cells of a TEXT or BYTE, which the stream does not have."""
        where = np.flatnonzero(images.table_ids == number)
        if len(where):
            declared = self.schemas[number].field(name)
            values = self._contents_of(number, declared, None, images.only(where))
            slot = np.array([number]), np.array([place])
            yield TypedCells(values, where, *slot, np.array([0, len(where)]))

    def _cells_filled(self, cells: TypedCells, images: Changes) -> TypedCells:
        """Return cells with contents in the place of handles; all of them are of one type."""
        # Of the first one alone: with hundreds of tables each type has thousands of columns.
        if not is_content_type(self._field(int(cells.tables[0]), int(cells.columns[0])).type):
            return cells
        slots = zip(cells.tables.tolist(), cells.columns.tolist(), strict=True)
        fields = [self._field(table, column) for table, column in slots]
        bounds = pairwise(cells.bounds.tolist())
        parts = [
            self._contents_of(table, field, cells.values[first:end], images.only(cells.rows[first:end]))
            for table, field, (first, end) in zip(cells.tables.tolist(), fields, bounds, strict=True)
        ]
        return replace(cells, values=pa.concat_arrays(parts))

    def _field(self, table_id: int, column: int) -> pa.Field:
        return self.schemas[table_id].field(self.stream_columns(table_id)[column])

    def stream_columns(self, table_id: int) -> list[str]:
        """Return a table's column names, to which cells refer: those of TABSCHEMA first."""
        streamed = [column.name for column in self._decoders[table_id].columns]
        return [*streamed, *(column.name for _, column in self.tables[table_id].reselected)]

    def _in_table_order(
        self, table_id: int, columns: Sequence[pa.Array], images: Changes
    ) -> pa.StructArray:
        ordered = [columns[place] for place in self._places[table_id]]
        if table_id in self._content_names:
            mine = images.only(images.table_ids == table_id)
            ordered = self._filled(table_id, ordered, mine)
        count = len(columns[0])
        return pa.Array.from_buffers(self.structs[table_id], count, [None], 0, children=ordered)

    def _decoder_of_all(self, changes: Changes) -> TablesDecoder:
        for table_id in np.flatnonzero(np.bincount(changes.table_ids)).tolist():
            self._decoder(table_id, changes)
        if self._together is None:
            self._together = TablesDecoder(self._decoders)
        return self._together

    def _decoder(self, table_id: int, changes: Changes) -> TableDecoder:
        decoder = self._decoders.get(table_id)
        if decoder is None:
            raise ProtocolViolation(
                f"a row of table {self.tables[table_id].name} at"
                f" {changes.where(int(np.argmax(changes.table_ids == table_id)))} came before the table"
                " was described.",
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


def _unchanged(handles: Sequence[bytes | None], rows: Changes) -> set[int]:
    """Return which rows are images after an update that have the handle of the image before."""
    after = np.flatnonzero(rows.kinds == RecordKind.UPDAFT).tolist()
    return {row for row in after if row and handles[row] == handles[row - 1]}


def _layout(columns: Sequence[Column], rules: DecodeRules) -> list[tuple[str, str, str]]:
    """Return names with everything that decides how their bytes are read, in no order.

    The catalog lists columns in table order, the stream those of fixed width first.
    """
    kinds = [(column.name, compile_type(column, "?", rules)) for column in columns]
    return sorted(
        (name, str(kind.arrow_type), str(getattr(kind, "layout", ""))) for name, kind in kinds
    )


def _mixed_rows(changes: Changes) -> MixedRows:
    return MixedRows(
        changes.data,
        changes.table_ids,
        changes.starts + ROW_HEADER_BYTES,
        changes.starts + changes.header_sizes,
        changes.payload_sizes,
    )
