"""The default shape: a table's columns and what is known about the change.

Rule: the schema depends on options and catalog only, never on data, so that it is known at load().
Names follow Delta's change data feed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption
from informix_capture_client.records import Kind
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.stored_form import StoredForm, Texts
from informix_capture_client.values import booleans, fixed_width

_INSTANT = pa.timestamp("us", "UTC")

METADATA = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", _INSTANT),
        ("_change_ordinal", pa.int32()),
        ("_change_seq", pa.int64()),
        ("_transaction_id", pa.int32()),
        ("_begin_timestamp", _INSTANT),
        ("_user_id", pa.int32()),
        ("_table", pa.string()),
        ("_snapshot", pa.bool_()),
    ]
)

_TEXTS = ("_change_type", "_table")
_SHARED = (
    "_commit_version",
    "_commit_timestamp",
    "_transaction_id",
    "_begin_timestamp",
    "_user_id",
)

_CHANGE_TYPES = {
    Kind.INSERT: "insert",
    Kind.DELETE: "delete",
    Kind.UPDBEF: "update_preimage",
    Kind.UPDAFT: "update_postimage",
    Kind.TRUNCATE: "truncate",
}


class RowShape:
    """One row per change, an update as two; one table flat, several as one struct each.

    Raises:
        BadOption: a column has the name of a metadata column.
    """

    with_bounds = False

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = tables
        self.schema = pa.schema([*_data_fields(tables), *METADATA])
        self._form = StoredForm(self.schema, texts=_TEXTS, shared=_SHARED)
        self.stored_schema = self._form.schema
        self._names = Texts([str(table.name) for table in tables.tables])
        self._change_types = Texts(list(_CHANGE_TYPES.values()))
        self._codes = np.zeros(max(_CHANGE_TYPES) + 1, np.int64)
        self._codes[list(_CHANGE_TYPES)] = np.arange(len(_CHANGE_TYPES))

    def begin(self) -> None:
        """Begin with the records of another sequence of transactions."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        return self._form.batch([*self._data_columns(changes), *self._metadata(changes)], changes)

    def _data_columns(self, changes: Changes) -> list[pa.Array]:
        tables = self._tables
        wanted = [tables.rows_of(number, changes) for number in range(len(tables))]
        if len(tables) == 1:
            return tables.columns_of(0, changes, wanted[0])
        return [tables.struct_of(number, changes, mine) for number, mine in enumerate(wanted)]

    def _metadata(self, changes: Changes) -> list[pa.Array]:
        """Return what is known about each change, but for what its transaction shares."""
        nothing = np.zeros(len(changes), bool)
        return [
            self._change_types.of(self._codes[changes.kinds]),
            fixed_width(pa.int32(), changes.ordinals.astype(np.int32), nothing),
            fixed_width(pa.int64(), changes.sequence_numbers, nothing),
            self._names.of(changes.table_ids),
            booleans(nothing, nothing),
        ]


def struct_names(tables: Sequence[Table]) -> list[str]:
    """Return the name of each table's struct column; names that collide get their owner in front.

    Raises:
        BadOption: two tables would still have one name.
    """
    plain = Counter(table.name.table for table in tables)
    names = [
        t.name.table if plain[t.name.table] == 1 else f"{t.name.owner}_{t.name.table}" for t in tables
    ]
    if twice := _same_to_spark(names):
        raise BadOption(
            f"two tables would share the struct column {twice!r}.",
            "Capture one of them in a query of its own.",
        )
    return names


def _same_to_spark(names: Sequence[str]) -> str | None:
    """Return a name that stands more than once; Spark does not tell upper case from lower."""
    counts = Counter(name.lower() for name in names)
    return next((name for name in names if counts[name.lower()] > 1), None)


def table_fields(tables: CapturedTables) -> list[pa.Field]:
    """Return one struct field per table."""
    names = struct_names(tables.tables)
    return [
        pa.field(name, pa.struct(list(schema)))
        for name, schema in zip(names, tables.schemas, strict=True)
    ]


def _data_fields(tables: CapturedTables) -> list[pa.Field]:
    fields = list(tables.schemas[0]) if len(tables) == 1 else table_fields(tables)
    if taken := _same_to_spark([*(field.name for field in fields), *METADATA.names]):
        raise BadOption(
            f"column {taken!r} has the name of another column, or of one that every row gets; Spark"
            " does not tell upper case from lower.",
            "Leave it out with option columns, or capture the table together with another one: then"
            " each table is a struct of its own.",
        )
    return fields
