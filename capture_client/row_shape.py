"""The shape of a delivered row: the table's columns and what is known about the change.

Rule: the schema depends on options and catalog only, never on data, so that it is known at load().
Names follow Delta's change data feed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from informix_cdc.capture_client.catalog import Table
from informix_cdc.capture_client.column_types import compile_type
from informix_cdc.capture_client.decode_rules import DecodeRules
from informix_cdc.capture_client.errors import BadOption

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


def table_schema(table: Table, rules: DecodeRules) -> pa.Schema:
    """Return a table's columns in table order.

    Raises:
        UnsupportedColumn: a column's type cannot be carried.
    """
    name = str(table.name)
    return pa.schema(
        [(column.name, compile_type(column, name, rules).arrow_type) for column in table.columns]
    )


def struct_names(tables: Sequence[Table]) -> list[str]:
    """Return the name of each table's struct column; names that collide get their owner in front."""
    plain = Counter(table.name.table for table in tables)
    return [
        t.name.table if plain[t.name.table] == 1 else f"{t.name.owner}_{t.name.table}" for t in tables
    ]


def row_schema(tables: Sequence[Table], rules: DecodeRules) -> pa.Schema:
    """Return the schema of delivered rows: flat for one table, one struct per table for several.

    Raises:
        BadOption: a column has the name of a metadata column.
        UnsupportedColumn: a column's type cannot be carried.
    """
    schemas = [table_schema(table, rules) for table in tables]
    if len(tables) == 1:
        data = list(schemas[0])
    else:
        names = struct_names(tables)
        data = [
            pa.field(name, pa.struct(list(schema))) for name, schema in zip(names, schemas, strict=True)
        ]
    if taken := sorted({field.name for field in data} & set(METADATA.names)):
        raise BadOption(
            f"column {taken[0]!r} has the name of a column that every row gets.",
            "Capture the table together with another one: then each table is a struct of its own.",
        )
    return pa.schema([*data, *METADATA])
