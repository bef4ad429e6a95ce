"""The target of each captured table: its name, its columns, and the key that identifies a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.object_readers import delivered_schema
from informix_capture_client.shapes import table_schema
from informix_capture_client.sql_names import quoted
from informix_cdc.lake.table_changes import lake_type
from informix_cdc.options import SourceOptions
from informix_cdc.postgresql import ColumnType, column_type
from informix_cdc.server import MASKED, SourceTables, TableDefinition, table_definitions

_LARGE_OBJECTS = ("BLOB", "CLOB", "TEXT", "BYTE")


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column, as declared in the catalog and as in the rows of the stream.

    Attributes:
        declared: the Informix type, in upper case.
        is_nullable: whether Informix allows NULL.
    """

    name: str
    declared: str
    type: pa.DataType
    is_nullable: bool

    @property
    def may_be_null(self) -> bool:
        """Whether a value may be NULL: also a masked one, and that of a large object."""
        is_exact = not self.declared.endswith(MASKED) and self.declared not in _LARGE_OBJECTS
        return self.is_nullable or not is_exact

    @property
    def in_postgresql(self) -> ColumnType:
        """The type of the column in PostgreSQL."""
        return column_type(self.declared, lake_type(self.type))


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table of the lake.

    Attributes:
        source: owner.table.
        name: of the target: the table's name, with the owner as a prefix if two tables share it.
        key: names of the columns that identify a row; empty if there is no usable key.
        why_no_key: the reason in that case.
    """

    source: str
    name: str
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...]
    why_no_key: str = ""

    @classmethod
    def of(cls, definition: TableDefinition, schema: pa.Schema, name: str) -> TargetTable:
        """Return the target of a captured table.

        Args:
            definition: of the table in the catalog.
            schema: of its rows in the stream.
            name: of the target.

        Raises:
            UnsupportedColumn: names of two columns differ only by case.
        """
        _require_distinct(definition.table, schema.names)
        columns = tuple(
            TargetColumn(field.name, declared.type, field.type, declared.is_nullable)
            for field, declared in zip(schema, definition.columns, strict=True)
        )
        return cls(definition.table, name, columns, definition.key, definition.why_no_key)


def target_tables(
    options: SourceOptions, source: SourceTables, catalog: Catalog
) -> tuple[TargetTable, ...]:
    """Return the target of each captured table, in order.

    Args:
        options: option snapshotKey sets keys that are not in the catalog.
        source: the captured tables.
        catalog: of the captured database.

    Raises:
        BadOption: two tables would have the same target.
        UnsupportedColumn: names of two columns of a table differ only by case.
    """
    found = definitions_and_schemas(options, source, catalog)
    targets = [TargetTable.of(*each, name) for each, name in zip(found, _names(source), strict=True)]
    _require_one_source(targets)
    return tuple(targets)


def definitions_and_schemas(
    options: SourceOptions, source: SourceTables, catalog: Catalog
) -> Iterator[tuple[TableDefinition, pa.Schema]]:
    """Yield the catalog definition of each captured table, and the columns of its rows."""
    found = table_definitions(options, source.tables, source.rules, catalog)
    for definition, table in zip(found, source.tables, strict=True):
        yield definition, delivered_schema(table, table_schema(table, source.rules), source.rules)


def _names(source: SourceTables) -> Iterator[str]:
    counts = Counter(table.name.table.lower() for table in source.tables)
    for table in source.tables:
        is_shared = counts[table.name.table.lower()] > 1
        yield f"{table.name.owner}_{table.name.table}" if is_shared else table.name.table


def _require_one_source(targets: Iterable[TargetTable]) -> None:
    known: dict[str, str] = {}
    for target in targets:
        other = known.setdefault(target.name.lower(), target.source)
        if other != target.source:
            raise BadOption(
                f"{other} and {target.source} would both have the target {target.name}: names in"
                " Spark are not case-sensitive.",
                "Exclude one of them in option table, as in !owner.table.",
                option="table",
            )


def _require_distinct(table: str, names: Sequence[str]) -> None:
    """Refuse names that differ only by case: Spark, Delta and Iceberg do not distinguish them."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise UnsupportedColumn(
                f"table {table} has columns {quoted(other)} and {quoted(name)}, which are the"
                " same name in Spark.",
                "Use option columns to capture only one of them.",
                table=table,
                column=name,
            )
