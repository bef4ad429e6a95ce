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
from informix_capture_client.shapes.grouped_form import CODE, GroupedForm, GroupedShape, codes_of
from informix_capture_client.shapes.stored_form import StoredForm, Texts, shared_names
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

_GROUPED = GroupedShape(
    delivered=[None, *METADATA.names],
    about=[
        pa.field("_change_type", CODE),
        *(METADATA.field(name) for name in ("_change_ordinal", "_change_seq", "_snapshot")),
    ],
    shared=shared_names(_SHARED),
    codes={"_change_type": list(_CHANGE_TYPES.values())},
    kind="_change_type",
    images=[[] if kind == Kind.TRUNCATE else [""] for kind in _CHANGE_TYPES],
    named="_table",
)


class RowShape:
    """One row per change, an update as two; one table flat, several as one struct each.

    Raises:
        BadOption: a column has the name of a metadata column.
    """

    with_bounds = False

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = tables
        self.is_grouped = len(tables) > 1
        self.schema = pa.schema([*_data_fields(tables), *METADATA])
        self._plain = StoredForm(self.schema, texts=_TEXTS, shared=_SHARED)
        self._grouped = GroupedForm(_GROUPED, tables, struct_names(tables.tables))
        self._names = Texts([str(table.name) for table in tables.tables])
        self._change_types = Texts(list(_CHANGE_TYPES.values()))
        self._codes = np.zeros(max(_CHANGE_TYPES) + 1, np.int64)
        self._codes[list(_CHANGE_TYPES)] = np.arange(len(_CHANGE_TYPES))

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of what `encode` returns."""
        return self._grouped.schema if self.is_grouped else self._plain.schema

    def begin(self, present: Sequence[int]) -> None:
        """Begin with the records of another sequence of transactions, all of these tables."""
        if self.is_grouped:
            self._grouped.begin(present)

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        codes, about = self._codes[changes.kinds], self._about(changes)
        if self.is_grouped:
            images = changes.only(changes.kinds != Kind.TRUNCATE)
            return self._grouped.batch([codes_of(codes), *about], changes, images)
        rows = self._tables.columns_of(0, changes, self._tables.rows_of(0, changes))
        *places, snapshot = about
        names = self._names.of(changes.table_ids)
        return self._plain.batch(
            [*rows, self._change_types.of(codes), *places, names, snapshot], changes
        )

    def _about(self, changes: Changes) -> list[pa.Array]:
        """Return ordinal, place in the log and whether it is of a snapshot, for each change."""
        nothing = np.zeros(len(changes), bool)
        return [
            fixed_width(pa.int32(), changes.ordinals.astype(np.int32), nothing),
            fixed_width(pa.int64(), changes.sequence_numbers, nothing),
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
