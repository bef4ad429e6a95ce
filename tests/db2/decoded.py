"""What a decoder makes of values, as Python's own values."""

from __future__ import annotations

from typing import Any

from informix_db2 import Decoder

Row = dict[str, Any]


def rows_of(decoder: Decoder, *values: bytes | None) -> list[Row]:
    """Return the rows of values; each batch must keep to the schema and to Arrow's own rules."""
    found: list[Row] = []
    for rows in decoder.rows(values, [f"file {number}" for number in range(len(values))]):
        rows.batch.validate(full=True)
        assert rows.batch.schema == decoder.schema
        assert len(rows.values) == len(rows.batch)
        assert set(rows.values.tolist()) <= set(range(len(values)))
        found += rows.batch.to_pylist()
    return found


def good(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.get("_error") is None]


def bad_bytes(rows: list[Row]) -> bytes:
    return b"".join(row["_bad"] for row in rows if row["_error"] is not None)
