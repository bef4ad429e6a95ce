"""What a query asks a captured stream: the next offset, the rows of a range, and to release them.

Rule: no Spark. The same offsets always give the same rows, whichever process captures. Read
`captured_stream.py` first; `serving.py` is the program of a Flight server's process.
"""

from __future__ import annotations

from informix_cdc.reading.access import CaptureAccess
from informix_cdc.reading.capture_folder import CaptureFolder
from informix_cdc.reading.captured_stream import (
    CapturedStream,
    published_capture,
    published_schema,
    read_schema,
)
from informix_cdc.reading.followed_stream import FollowedStream
from informix_cdc.reading.trigger import Trigger

__all__ = [
    "CaptureAccess",
    "CaptureFolder",
    "CapturedStream",
    "FollowedStream",
    "Trigger",
    "published_capture",
    "published_schema",
    "read_schema",
]
