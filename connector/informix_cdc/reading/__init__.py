"""What a query asks a captured stream: the next offset, the rows of a range, and to release them.

    own_capture       the query captures the stream itself, in a thread of its process
    shared_capture    `informix-cdc capture` does, and the query reads its folder

Rule: no Spark. The same offsets always give the same rows, whoever captures.
"""

from __future__ import annotations

from informix_cdc.reading.captured_stream import CapturedStream, Trigger
from informix_cdc.reading.own_capture import OwnCapture

__all__ = ["CapturedStream", "OwnCapture", "Trigger"]
