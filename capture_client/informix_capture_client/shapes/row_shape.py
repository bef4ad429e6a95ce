"""The default shape: a table's columns and metadata columns.

Rule: the schema depends only on options and catalog, not on data, so that it is known at load().
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes, RangeKind
from informix_capture_client.shapes.grouped_form import GroupedForm, GroupedShape
from informix_capture_client.shapes.metadata import ChangeMetadata, metadata_schema
from informix_capture_client.shapes.stored_form import StoredForm, shared_names

CHANGE_TYPES: dict[int, str] = {
    RecordKind.INSERT: "insert",
    RecordKind.DELETE: "delete",
    RecordKind.UPDBEF: "update_preimage",
    RecordKind.UPDAFT: "update_postimage",
    RecordKind.TRUNCATE: "truncate",
    **{kind: kind.name.lower() for kind in RangeKind},
}


def grouped_rows(metadata: ChangeMetadata) -> GroupedShape:
    """Return the grouped form of changes: all kinds except TRUNCATE have a row."""
    return GroupedShape(
        delivered=[None, *metadata.schema.names],
        about=metadata.fields_of_coded,
        shared=shared_names(metadata.shared),
        codes={"_change_type": metadata.names},
        kind="_change_type",
        images=[[] if kind == RecordKind.TRUNCATE else [""] for kind in CHANGE_TYPES],
        named="_table",
    )


class RowShape:
    """One row per change, two for an update; one table flat, several as one struct each.

    Raises:
        BadOption: a column has the name of a metadata column.
    """

    def __init__(self, tables: CapturedTables, metadata: str = "full") -> None:
        self._tables = tables
        self.is_grouped = len(tables) > 1
        self._metadata = ChangeMetadata(tables, CHANGE_TYPES, metadata_schema(metadata, len(tables)))
        about = self._metadata.schema
        self.schema = pa.schema([*_data_fields(tables, about), *about])
        self._plain = StoredForm(self.schema, self._metadata.texts, self._metadata.shared)
        names = struct_names(tables.tables)
        self._grouped = GroupedForm(grouped_rows(self._metadata), tables, names)

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of the batches of `encode`."""
        return self._grouped.schema if self.is_grouped else self._plain.schema

    def begin(self, present: Sequence[int]) -> None:
        """Start a new sequence of transactions; all records are of the tables `present`."""
        if self.is_grouped:
            self._grouped.begin(present)

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        if self.is_grouped:
            images = changes.only(changes.kinds != RecordKind.TRUNCATE)
            return self._grouped.batch(self._metadata.coded(changes), changes, images)
        rows = self._tables.columns_of(0, changes, changes.rows_of(0))
        return self._plain.batch([*rows, *self._metadata.columns(changes)], changes)


def struct_names(tables: Sequence[Table]) -> list[str]:
    """Return the name of each table's struct column; colliding names are prefixed with their owner.

    Raises:
        BadOption: two tables would still have the same name.
    """
    plain = Counter(table.name.table for table in tables)
    names = [
        t.name.table if plain[t.name.table] == 1 else f"{t.name.owner}_{t.name.table}" for t in tables
    ]
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


def table_fields(tables: CapturedTables) -> list[pa.Field]:
    """Return one struct field per table."""
    names = struct_names(tables.tables)
    return [
        pa.field(name, pa.struct(list(schema)))
        for name, schema in zip(names, tables.schemas, strict=True)
    ]


def _data_fields(tables: CapturedTables, metadata: pa.Schema) -> list[pa.Field]:
    fields = list(tables.schemas[0]) if len(tables) == 1 else table_fields(tables)
    if taken := _same_to_spark([*(field.name for field in fields), *metadata.names]):
        raise BadOption(
            f"column {taken!r} has the same name as another column or a metadata column; Spark"
            " ignores case in column names.",
            "Exclude it with option columns, or capture the table together with another one: then"
            " each table is a separate struct.",
        )
    return fields
