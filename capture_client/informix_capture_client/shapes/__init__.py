"""Encode committed transactions and snapshot rows as stored and delivered rows.

Rule: the same records always produce the same rows; the schema contains all that a reader needs.
"""

from __future__ import annotations

from informix_capture_client.shapes.announced_tables import table_schema
from informix_capture_client.shapes.as_rows import ChangeRow, changes_in, structs_of
from informix_capture_client.shapes.change_columns import ChunkRows, KeyObserver, RangeKind
from informix_capture_client.shapes.content_columns import ObjectContents
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.metadata import METADATA
from informix_capture_client.shapes.row_forms import make_encoder, row_schema

__all__ = [
    "METADATA",
    "ChangeEncoder",
    "ChangeRow",
    "ChunkRows",
    "KeyObserver",
    "ObjectContents",
    "RangeKind",
    "changes_in",
    "make_encoder",
    "row_schema",
    "structs_of",
    "table_schema",
]
