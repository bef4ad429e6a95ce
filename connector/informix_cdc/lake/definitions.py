"""Statements that create target tables, and the schema for `from_json`.

Column names are quoted in backticks, as in Spark SQL. Delta Lake forbids some characters in column
names unless column mapping is on (Delta protocol, "Column Mapping").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from informix_capture_client.errors import UnsupportedColumn
from informix_capture_client.printable import printable
from informix_cdc import postgresql as in_postgresql
from informix_cdc.lake.target_tables import TargetTable

_MICROSECONDS = pa.duration("us")
SPARK: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    _MICROSECONDS: "INTERVAL DAY TO SECOND",
}
DELTA: Mapping[pa.DataType, str] = {**SPARK, _MICROSECONDS: "BIGINT"}
ICEBERG: Mapping[pa.DataType, str] = {**DELTA, pa.int16(): "INT"}


def type_in(names: Mapping[pa.DataType, str], kind: pa.DataType) -> str:
    """Return the SQL name of a type.

    >>> type_in(SPARK, pa.decimal128(10, 2)), type_in(ICEBERG, pa.int16())
    ('DECIMAL(10,2)', 'INT')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"{field.name}: {type_in(names, field.type)}" for field in kind)
        return f"STRUCT<{fields}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_in(names, kind.value_type)}>"
    return names[kind]


MOST_BYTES_OF_NAME = 63  # in PostgreSQL, which cuts off the rest
NEEDS_COLUMN_MAPPING = frozenset(" ,;{}()\n\t=")
# An identifier field of Iceberg is neither optional nor a float (Iceberg spec, "Identifier Field IDs");
# a usable Informix key is never a float.


def _delta(target: TargetTable, name: str) -> Iterator[str]:
    properties = ""
    if any(NEEDS_COLUMN_MAPPING.intersection(column.name) for column in target.columns):
        properties = "\nTBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    yield f"CREATE TABLE {name} (\n{_listed(target, DELTA)}\n) USING delta{properties};"


def _iceberg(target: TargetTable, name: str) -> Iterator[str]:
    """Yield the statements for Iceberg; the second one needs Iceberg's SQL extensions."""
    yield f"CREATE TABLE {name} (\n{_listed(target, ICEBERG)}\n) USING iceberg;"
    if target.key:
        yield f"ALTER TABLE {name} SET IDENTIFIER FIELDS {', '.join(map(quoted, target.key))};"


def _postgresql(target: TargetTable, name: str) -> Iterator[str]:
    """Yield the statement for PostgreSQL, with what Informix declares NOT NULL, and SERIAL.

    Raises:
        UnsupportedColumn: a name has more bytes than PostgreSQL keeps.
    """
    for each in (target.name, *(column.name for column in target.columns)):
        if len(each.encode()) > MOST_BYTES_OF_NAME:
            raise UnsupportedColumn(
                f"the name {json.dumps(each)} has more than {MOST_BYTES_OF_NAME} bytes: PostgreSQL"
                " would cut it off.",
                "Exclude it with option columns, or the table with ! in option table.",
            )
    lines = [
        f"  {in_postgresql.quoted(_printable(column.name))} {column.in_postgresql.definition}"
        f"{'' if column.may_be_null else ' NOT NULL'}"
        for column in target.columns
    ]
    key = ", ".join(map(in_postgresql.quoted, target.key))
    lines += [f"  PRIMARY KEY ({key})"] if key else []
    listed = ",\n".join(lines)
    yield f"CREATE TABLE {name} (\n{listed}\n);"


def _from_json(target: TargetTable, name: str) -> Iterator[str]:
    """Yield the schema with which from_json parses `before` and `after` of shape=json."""
    fields = [f"{quoted(column.name)} {type_in(SPARK, column.type)}" for column in target.columns]
    yield f"-- {name}\n{', '.join(fields)}"


DEFINITIONS: Mapping[str, Callable[[TargetTable, str], Iterator[str]]] = {
    "delta": _delta,
    "iceberg": _iceberg,
    "postgresql": _postgresql,
    "from-json": _from_json,
}
_QUOTES: Mapping[str, Callable[[str], str]] = {"postgresql": in_postgresql.quoted}


def definitions(kind: str, targets: Iterable[TargetTable], into: str = "") -> list[str]:
    """Return the definition of each table.

    Args:
        kind: a key of DEFINITIONS.
        targets: the tables.
        into: catalog and schema to put before each name, in SQL syntax; may be empty.

    Raises:
        UnsupportedColumn: a name contains control characters.
    """
    prefix, quote = f"{into}." if into else "", _QUOTES.get(kind, quoted)
    return [
        text
        for target in targets
        for text in DEFINITIONS[kind](target, prefix + quote(_printable(target.name)))
    ]


def _listed(target: TargetTable, names: Mapping[pa.DataType, str]) -> str:
    """Return the columns; only the key is NOT NULL, so that fewer ALTERs affect the target."""
    return ",\n".join(
        f"  {quoted(column.name)} {type_in(names, column.type)}"
        f"{' NOT NULL' if column.name in target.key else ''}"
        for column in target.columns
    )


def quoted(name: str) -> str:
    """Return an identifier as Spark SQL quotes it.

    Raises:
        UnsupportedColumn: when pasted, the name could control a terminal, or end a comment.
    """
    return "`" + _printable(name).replace("`", "``") + "`"


def _printable(name: str) -> str:
    if printable(name) != name or len(name.splitlines()) > 1:
        raise UnsupportedColumn(
            f"the name {json.dumps(name)} contains control characters, which cannot be written"
            " in a statement.",
            "Exclude it with option columns, or the table with ! in option table.",
        )
    return name
