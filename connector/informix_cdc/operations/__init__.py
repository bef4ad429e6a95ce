"""What the commands do, without a terminal.

Rule: values in, values out; what is shown is decided elsewhere.
"""

from __future__ import annotations

from informix_cdc.operations.altering import (
    acquired,
    only_released,
    receipt_of,
    require_receipt_of,
)
from informix_cdc.operations.doctor import diagnose, diagnose_as_known
from informix_cdc.operations.recording_file import RecordingFile
from informix_cdc.operations.row_logging import (
    require_not_captured,
    switch_off,
    switch_on_for_capture,
)
from informix_cdc.operations.tail import OnRowLoggingOff, TailFigures, follow
from informix_cdc.operations.tail_with_rows import follow_with_rows
from informix_cdc.operations.undelivered import (
    OnRead,
    StreamOfTables,
    require_all_delivered,
    streams_of,
)

__all__ = [
    "OnRead",
    "OnRowLoggingOff",
    "RecordingFile",
    "StreamOfTables",
    "TailFigures",
    "acquired",
    "diagnose",
    "diagnose_as_known",
    "follow",
    "follow_with_rows",
    "only_released",
    "receipt_of",
    "require_all_delivered",
    "require_not_captured",
    "require_receipt_of",
    "streams_of",
    "switch_off",
    "switch_on_for_capture",
]
