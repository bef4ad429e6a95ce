"""From bytes to CDC records: cut, checked, and read as columns of numbers.

Rule: pure, a block at a time; no record is an object of its own.
"""

from __future__ import annotations

from informix_capture_client.records.arrays import (
    Bits,
    Integers,
    gather,
    joined_bytes,
    ragged_places,
)
from informix_capture_client.records.framing import (
    MARGIN_BYTES,
    MAX_PAYLOAD_BYTES,
    RawRecords,
    RecordCutter,
)
from informix_capture_client.records.records import (
    BOUNDS,
    OF_A_TABLE,
    OF_NO_TRANSACTION,
    ROW_HEADER_BYTES,
    Begin,
    Commit,
    Control,
    Discard,
    RecordBlock,
    RecordKind,
    Rollback,
    ServerError,
    TableSchema,
    Timeout,
    is_one_of,
    parse_block,
)

__all__ = [
    "BOUNDS",
    "MARGIN_BYTES",
    "MAX_PAYLOAD_BYTES",
    "OF_A_TABLE",
    "OF_NO_TRANSACTION",
    "ROW_HEADER_BYTES",
    "Begin",
    "Bits",
    "Commit",
    "Control",
    "Discard",
    "Integers",
    "RawRecords",
    "RecordBlock",
    "RecordCutter",
    "RecordKind",
    "Rollback",
    "ServerError",
    "TableSchema",
    "Timeout",
    "gather",
    "is_one_of",
    "joined_bytes",
    "parse_block",
    "ragged_places",
]
