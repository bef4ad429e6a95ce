"""The calls between a reader and a shared capture over Arrow Flight: names, and values as JSON.

    describe    -> what the capture publishes
    next        {reader, run, is_known, begins_at, on_data_loss, row_form, start, limits, trigger}
                                               -> {tables, offset, figures} | {}
    ranges      {reader, run, is_known, ..., start, end} -> {tables, stream, ranges} | {}
    commit      {reader, run, is_known, ..., end} -> {}
    rows        do_get with the ticket of a range and its stream

An empty answer means that the server has waited as long as it may: the call is repeated. `tables` is
a digest of the captured tables: they can change between two calls. A run `is_known`
once a call of it was answered: it does not take its name back from a later run.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.shared_captures import PublishedCapture
from informix_checkpoints.spool import SegmentRange

DESCRIBE, NEXT, RANGES, COMMIT = "describe", "next", "ranges", "commit"
_RANGE = {"path": str, **dict.fromkeys((f.name for f in fields(SegmentRange) if f.name != "path"), int)}


def encoded(content: Mapping[str, object]) -> bytes:
    """Return a value as bytes."""
    return json.dumps(content, separators=(",", ":")).encode()


def decoded(content: bytes) -> dict[str, Any]:
    """Return the value of `encoded`.

    Raises:
        AccessRefused: it is something else.
    """
    try:
        known = json.loads(content)
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise AccessRefused("a call of a reader and a capture has no valid content.")
    return known


def limits_to_json(limits: BatchLimits) -> dict[str, object]:
    """Return limits for a call."""
    return asdict(limits)


def limits_from_json(given: object) -> BatchLimits:
    """Return the limits of a call.

    Raises:
        ValueError, TypeError: they are something else.
    """
    if not isinstance(given, dict):
        raise ValueError(f"{given!r} are not limits")
    known = BatchLimits(**given)
    numbers = (known.rows, known.size_bytes)
    flags = (known.chunk_alone, known.until_truncate)
    if any(type(flag) is not bool for flag in flags) or any(
        type(n) is not int for n in numbers if n is not None
    ):
        raise ValueError(f"{given!r} are not limits")
    return known


def range_to_json(wanted: SegmentRange) -> dict[str, object]:
    """Return a range for a call; its path is the name of the file."""
    return {**asdict(wanted), "path": wanted.file}


def range_from_json(given: object) -> SegmentRange:
    """Return the range of a call.

    Raises:
        ValueError, TypeError: it is something else.
    """
    wanted = SegmentRange(**given) if isinstance(given, dict) else None
    if wanted is None or any(type(getattr(wanted, name)) is not kind for name, kind in _RANGE.items()):
        raise ValueError(f"{given!r} is not a range")
    return wanted


def digest_of_tables(published: PublishedCapture) -> int:
    """Return a digest of the captured tables and their columns."""
    return zlib.crc32(repr((published.options, published.tables)).encode())
