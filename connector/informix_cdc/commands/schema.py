"""`informix-cdc schema`: the schema that lake tables need to hold the data of Informix tables.

Rule: it changes nothing. Everything is printed to stdout in a form that can be pasted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import click

from informix_capture_client.errors import UnsupportedColumn
from informix_capture_client.printable import printable
from informix_capture_client.sql_names import quoted
from informix_cdc.lake import (
    DEFINITIONS,
    DELTA,
    ICEBERG,
    SPARK,
    TargetColumn,
    TargetTable,
    definitions,
    target_tables,
    type_in,
)
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, open_catalog
from informix_cdc.terminal import echo_exactly

# The shape does not change the columns, and json accepts all column names.
COLUMNS_OF_ANY_SHAPE = "json"
_KINDS = ("Spark", "Delta", "Iceberg", "PostgreSQL")
_HEADINGS = ("column", "Informix", "NULL", *_KINDS)


def print_schema(options: SourceOptions, output_format: str, into: str) -> None:
    """Print the target tables of the captured tables.

    Args:
        options: option `table` has names or patterns.
        output_format: table, json, or a key of DEFINITIONS.
        into: prefix of the table names in statements.

    Raises:
        InformixCdcError: a table does not exist, or cannot be captured.
    """
    with open_catalog(options.connection) as catalog:
        targets = target_tables(options, describe_tables(options, catalog), catalog)
    if output_format == "json":
        click.echo(json.dumps([_as_json(target, into) for target in targets], indent=2))
    elif output_format == "table":
        click.echo("\n\n".join(map(_as_text, targets)))
    else:
        echo_exactly("\n\n".join(definitions(output_format, targets, into)))


def _as_json(target: TargetTable, into: str) -> dict[str, object]:
    columns = [
        {
            "name": column.name,
            "informix": column.declared,
            "nullable": column.is_nullable,
            **dict(zip(map(str.lower, _KINDS), _types(column), strict=True)),
        }
        for column in target.columns
    ]
    return {
        "table": target.source,
        "target": target.name,
        "key": list(target.key),
        "why_no_key": target.why_no_key,
        "columns": columns,
        "definitions": dict(_definitions(target, into)),
    }


def _definitions(target: TargetTable, into: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the statements of each kind; without PostgreSQL's if a name is too long for it."""
    for kind in DEFINITIONS:
        try:
            yield kind, definitions(kind, [target], into)
        except UnsupportedColumn:
            if kind != "postgresql":
                raise


def _as_text(target: TargetTable) -> str:
    key = ", ".join(map(quoted, target.key)) or f"none: {target.why_no_key}"
    rows = [
        (
            _on_one_line(column.name),
            column.declared,
            "yes" if column.is_nullable else "no",
            *_types(column),
        )
        for column in target.columns
    ]
    lines = [target.source, f"  key: {key}", *_aligned([_HEADINGS, *rows])]
    return "\n".join(map(printable, lines))


def _on_one_line(name: str) -> str:
    return name if name.isprintable() else json.dumps(name)


def _types(column: TargetColumn) -> list[str]:
    types = [type_in(names, column.type) for names in (SPARK, DELTA, ICEBERG)]
    return [*types, column.in_postgresql.shown]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
    return [f"  {line}".rstrip() for line in padded]
