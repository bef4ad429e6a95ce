"""What a query asks a captured stream: the next offset, the rows of a range, and to release them.

    own_capture       the query captures the stream itself, in a thread of its process
    shared_capture    `informix-cdc capture` does, and the query reads its folder

Rule: no Spark. The same offsets always give the same rows, whoever captures.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from informix_cdc.options import SourceOptions
from informix_cdc.reading.captured_stream import CapturedStream, Trigger
from informix_cdc.reading.own_capture import OwnCapture
from informix_cdc.reading.shared_capture import (
    SharedCapture,
    published_capture,
    published_schema,
    read_schema,
)
from informix_cdc.reading.shared_reader import SharedFolder, SharedReader
from informix_checkpoints.offsets import StreamOffset

__all__ = [
    "CapturedStream",
    "OwnCapture",
    "SharedCapture",
    "SharedFolder",
    "SharedReader",
    "Trigger",
    "captured_stream",
    "published_capture",
    "published_schema",
    "read_schema",
]


def captured_stream(
    options: SourceOptions,
    check_schema: Callable[[pa.Schema], None] = lambda _: None,
    on_start: Callable[[StreamOffset], None] = lambda _: None,
) -> CapturedStream:
    """Return the captured stream that a query's options name; nothing is opened yet.

    Args:
        options: of the query.
        check_schema: refuses the schema of rows if it differs from that of the query.
        on_start: called with the offset at which reading begins.
    """
    kind = SharedCapture if options.capture_at else OwnCapture
    return kind(options, check_schema, on_start)
