"""shape=rows: a table's columns and metadata columns, one row per change, two for an update.

Rule: the schema depends only on options and tables, not on data, so that it is known at load(). One
table is flat; several are one struct column each, NULL except the change's own. Only as many rows are
made at a time as fit in some 30 MB with every NULL written out: each batch costs microseconds a column.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.object_readers import is_content_type
from informix_capture_client.records import Bits, Integers
from informix_capture_client.shapes.metadata import METADATA, metadata_columns, metadata_schema
from informix_capture_client.shapes.stored_changes import (
    AFTER,
    BEFORE,
    DELETE,
    TRUNCATE,
    ChangeGroup,
)
from informix_capture_client.sql_names import read_paths

_VALUES_AT_ONCE = 1 << 22  # of a delivered batch, NULLs counted: some 30 MB
_MOST_ROWS = 8192
_SHOWN = 60  # characters of a name that is none


class DeliveredTable(NamedTuple):
    """A captured table as a reader sees it: its name as database:owner.table, and its columns."""

    name: str
    columns: pa.Schema


@functools.lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, str, str]:
    """Return the parts of database:owner.table, without the quotes of those that are delimited.

    Raises:
        DataLoss: it is not the name of a table.
    """
    database, _, rest = name.partition(":")
    try:
        ((*owner, table),) = read_paths(rest)
    except ValueError:
        raise DataLoss(
            f"a segment has a table {name[:_SHOWN]!r}, which is not database:owner.table.",
            "Use the version that wrote it, or a later one.",
        ) from None
    return database, "".join(owner), table


def rows_schema(tables: Sequence[DeliveredTable], form: RowForm) -> pa.Schema:
    """Return the schema of shape=rows.

    Raises:
        BadOption: a column has the name of a metadata column, or two tables share a column.
    """
    metadata = metadata_schema(form.metadata, len(tables))
    fields = table_fields(tables)
    if taken_name := _same_to_spark([*(field.name for field in fields), *metadata.names]):
        raise BadOption(
            f"column {taken_name!r} has the same name as another column or a metadata column; Spark"
            " ignores case in column names.",
            "Exclude it with option columns, or capture the table together with another one: then"
            " each table is a separate struct.",
        )
    return pa.schema([*fields, *metadata])


def table_fields(tables: Sequence[DeliveredTable]) -> list[pa.Field]:
    """Return the columns of one table, or one struct for each of several."""
    if len(tables) == 1:
        return list(tables[0].columns)
    names = struct_names([table.name for table in tables])
    return [
        pa.field(name, pa.struct(list(table.columns)))
        for name, table in zip(names, tables, strict=True)
    ]


def struct_names(tables: Sequence[str]) -> list[str]:
    """Return the name of each table's struct column; colliding names are prefixed with their owner.

    Raises:
        BadOption: two tables would still have the same name.
    """
    parts = [parts_of(name) for name in tables]
    plain = Counter(table for _, _, table in parts)
    names = [table if plain[table] == 1 else f"{owner}_{table}" for _, owner, table in parts]
    if twice := _same_to_spark(names):
        raise BadOption(
            f"two tables would share the struct column {twice!r}.",
            "Capture one of them in a separate query.",
        )
    return names


def _same_to_spark(names: Sequence[str]) -> str | None:
    """Return a name that occurs more than once; Spark ignores case in column names."""
    counts = Counter(name.lower() for name in names)
    return next((name for name in names if counts[name.lower()] > 1), None)


def is_flat(fields: Sequence[pa.Field]) -> bool:
    """Return whether delivered columns are those of one table, not a struct for each of several."""
    kinds = [field.type for field in fields]
    # The contents of large objects are structs too, and may be all that a table has.
    return not all(map(pa.types.is_struct, kinds)) or all(map(is_content_type, kinds))


class TableColumns:
    """The delivered columns of tables: those of one table, or one struct for each of several.

    Args:
        fields: the columns.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self.is_flat = is_flat(fields)
        self._fields = list(fields)
        self._row = pa.struct(self._fields)
        self._place_of = {field.name: place for place, field in enumerate(fields)}
        self._nulls: list[pa.Array] = []
        self._null_rows = 0

    def of(
        self, group: ChangeGroup, changes: Integers, positions: Integers, length: int
    ) -> list[pa.Array]:
        """Return the rows of some changes at these positions of columns, NULL elsewhere.

        Raises:
            DataLoss: rows of a table, or of its previous types, cannot be delivered.
        """
        if self.is_flat:
            return self._flat(group, changes, positions, length)
        columns = self._of_nulls(length)
        for place, mine in group.by_table(changes):
            name = group.tables[place]
            column = self._column_of(name)
            spread = _spread(group.rows_of(place, changes[mine]), positions[mine], length)
            columns[column] = _in_layout(spread, self._fields[column].type, name)
        return columns

    def _flat(
        self, group: ChangeGroup, changes: Integers, positions: Integers, length: int
    ) -> list[pa.Array]:
        if len(group.tables) > 1:
            raise _not_delivered(group.tables[1])
        if not len(changes):
            return [pa.nulls(length, field.type) for field in self._fields]
        rows = _spread(group.rows_of(0, changes), positions, length)
        if not {field.name for field in rows.type} & self._place_of.keys():
            raise _not_delivered(group.tables[0])
        return list(_in_layout(rows, self._row, group.tables[0]).flatten())

    def _of_nulls(self, length: int) -> list[pa.Array]:
        """Return a column of NULLs for each table; all of them share one buffer of zeros."""
        if length > self._null_rows:
            self._null_rows = length
            nulls = pa.nulls(length, self._row)
            self._nulls = [nulls.field(place) for place in range(len(self._fields))]
        return [nulls.slice(0, length) for nulls in self._nulls]

    def _column_of(self, name: str) -> int:
        """Return the current column of a table; tables may have joined or left since it was stored.

        A table that shares its name with one that joined later is delivered with its owner as prefix.
        """
        _, owner, table = parts_of(name)
        for column in (table, f"{owner}_{table}"):
            if column in self._place_of:
                return self._place_of[column]
        raise _not_delivered(name)


def _not_delivered(name: str) -> DataLoss:
    return DataLoss(
        f"the spool has rows of {name}, which option table does not name.",
        "Run the query once with the previous options, then change them.",
    )


def _spread(rows: pa.StructArray, positions: Integers, length: int) -> pa.StructArray:
    """Return rows at the given positions of a column, NULL elsewhere."""
    if len(rows) == length:
        return rows
    places, absent = np.zeros(length, np.int64), np.ones(length, bool)
    places[positions], absent[positions] = np.arange(len(rows)), False
    return rows.take(pa.array(places, mask=absent))


def _in_layout(rows: pa.StructArray, wanted: pa.StructType, table: str) -> pa.StructArray:
    """Return a table's rows with its current columns: later columns are NULL.

    Raises:
        DataLoss: a column had another type when the rows were stored.
    """
    if rows.type == wanted:
        return rows
    columns: list[pa.Array] = []
    for field in wanted:
        place = rows.type.get_field_index(field.name)
        columns.append(rows.field(place) if place >= 0 else pa.nulls(len(rows), field.type))
        if columns[-1].type != field.type:
            raise DataLoss(
                f"the spool has rows of {table} in which column {field.name} is {columns[-1].type},"
                f" but it is delivered as {field.type}.",
                "Run the query once with the previous options, then change them.",
            )
    mask = rows.is_null() if rows.null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=mask)


class RowShape:
    """Makes rows with the columns of `schema`, which is that of `rows_schema`."""

    def __init__(self, form: RowForm, schema: pa.Schema) -> None:
        self._schema, self._form = schema, form
        fields = data_fields(schema)
        self._metadata = schema.names[len(fields) :]
        self._tables = TableColumns(fields)
        self._step = rows_at_once(schema)

    def batches(self, group: ChangeGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group, in order."""
        chosen = delivered_changes(group, self._form)
        for first, end in pairwise([*range(0, len(chosen), self._step), len(chosen)]):
            some = chosen[first:end]
            positions = np.flatnonzero(group.kinds[some] != TRUNCATE)
            rows = self._tables.of(group, some[positions], positions, len(some))
            columns = [*rows, *metadata_columns(group, some, self._metadata)]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def data_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns of tables in a schema of shape=rows."""
    first = schema.get_field_index(METADATA.names[0])  # no column of a table may have this name
    return [schema.field(place) for place in range(first)]


class Images(NamedTuple):
    """The images of events, where an update is one row.

    Attributes:
        before: the change that has the row before each event.
        has_before, has_after: whether the event shows the row before it, and that after it.
    """

    before: Integers
    has_before: Bits
    has_after: Bits

    @classmethod
    def of(cls, group: ChangeGroup, events: Integers, form: RowForm) -> Images:
        """Return the images of events, which are the second images of updates."""
        kinds = group.kinds[events]
        is_update, is_delete = kinds == AFTER, kinds == DELETE
        has_before = (is_delete | is_update) if form.before_image else is_delete
        return cls(events - is_update, has_before, ~is_delete & (kinds != TRUNCATE))


def delivered_changes(
    group: ChangeGroup, form: RowForm, *, one_row_per_update: bool = False
) -> Integers:
    """Return the changes that become rows; of an update delivered as one row, the second image."""
    if group.is_compared and not form.table_events:
        return np.zeros(0, np.int64)
    is_delivered = np.ones(len(group), bool)
    if one_row_per_update and len(group) and group.kinds[0] == AFTER:
        raise ValueError("an update is cut, whose images this shape joins")
    if one_row_per_update or not form.before_image:
        is_delivered &= group.kinds != BEFORE
    if form.truncate != "emit":
        is_delivered &= group.kinds != TRUNCATE
    if not form.table_events:
        is_delivered &= group.kinds <= TRUNCATE
    return np.flatnonzero(is_delivered)


def rows_at_once(schema: pa.Schema) -> int:
    """Return how many rows of a schema are made at a time."""
    return max(min(_VALUES_AT_ONCE // max(sum(_leaves(f.type) for f in schema), 1), _MOST_ROWS), 1)


def _leaves(kind: pa.DataType) -> int:
    """Return how many values a row has in a column: one, or those of a struct's fields."""
    return sum(_leaves(field.type) for field in kind) if pa.types.is_struct(kind) else 1
