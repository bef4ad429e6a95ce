"""Encode committed transactions and snapshot rows as stored changes, and make rows of these.

Rule: the same records always become the same stored changes, and these the same rows of a reader's
shape. What is stored does not depend on any reader.
"""

from __future__ import annotations

from informix_capture_client.shapes.announced_tables import table_schema
from informix_capture_client.shapes.arrow_shape import DEFINITION
from informix_capture_client.shapes.as_rows import ChangeRow, changes_in, structs_of
from informix_capture_client.shapes.change_columns import ChunkRows, KeyObserver, RangeKind
from informix_capture_client.shapes.content_columns import ObjectContents
from informix_capture_client.shapes.delivery import (
    RowDelivery,
    delivered_tables,
    has_flat_rows,
    row_schema,
)
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.metadata import METADATA
from informix_capture_client.shapes.row_shape import DeliveredTable
from informix_capture_client.shapes.stored_changes import (
    AFTER,
    BEFORE,
    TRUNCATE,
    ChangeGroup,
    change_count,
    transaction_counts,
)

__all__ = [
    "AFTER",
    "BEFORE",
    "DEFINITION",
    "METADATA",
    "TRUNCATE",
    "ChangeEncoder",
    "ChangeGroup",
    "ChangeRow",
    "ChunkRows",
    "DeliveredTable",
    "KeyObserver",
    "ObjectContents",
    "RangeKind",
    "RowDelivery",
    "change_count",
    "changes_in",
    "delivered_tables",
    "has_flat_rows",
    "row_schema",
    "structs_of",
    "table_schema",
    "transaction_counts",
]
