"""Fetch the rows of a query in blocks, as Arrow columns equal to captured ones, over either transport.

Rule: a row from SELECT is identical to the row from the log; types for which this is not possible are
rejected.
"""

from __future__ import annotations

from informix_capture_client.row_fetch.base import SELECT_SECONDS, BlockReader, RowBlocks
from informix_capture_client.row_fetch.keys import key_argument
from informix_capture_client.row_fetch.readers import block_reader, in_database_code_set

__all__ = [
    "SELECT_SECONDS",
    "BlockReader",
    "RowBlocks",
    "block_reader",
    "in_database_code_set",
    "key_argument",
]
