"""The column by which the spool finds rows, where a shape has no column of its own for it."""

from __future__ import annotations

import pyarrow as pa

SPOOL_COLUMN = "_spool_commit"  # checkpoints/segments.py drops a column of this name when rows are read


def with_spool_column(schema: pa.Schema) -> pa.Schema:
    """Return the schema of stored rows: the delivered one and the COMMTX sequence number."""
    return schema.append(pa.field(SPOOL_COLUMN, pa.int64()))
