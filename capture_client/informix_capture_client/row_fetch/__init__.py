"""The rows of a query in blocks, as the columns that a capture of them has, over either transport.

Rule: what SELECT gives of a row is what the log gives of it, to the last bit; what could be no more
than nearly so is refused.
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
