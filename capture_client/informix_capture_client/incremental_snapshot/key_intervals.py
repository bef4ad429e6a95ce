"""Describe the key interval of a chunk that is read again, in rows of the stream.

Rule: an interval is given only for a key whose order is known here. A copy then finds which of its rows
the table no longer has: those in the interval that are neither in the chunk nor among the skipped keys.

    certain order    integers, DECIMAL with a scale, MONEY, DATE, DATETIME from the year on, BOOLEAN
                     CHAR, VARCHAR, LVARCHAR in code sets whose order is that of Unicode
    no certain one   NCHAR, NVARCHAR (the order of the locale), other code sets, all other types; an
                     INTERVAL is delivered as a number that is not the text in which keys are given

Source of the order of characters: IBM Informix GLS User's Guide, "Collation order": CHAR and VARCHAR in
code-set order, NCHAR and NVARCHAR in the localized order.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot.key_choice import SnapshotKey
from informix_capture_client.incremental_snapshot.reconciliation import Bounds, Emitted
from informix_capture_client.records import Integers, RecordKind
from informix_capture_client.values import Column

_CODE_POINT_ORDER = {codecs.lookup(name).name for name in ("ascii", "iso8859-1", "utf-8")}
_TEXTS = ("char", "character", "varchar", "character varying", "lvarchar")


def why_no_order(key: SnapshotKey, schema: pa.Schema, codec: str) -> str:
    """Return why the order of a key is not known, or an empty text.

    Args:
        key: of the table.
        schema: its delivered columns.
        codec: the Python codec of the database's code set.
    """
    for column in key.columns:
        if column.mask is not None:
            return f"column {column.name} of its key is masked, so that its order is not known"
        declared, delivered = column.type_text.upper(), schema.field(column.name).type
        if not _has_certain_order(column, delivered, codec):
            return f"the order of {declared} column {column.name} of its key is not known"
    return ""


def _has_certain_order(column: Column, delivered: pa.DataType, codec: str) -> bool:
    if column.type_text.partition("(")[0] in _TEXTS:
        return codecs.lookup(codec).name in _CODE_POINT_ORDER
    kind = pa.types
    if column.type_text.startswith("interval"):
        return False
    return bool(
        kind.is_integer(delivered)
        or kind.is_decimal(delivered)
        or kind.is_date(delivered)
        or kind.is_timestamp(delivered)
        or kind.is_boolean(delivered)
    )


def rows_with_interval(
    emitted: Emitted, key: SnapshotKey, limit: Bounds, kinds: tuple[int, int, int]
) -> tuple[pa.Table, Integers]:
    """Return the rows of a chunk with its interval, and the kind of each row.

    Args:
        emitted: the chunk.
        key: of the table.
        limit: the highest value of the first key column; empty: none.
        kinds: of the rows for the start, for a skipped key, and for the end.

    Returns:
        no rows if every key was touched: a TRUNCATE is in the stream.
    """
    rows, schema = emitted.rows, emitted.rows.schema
    if emitted.touched is None:
        return rows.slice(0, 0), np.zeros(0, np.int64)
    start, skip, end = kinds
    last = limit if emitted.is_last else emitted.last_key or ()
    parts = [
        _limit_row(emitted.after or (), key, schema),
        rows,
        _in_schema(emitted.touched, schema),
        _limit_row(last, key, schema),
    ]
    of_rows = [start, RecordKind.INSERT, skip, end]
    counts = [len(part) for part in parts]
    return pa.concat_tables(parts), np.repeat(np.array(of_rows, np.int64), counts)


def _limit_row(values: Bounds, key: SnapshotKey, schema: pa.Schema) -> pa.Table:
    """Return a row with the values of a key or of a prefix of it, and NULL in all other columns."""
    columns = {
        name: key.compared(place, typed_key(text, schema.field(name)))
        for place, (name, text) in enumerate(zip(key.names, values, strict=False))
    }
    return _filled(columns, 1, schema)


def typed_key(text: str, field: pa.Field) -> pa.Array:
    """Return a key column's value, given as the server prints it, as an array of one value.

    Raises:
        BadOption: it is not a value of the column.
    """
    try:
        if pa.types.is_boolean(field.type):
            return pa.array([{"t": True, "1": True, "f": False, "0": False}[text.lower()]])
        return pa.array([text], pa.string()).cast(field.type)
    except (KeyError, pa.ArrowException):
        raise BadOption(
            f"{text!r} is not a value of column {field.name}, whose type is {field.type}.",
            "Write it as the server prints it: 42, 12.50, 2026-01-31, 2026-01-31 12:00:00.",
        ) from None


def _in_schema(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    return _filled({name: keys.column(name) for name in keys.column_names}, len(keys), schema)


def _filled(columns: dict[str, pa.Array | pa.ChunkedArray], count: int, schema: pa.Schema) -> pa.Table:
    arrays: Sequence[pa.Array | pa.ChunkedArray] = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(list(arrays), schema=schema)
