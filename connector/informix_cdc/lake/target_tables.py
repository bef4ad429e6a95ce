"""The target table of each captured table: its name, its columns, and the key that identifies a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.catalog import Catalog, Table, TableKeys
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.large_objects import delivered_schema
from informix_capture_client.shapes import table_schema
from informix_capture_client.snapshot import KeyRules, usable_key
from informix_capture_client.sql_names import quoted
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column, as the catalog declares it and as rows of the stream have it.

    Attributes:
        declared: the type in Informix's words, in upper case.
        is_nullable: whether Informix allows NULL.
    """

    name: str
    declared: str
    type: pa.DataType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table of the lake.

    Attributes:
        source: owner.table.
        name: of the target; the table's name, with the owner in front where two tables share it.
        key: names of the columns that identify a row; empty if there is no usable key.
        why_no_key: the reason then.
    """

    source: str
    name: str
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...]
    why_no_key: str = ""


def target_tables(
    options: SourceOptions, source: SourceTables, catalog: Catalog
) -> tuple[TargetTable, ...]:
    """Return the target of each captured table, in their order.

    Args:
        options: option snapshotKey names keys that the catalog does not know.
        source: the captured tables.
        catalog: of the captured database.

    Raises:
        BadOption: two tables would have the same target.
        UnsupportedColumn: names of two columns of a table differ only by case.
    """
    rules = KeyRules(source.rules, catalog.ignores_case())
    named = options.snapshot_key_names()
    names = Counter(table.name.table.lower() for table in source.tables)
    targets = []
    for table, keys in zip(source.tables, catalog.keys(source.tables), strict=True):
        is_shared = names[table.name.table.lower()] > 1
        found = usable_key(table, keys, rules, named.get(table.name, ()))
        key, why_no_key = ((), found) if isinstance(found, str) else (found.names, "")
        targets.append(
            TargetTable(
                f"{quoted(table.name.owner)}.{quoted(table.name.table)}",
                f"{table.name.owner}_{table.name.table}" if is_shared else table.name.table,
                tuple(_columns(table, keys, source)),
                key,
                why_no_key,
            )
        )
    _require_one_source(targets)
    return tuple(targets)


def _require_one_source(targets: Iterable[TargetTable]) -> None:
    known: dict[str, str] = {}
    for target in targets:
        other = known.setdefault(target.name.lower(), target.source)
        if other != target.source:
            raise BadOption(
                f"{other} and {target.source} would both be the table {target.name}: Spark does not"
                " tell upper case from lower.",
                "Leave one of them out by option table or tableExclude.",
                option="table",
            )


def _columns(table: Table, keys: TableKeys, source: SourceTables) -> Iterator[TargetColumn]:
    schema = delivered_schema(table, table_schema(table, source.rules), source.rules)
    _require_distinct(table, schema.names)
    in_rows = [*table.columns, *(column for _, column in table.reselected)]
    declared = {column.name: column.type_text.upper() for column in in_rows}
    for field in schema:
        is_nullable = field.name in keys.nullable and field.name not in keys.primary
        yield TargetColumn(field.name, declared[field.name], field.type, is_nullable)


def _require_distinct(table: Table, names: Sequence[str]) -> None:
    """Refuse what Informix tells apart as delimited names, and Spark, Delta and Iceberg do not."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise UnsupportedColumn(
                f"table {table.name} has columns {quoted(other)} and {quoted(name)}, which are the same"
                " name in Spark.",
                "Name the columns to capture with option columns, and only one of these.",
                table=str(table.name),
                column=name,
            )
