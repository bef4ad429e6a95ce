"""What a query asks a captured stream: the next offset, the rows of a range, and to release them.

    own_capture       the query captures the stream itself, in a thread of its process
    shared_capture    `informix-cdc capture` does, and the query reads its folder
    remote_capture    the same over the network

Rule: no Spark. The same offsets always give the same rows, whichever process captures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.options import SourceOptions
from informix_cdc.reading.calls import (
    COMMIT,
    DESCRIBE,
    NEXT,
    RANGES,
    decoded,
    digest_of_tables,
    encoded,
    error_to_json,
    limits_from_json,
    range_to_json,
)
from informix_cdc.reading.captured_stream import CapturedStream, Trigger
from informix_cdc.reading.own_capture import OwnCapture
from informix_cdc.reading.remote_capture import CaptureClient, RemoteCapture, address_of
from informix_cdc.reading.shared_capture import SharedCapture, read_schema, rows_of_capture
from informix_cdc.reading.shared_reader import NotDecided, SharedFolder, SharedReader
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.shared_captures import PublishedCapture

__all__ = [
    "COMMIT",
    "DESCRIBE",
    "NEXT",
    "RANGES",
    "CapturedStream",
    "NotDecided",
    "OwnCapture",
    "SharedFolder",
    "SharedReader",
    "Trigger",
    "captured_stream",
    "decoded",
    "digest_of_tables",
    "encoded",
    "error_to_json",
    "limits_from_json",
    "published_capture",
    "published_schema",
    "range_to_json",
    "read_schema",
]


def captured_stream(
    options: SourceOptions,
    check_schema: Callable[[pa.Schema], None] = lambda _: None,
    on_start: Callable[[StreamOffset], None] = lambda _: None,
    clock: Clock = MONOTONIC,
) -> CapturedStream:
    """Return the captured stream that a query's options name; nothing is opened yet.

    Args:
        options: of the query.
        check_schema: refuses the schema of rows if it differs from that of the query.
        on_start: called with the offset at which reading begins.
        clock: of the capture, where it is the query's own.
    """
    if not options.capture_at:
        return OwnCapture(options, check_schema, on_start, clock)
    kind = RemoteCapture if options.reader_file else SharedCapture
    return kind(options, check_schema, on_start)


def published_capture(options: SourceOptions) -> PublishedCapture:
    """Return what the capture of option captureAt publishes.

    Raises:
        BadOption: no capture has begun there.
        ConnectionLost, AccessRefused: it cannot be reached, or does not accept the reader.
    """
    if options.reader_file:
        return CaptureClient(address_of(options)[0]).describe()
    return SharedFolder(Path(options.capture_at)).published


def published_schema(options: SourceOptions) -> pa.Schema:
    """Return the schema of the rows that a query makes of the changes of a shared capture.

    Raises:
        InformixCdcError: as `published_capture`.
    """
    return rows_of_capture(published_capture(options), options)
